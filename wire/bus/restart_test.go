package bus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tensile/wire"
)

// restarted is a server that can be ended and started again, always on the same port.
type restarted struct {
	t       *testing.T
	options Options
	*Server
}

func newRestarted(t *testing.T) *restarted {
	r := &restarted{t: t, options: Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: lines(t)}}
	r.start()
	r.options.Listen = strings.TrimPrefix(r.URL(), "nats://")
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *restarted) start() {
	r.t.Helper()
	s, err := Start(r.options)
	must(r.t, err)
	r.Server = s
}

// states collects what OnState is told.
type states chan bool

func (s states) want(t *testing.T, want bool) {
	t.Helper()
	select {
	case got := <-s:
		if got != want {
			t.Fatalf("connected = %v, want %v", got, want)
		}
	case <-within(t).Done():
		t.Fatalf("never told connected = %v", want)
	}
}

// TestRestart ends a server and starts it again on the same directory: connections come back, what was stored is there,
// and those who watch, follow, subscribe and serve go on. The log says that a connection is lost, and that it is back.
func TestRestart(t *testing.T) {
	r := newRestarted(t)
	ctx := within(t)
	state := make(states, 100)
	print, said := lines(t), make(chan string, 100)
	x := joinWith(t, r.Credentials(Executor("a")), ConnOptions{OnState: func(up bool) { state <- up },
		Log: func(line string) {
			print(line)
			said <- line
		}})
	c := rule(t, r.Server)
	must(t, c.Put(ctx, "orders.a", []byte("1")))
	must(t, c.Put(ctx, "status.b", []byte("1")))
	must(t, c.Store(ctx, wire.Bucket("a"), "layout", []byte("layout")))
	must(t, x.Put(ctx, "status.a", []byte("1")))
	must(t, x.Append(ctx, "log.a.job", []byte("1")))

	orders, reports, log := newEvents(), newEvents(), newEvents()
	_, err := x.Watch(ctx, "orders.a", orders.each)
	must(t, err)
	orders.want(t, "orders.a=1")
	outside := joinWith(t, r.Credentials(Controller), ConnOptions{Log: lines(t)})
	_, err = outside.Subscribe("report.*.*", reports.each)
	must(t, err)
	_, err = outside.Follow(ctx, "log.a.job", func(_ string, line []byte) { log.each("log", line) })
	must(t, err)
	log.want(t, "log=1")
	_, err = outside.Serve(wire.ControlSubject, func(_ string, _ []byte, reply func([]byte)) { reply([]byte("ok")) })
	must(t, err)

	must(t, c.Close())
	r.Close()
	state.want(t, false)
	if x.Connected() {
		t.Error("connected to a server that has ended")
	}
	for what, err := range map[string]error{
		"Put": x.Put(ctx, "status.a", nil), "Publish": x.Publish("report.a.job", nil),
		"Append": x.Append(ctx, "log.a.job", nil),
	} {
		if !errors.Is(err, wire.ErrAway) {
			t.Errorf("%s without a server: %v", what, err)
		}
	}
	if _, err := x.Watch(ctx, "orders.a", nil); !errors.Is(err, wire.ErrAway) {
		t.Errorf("Watch without a server: %v", err)
	}

	r.start()
	c = rule(t, r.Server)
	must(t, c.Put(ctx, "orders.a", []byte("2"))) // perhaps before the executor is back
	must(t, c.Append(ctx, "log.a.job", []byte("2")))
	state.want(t, true)
	first, last := <-said, ""
	for len(said) > 0 {
		last = <-said
	}
	to := "connection to " + r.URL()
	if !strings.HasPrefix(first, to+" is lost: ") || last != to+" is back" {
		t.Errorf("the first line of the log is %q, the last %q", first, last)
	}
	orders.until(t, "orders.a=2")
	log.want(t, "log=2")
	must(t, c.Put(ctx, "orders.a", []byte("3")))
	orders.until(t, "orders.a=3")
	must(t, x.Append(ctx, "log.a.job", []byte("3")))
	log.want(t, "log=3")
	must(t, outside.nats.FlushWithContext(ctx)) // who has heard that line is back, and is subscribed again
	must(t, x.Publish("report.a.job", []byte("1")))
	reports.want(t, "report.a.job=1")
	client := join(t, r.Server, Client)
	if got, err := client.Ask(ctx, wire.ControlSubject, nil); string(got) != "ok" {
		t.Errorf("Ask = %q, %v", got, err)
	}
	for key, want := range map[string]string{"status.a": "1", "status.b": "1"} {
		if got, err := c.Get(ctx, key); string(got) != want {
			t.Errorf("%s is %q, %v", key, got, err)
		}
	}
	if got, err := x.Load(ctx, wire.Bucket("a"), "layout"); string(got) != "layout" {
		t.Errorf("the object is %q, %v", got, err)
	}
}

