package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"tensile/device/lease"
	"tensile/internal/long"
)

// asChild is the variable that makes the test binary a client or the process of a lease.
const asChild = "LEASE_CHILD"

func TestMain(m *testing.M) {
	words := strings.Split(os.Getenv(asChild), "|")
	switch words[0] {
	case "serve":
		linger, _ := time.ParseDuration(words[2])
		err := serve(context.Background(), words[1], ServeOptions{Linger: linger})
		if _, held := errors.AsType[*HeldError](err); err != nil && !held {
			fmt.Println(err)
			os.Exit(1)
		}
	case "train":
		if err := train(words[1], words[2], words[3], words[4], words[5]); err != nil {
			fmt.Println("problem", err)
			os.Exit(1)
		}
		fmt.Println("done")
	default:
		os.Exit(m.Run())
	}
}

// serve is the process of a lease, unless another is.
func serve(ctx context.Context, name string, o ServeOptions) error {
	l, err := Listen(name)
	if err != nil {
		return err
	}
	Serve(ctx, name, l, o)
	return nil
}

// client returns a client that is not connected yet.
func client(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// slots are what every client holds as it knows itself, in memory that all share, each beside the client's process.
// What is held has the number of changes above it, so that slots that are equal at two times did not change in between.
type slots []atomic.Int64

const (
	maxSlots = 1024
	oneMore  = 1 << 20 // change
)

// holds notes what the client of a slot holds now.
func (s slots) holds(slot int, pages pages) {
	changes := s[2*slot].Load() / oneMore
	s[2*slot].Store((changes+1)*oneMore + int64(pages.count()))
}

func openSlots(path string) (slots, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const size = maxSlots * 16
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&b[0])), 2*maxSlots), nil
}

// sum returns what all clients hold at some moment; where that is more than there is, without those that have ended.
func (s slots) sum(capacity int64) (sum int64) {
	for _, ended := range []func(pid int64) bool{func(int64) bool { return false }, hasEnded} {
		held := s.read(ended)
		for {
			again := s.read(ended)
			if slices.Equal(held, again) { // so it was so between the two
				break
			}
			held = again
		}
		sum = 0
		for _, pages := range held {
			sum += pages % oneMore
		}
		if sum <= capacity {
			break
		}
	}
	return sum
}

func (s slots) read(ended func(pid int64) bool) (held []int64) {
	for i := 0; i < len(s); i += 2 {
		pages := s[i].Load()
		if pages%oneMore > 0 && ended(s[i+1].Load()) {
			pages = 0
		}
		held = append(held, pages)
	}
	return held
}

// hasEnded reports whether no thread of a process has an address space any more. It need not be a zombie yet.
func hasEnded(pid int64) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/statm", pid))
	if err != nil {
		panic(err)
	}
	for _, path := range threads {
		if text, err := os.ReadFile(path); err == nil && !strings.HasPrefix(string(text), "0 0 0 ") {
			return false
		}
	}
	return true
}

// train is a client: it trains the job of a seed.
func train(folder, number, seed, capacity, word string) error {
	slot, _ := strconv.Atoi(number)
	n, _ := strconv.ParseUint(seed, 10, 64)
	pages, _ := strconv.ParseInt(capacity, 10, 64)
	all, err := openSlots(filepath.Join(folder, "slots"))
	if err != nil {
		return err
	}
	all[2*slot+1].Store(int64(os.Getpid()))
	w := randomWorker(rand.New(rand.NewPCG(n, 1)), lease.Job("j"+number), 6)
	w.bodies = 40 // as far as it is not killed
	answers := make(chan lease.Output, 16)
	c, err := NewClient(Options{Name: folder, Answer: func(out lease.Output) { answers <- out }, Start: func() error {
		fmt.Println("start")
		return nil
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	problem := error(nil)
	tell := func(in lease.Input) {
		all.holds(slot, w.kept) // before it is told
		if out := c.Step(in); len(out) > 0 {
			problem = fmt.Errorf("%v", out)
		}
	}
	tell(lease.Input{Capacity: &lease.Capacity{Pages: int(pages), Number: 1, Method: word}})
	for !w.done && problem == nil {
		if w.ask(tell) || w.pass(tell) {
			continue
		}
		select {
		case out := <-answers:
			problem = w.hear(out)
			all.holds(slot, w.kept)
			if sum := all.sum(pages); sum > pages {
				problem = fmt.Errorf("%d pages are held of %d", sum, pages)
			}
			fmt.Println("granted", w.body)
		case err := <-ended:
			return err
		}
	}
	cancel()
	return errors.Join(problem, <-ended)
}

// rig starts and kills the processes of a test.
type rig struct {
	t        *testing.T
	r        *rand.Rand
	folder   string
	capacity int
	method   string
	lines    chan line
	clients  map[int]*exec.Cmd
	servers  []*exec.Cmd
	number   int
}

// line is what a client says; "": it has ended.
type line struct {
	client int
	text   string
}

func (g *rig) child(words ...string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), asChild+"="+strings.Join(words, "|"))
	c.Stderr = os.Stderr
	return c
}

// serve starts a process of the lease: it ends by itself if there is one.
func (g *rig) serve() {
	c := g.child("serve", g.folder, "1m")
	c.Stdout = os.Stderr
	must(g.t, c.Start())
	g.servers = append(g.servers, c)
	g.t.Cleanup(kill(c))
}

func kill(c *exec.Cmd) func() {
	return func() {
		c.Process.Kill()
		c.Wait()
	}
}

// train starts a client.
func (g *rig) train() {
	g.number++
	n := g.number
	c := g.child("train", g.folder, fmt.Sprint(n), fmt.Sprint(n%5), fmt.Sprint(g.capacity), g.method)
	out, err := c.StdoutPipe()
	must(g.t, err)
	must(g.t, c.Start())
	g.clients[n] = c
	g.t.Cleanup(kill(c))
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			g.lines <- line{n, lines.Text()}
		}
		g.lines <- line{client: n}
	}()
}

