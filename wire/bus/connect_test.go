package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"tensile/wire"
)

// TestConnectErrors shows that what keeps from connecting is said at once: with the address, the reason and a remedy.
func TestConnectErrors(t *testing.T) {
	s, secure := listening(t), start(t, Options{Listen: "127.0.0.1:0", TLS: true})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	nobody := "nats://" + free.Addr().String()
	must(t, free.Close())

	right, rightSecure := s.Credentials(Client), secure.Credentials(Client)
	with := func(c Credentials, change func(*Credentials)) Credentials { change(&c); return c }
	for _, test := range []struct {
		name string
		to   Credentials
		want string
	}{
		{"nobody listens", with(right, func(c *Credentials) { c.URL = nobody }),
			"connection refused: start a controller there"},
		{"wrong password", with(right, func(c *Credentials) { c.Password = "x" }),
			`user "client" is refused: use the credentials`},
		{"no password", with(right, func(c *Credentials) { c.User, c.Password = "", "" }), `user "" is refused`},
		{"another's password", with(right, func(c *Credentials) { c.User = Controller }),
			`user "controller" is refused`},
		{"another server's", with(right, func(c *Credentials) { c.Password = rightSecure.Password }), `is refused`},
		{"no ca", with(rightSecure, func(c *Credentials) { c.CA = "" }),
			"unknown authority: use the credentials that the controller wrote"},
		{"no TLS asked for", with(rightSecure, func(c *Credentials) {
			c.CA, c.URL = "", "nats"+strings.TrimPrefix(c.URL,
				"tls")
		}), "unknown authority"},
		{"another ca", with(rightSecure, func(c *Credentials) { c.CA = anotherCA(t) }), "unknown authority"},
		{"ca is no PEM", with(rightSecure, func(c *Credentials) { c.CA = "x" }), "is no certificate"},
		{"no TLS there", with(right, func(c *Credentials) { c.CA = rightSecure.CA }), "the server has no TLS"},
		{"wrong password with TLS", with(rightSecure, func(c *Credentials) { c.Password = "x" }), "is refused"},
		{"no URL", with(right, func(c *Credentials) { c.URL = "nats://%" }), "nats://%"},
	} {
		c, err := Connect(within(t), test.to, ConnOptions{})
		if err == nil {
			c.Close()
			t.Errorf("%s: no error", test.name)
			continue
		}
		if text := err.Error(); !strings.Contains(text, test.want) || !strings.Contains(text, test.to.URL) ||
			strings.Contains(text, "\n") {
			t.Errorf("%s: %v; want one line with %q", test.name, err, test.want)
		}
		if p := test.to.Password; len(p) > 1 && strings.Contains(err.Error(), p) {
			t.Errorf("%s: the password is in the error", test.name)
		}
	}
}

func anotherCA(t *testing.T) string {
	a, err := openAuthority(t.TempDir())
	must(t, err)
	return string(a.pem)
}