// TestLostRequest ends the server while a request waits for its answer.
func TestLostRequest(t *testing.T) {
	r := newRestarted(t)
	c := joinWith(t, r.Credentials(Controller), ConnOptions{Log: lines(t)})
	served := make(chan bool)
	_, err := c.Serve(wire.ControlSubject, func(string, []byte, func([]byte)) { close(served) })
	must(t, err)
	failed := make(chan error)
	client := joinWith(t, r.Credentials(Client), ConnOptions{Log: lines(t)})
	go func() {
		_, err := client.Ask(context.Background(), wire.ControlSubject, nil)
		failed <- err
	}()
	<-served
	r.Close()
	if err := <-failed; !errors.Is(err, wire.ErrAway) {
		t.Errorf("Ask when the server ends: %v", err)
	}
}

// TestKill kills a server process in the middle of writing, again and again: what it had acknowledged is there, and its
// directory can be used at once.
func TestKill(t *testing.T) {
	ctx, dir := within(t), t.TempDir()
	listen := "127.0.0.1:0"
	state := make(states, 100)
	var c *Conn
	put := 0
	for round := range 3 {
		process, url := serve(t, dir, listen)
		listen = strings.TrimPrefix(url, "nats://")
		if c == nil {
			s, err := openSecret(dir)
			must(t, err)
			to := Credentials{URL: url, User: Controller, Password: s.password(Controller, 0)}
			c = joinWith(t, to, ConnOptions{OnState: func(up bool) { state <- up }, Log: lines(t)})
		} else {
			state.want(t, true)
			if got, err := c.Get(ctx, "status.a"); string(got) != fmt.Sprint(put) && string(got) != fmt.Sprint(put+1) {
				t.Errorf("round %d: the value is %q, %v; %d was acknowledged", round, got, err, put)
			}
		}
		if _, err := Start(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(),
			"in use by another controller") {
			t.Errorf("a second server on the directory: %v", err)
		}
		for ; ; put++ {
			if err := c.Put(ctx, "status.a", fmt.Append(nil, put+1)); err != nil {
				break
			}
			if put%100 == 50 {
				must(t, process.Process.Kill())
			}
		}
		_ = process.Wait() // killed
		state.want(t, false)
	}
}

// serve runs a server as a process of its own, which TestMain turns into one.
func serve(t *testing.T, dir, listen string) (process *exec.Cmd, url string) {
	t.Helper()
	process = exec.Command(os.Args[0])
	process.Env = append(os.Environ(), serverDir+"="+dir, serverListen+"="+listen)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	must(t, err)
	in, err := process.StdinPipe() // which ends with this process
	must(t, err)
	must(t, process.Start())
	t.Cleanup(func() {
		in.Close()
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return process, strings.TrimSpace(line)
}

const (
	serverDir    = "TENSILE_TEST_SERVER_DIR"
	serverListen = "TENSILE_TEST_SERVER_LISTEN"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(serverDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Start(Options{Dir: dir, Listen: os.Getenv(serverListen),
		Log: func(line string) { fmt.Fprintln(os.Stderr, line) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.URL())
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the test ends
	s.Close()
}