// TestKill kills clients and the process of their lease at random points. What the clients hold by what each knows
// itself never exceeds the capacity, and those that are not killed end.
func TestKill(t *testing.T) {
	for _, word := range []string{"", "zico", "waterwave"} {
		t.Run("method="+word, func(t *testing.T) { killing(t, word) })
	}
}

func killing(t *testing.T, word string) {
	left := long.Rounds(4, 20) // kills
	r := rand.New(rand.NewPCG(left, 8))
	var workers []worker
	for n := range uint64(5) {
		workers = append(workers, randomWorker(rand.New(rand.NewPCG(n, 1)), "", 6))
	}
	g := &rig{t: t, r: r, folder: t.TempDir(), capacity: least(workers[:]), lines: make(chan line, 64),
		clients: make(map[int]*exec.Cmd), method: word}
	for range 3 {
		g.train()
	}
	until := 30 // lines until the next kill
	counts := map[string]int{}
	for len(g.clients) > 0 {
		l := <-g.lines
		words := strings.Fields(l.text + " ")
		switch {
		case l.text == "":
			c := g.clients[l.client]
			delete(g.clients, l.client)
			if err := c.Wait(); err != nil && c.ProcessState.Exited() {
				t.Fatalf("client %d: %v", l.client, err)
			}
			if left > 0 {
				g.train()
			}
			continue
		case words[0] == "start":
			g.serve()
		case words[0] == "problem":
			t.Errorf("client %d: %s", l.client, l.text)
		}
		counts[words[0]]++
		if until--; until > 0 || left == 0 {
			continue
		}
		until = 1 + r.IntN(60)
		left--
		which := r.IntN(3)
		if which != 0 {
			for _, c := range g.servers {
				kill(c)()
			}
			g.servers = nil
		}
		if which != 1 {
			for n, c := range g.clients {
				if n >= l.client {
					c.Process.Kill()
					break
				}
			}
		}
	}
	t.Logf("%v, %d clients", counts, g.number)
	if counts["done"] == 0 {
		t.Error("no client has ended by itself")
	}
}

// A client starts the process that it needs, which outlives it for a while. No second one is ever beside it.
func TestDetach(t *testing.T) {
	name := t.TempDir() // which nobody else has
	t.Setenv(asChild, "serve|"+name+"|500ms")
	log := filepath.Join(name, "log")
	answers := make(chan lease.Output)
	c := client(t, Options{Name: name, Answer: func(out lease.Output) { answers <- out }, Start: func() error {
		return Detach(log, os.Args[0])
	}})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	c.Step(lease.Input{Capacity: &lease.Capacity{Pages: 3}})
	c.Step(lease.Input{Join: &lease.Join{Job: "a", Ask: 1, Base: 1, Peak: 3}})
	go func() { ended <- c.Run(ctx) }()
	if out := <-answers; out.Kind != lease.Grant || out.Ask != 1 {
		t.Errorf("the answer is %v", out)
	}
	for key, value := range map[string]string{"HOME": name, "XDG_STATE_HOME": name, "TMPDIR": name} {
		t.Setenv(key, value)
	}
	_, err := Listen(name)
	if _, held := errors.AsType[*HeldError](err); !held {
		t.Errorf("nobody serves: %v", err)
	}
	server, err := net.DialUnix("unix", nil, address(name, ""))
	must(t, err)
	defer server.Close()
	c.Step(lease.Input{Leave: &lease.Leave{Job: "a"}})
	cancel()
	must(t, <-ended)
	server.CloseWrite()
	server.Read(make([]byte, 1)) // until the process ends: it answers nothing
	if text, err := os.ReadFile(log); err != nil || len(text) > 0 {
		t.Errorf("it prints %q, %v", text, err)
	}
}

// BenchmarkRoundTrip is how long a job waits for a grant that there is room for, over the socket.
func BenchmarkRoundTrip(b *testing.B) {
	name := b.TempDir() // which nobody else has
	answers := make(chan lease.Output, 1)
	c := client(b, Options{Name: name, Answer: func(out lease.Output) { answers <- out }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	c.options.Start = func() error {
		go func() { ended <- serve(ctx, name, ServeOptions{}) }()
		return nil
	}
	go func() { ended <- c.Run(ctx) }()
	c.Step(lease.Input{Capacity: &lease.Capacity{Pages: 10}})
	c.Step(lease.Input{Join: &lease.Join{Job: "a", Ask: 1, Base: 1, Peak: 10}})
	<-answers
	ask := int64(2)
	c.Step(lease.Input{Want: &lease.Want{Job: "a", Ask: ask, First: true, Rest: 10, Hold: 5}})
	<-answers
	for b.Loop() {
		ask++
		c.Step(lease.Input{Want: &lease.Want{Job: "a", Ask: ask, Rest: 10, Hold: 5}})
		if out := <-answers; out.Kind != lease.Grant {
			b.Fatal(out)
		}
	}
	cancel()
	<-ended
	<-ended
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