// TestSilentServer connects to what accepts connections and says nothing: until the time is over, and until the caller
// has enough of it.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	to := Credentials{URL: "nats://" + l.Addr().String()}
	_, err = connect(within(t), to, ConnOptions{}, nil, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no answer within 1ms: ") &&
		!strings.Contains(err.Error(), "i/o timeout: ") { // of the dialing
		t.Errorf("%v", err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer other.Close()
	ctx, cancel := context.WithCancelCause(within(t))
	defer cancel(nil)
	enough := errors.New("it has had enough")
	go func() {
		if _, err := other.Accept(); err == nil {
			cancel(enough)
		}
	}()
	to.URL = "nats://" + other.Addr().String()
	if _, err = Connect(ctx, to, ConnOptions{}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}

// TestTLS uses names and addresses of the server, and starts it again with the same authority.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	var before Credentials
	for round := range 2 {
		s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0", TLS: true})
		to := s.Credentials(Executor("a"))
		if !strings.HasPrefix(to.URL, "tls://127.0.0.1:") {
			t.Errorf("URL %s", to.URL)
		}
		for _, host := range []string{"127.0.0.1", "localhost"} {
			named := to
			named.URL = strings.Replace(to.URL, "127.0.0.1", host, 1)
			must(t, joinWith(t, named, ConnOptions{}).Put(within(t), "status.a", []byte(host)))
		}
		if got, err := rule(t, s).Get(within(t), "status.a"); string(got) != "localhost" {
			t.Errorf("within the process: %q, %v", got, err)
		}
		if round > 0 && (to.CA != before.CA || to.Password != before.Password) {
			t.Error("a restart makes new credentials")
		}
		before = to
		s.Close()
	}
}

func TestNamesOf(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "[localhost] [127.0.0.1 ::1 127.0.0.1]",
		"localhost": "[localhost] [127.0.0.1 ::1]",
		"gpu.lab":   "[localhost gpu.lab] [127.0.0.1 ::1]",
		"10.1.2.3":  "[localhost] [127.0.0.1 ::1 10.1.2.3]",
	} {
		names, ips := namesOf(host)
		if got := fmt.Sprint(names, " ", ips); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

func TestStartErrors(t *testing.T) {
	taken := listening(t)
	dir := t.TempDir()
	for _, test := range []struct{ listen, want string }{
		{strings.TrimPrefix(taken.URL(), "nats://"), "address already in use"},
		{"127.0.0.1", "give HOST:PORT"},
		{"127.0.0.1:x", "no number"},
		{"127.0.0.1:70000", "no number up to 65535"},
	} {
		s, err := Start(Options{Dir: dir, Listen: test.listen})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.listen, err, test.want)
		}
	}
	start(t, Options{Dir: dir}).Close() // none of them holds the directory
}

// TestRudeClients sends what no client of ours would. Those who are well-behaved are not disturbed, and the log tells.
func TestRudeClients(t *testing.T) {
	var mu sync.Mutex
	var logged []string
	s := start(t, Options{Listen: "127.0.0.1:0", Log: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, line)
	}})
	ctx, c := within(t), rule(t, s)
	x := join(t, s, Executor("a"))
	got := newEvents()
	_, err := x.Watch(ctx, "orders.a", got.each)
	must(t, err)

	to := s.Credentials(Executor("b"))
	connect := fmt.Sprintf(`CONNECT {"verbose":false,"headers":true,"user":%q,"pass":%q}`+"\r\n", to.User, to.Password)
	for name, say := range map[string]string{
		"garbage":          strings.Repeat("\x00\xff\x13 garbage\r\n", 1000),
		"HTTP":             "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"no connect":       "PUB $KV.orders.a 6\r\nforged\r\n",
		"huge line":        "PUB " + strings.Repeat("a", 1<<16),
		"wrong password":   strings.Replace(connect, to.Password, "x", 1),
		"connect garbage":  "CONNECT {\"user\":[1,2\r\n",
		"huge payload":     connect + "PUB $KV.status.b 99999999\r\n",
		"negative payload": connect + "PUB $KV.status.b -1\r\n",
		"wrong payload":    connect + "PUB $KV.status.b 3\r\nfour\r\n",
		"bad header":       connect + "HPUB $KV.status.b 5 5\r\nNATS/\r\nPING\r\nbad",
		"bad subject":      connect + "PUB $KV..status 0\r\n\r\nPUB > 0\r\n\r\nbad\r\n",
		"role":             connect + "RS+ $G $KV.>\r\nRMSG $G $KV.orders.a 6\r\nforged\r\n",
		"many subs":        connect + strings.Repeat("SUB $KV.> 1\r\n", 1000) + "bad\r\n",
	} {
		if reply := rude(t, s, say); strings.Contains(reply, "genuine") {
			t.Errorf("%s: the server answers %q", name, reply)
		}
	}
	must(t, c.Put(ctx, "orders.a", []byte("genuine")))
	got.want(t, "orders.a=genuine")
	must(t, x.Put(ctx, "status.a", nil))
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(logged, "\n")
	for _, want := range []string{"refused: wrong password", "Publish Violation", "maximum payload"} {
		if !strings.Contains(strings.ToLower(all), strings.ToLower(want)) {
			t.Errorf("the log has no %q", want)
		}
	}
	if strings.Contains(all, to.Password) {
		t.Error("the log has a password")
	}
}

// rude says something to a server on a connection of its own, and returns all that the server says until it hangs up.
func rude(t *testing.T, s *Server, say string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	must(t, err)
	defer conn.Close()
	end, _ := within(t).Deadline()
	must(t, conn.SetDeadline(end))
	_, _ = conn.Write([]byte(say)) // the server may hang up in the middle
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, conn); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the server does not hang up on %.40q: %v", say, err)
	}
	return answer.String()
}

// TestAskContext ends a request by its context.
func TestAskContext(t *testing.T) {
	c := rule(t, start(t, Options{}))
	served := make(chan bool, 1)
	_, err := c.Serve(wire.ControlSubject, func(string, []byte, func([]byte)) { served <- true })
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-served
		cancel()
	}()
	if _, err := c.Ask(ctx, wire.ControlSubject, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
