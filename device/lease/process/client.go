package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"tensile/device/lease"
)

// Options are the settings of a [Client].
type Options struct {
	Name string // of the device's lease
	// Start starts a process that serves the lease, and does not wait for it. It is called when nobody answers, and
	// need not mind whether another was started at the same time. See [Detach].
	Start func() error
	// Answer is told what the lease says, in order, by a goroutine of Run.
	Answer func(lease.Output)
	Log    func(string) // nil: nobody
	LogOf  string       // where the process that is started logs, for a line that says so
}

// Client is the lease of a device as a process sees it whose jobs train there. Step may be called by any goroutine;
// Run is called once, and the answers come by Options.Answer while it runs.
type Client struct {
	options Options
	id      string

	mu     sync.Mutex
	book   *book
	lock   *net.UnixListener // which nobody connects to
	passed []*os.File        // it, as children have inherited it
	queue  []request         // to be sent, while connected
	online bool
	server *os.Process   // at the other end, while connected; nil: it is not known
	wake   chan struct{} // something was put into the queue
	ticks  <-chan time.Time
}

// NewClient returns a client that is not connected yet. Whoever looks sees from now on until Run returns that it lives.
func NewClient(o Options) (*Client, error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	lock, id, err := takeSlot(o.Name)
	if err != nil {
		return nil, err
	}
	return &Client{options: o, id: id, book: newBook(id), lock: lock, wake: make(chan struct{}, 1),
		ticks: time.Tick(tickEvery)}, nil
}

// Step tells the lease an input; its time is of no matter. It returns at once, with nothing but a refusal if the
// input makes no sense.
func (c *Client) Step(in lease.Input) []lease.Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in == (lease.Input{Now: in.Now}) {
		return nil // the lease has a clock of its own
	}
	r, refused := c.book.told(in)
	if refused != nil {
		return []lease.Output{*refused}
	}
	if c.online {
		c.queue = append(c.queue, r)
		c.poke()
	}
	return nil
}

func (c *Client) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Times between attempts to find a process that serves.
const (
	minPause = 5 * time.Millisecond
	maxPause = 500 * time.Millisecond
	perStart = 500 * time.Millisecond // a process that was started is given so long to listen
)

// inVain is after how many starts without an answer the log says so, again and again.
const inVain = 20

// Run keeps the client connected until ctx ends, by when its jobs hold nothing: have them Leave first. The error is
// for a lease that does not understand this client, or is another user's.
func (c *Client) Run(ctx context.Context) error {
	defer c.release()
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(ctx) })
	defer watching.Wait()
	defer cancel()
	var started time.Time
	starts, pause := 0, minPause
	for ctx.Err() == nil {
		conn, err := net.DialUnix("unix", nil, address(c.options.Name, ""))
		if err == nil {
			if err := strange(conn); err != nil {
				conn.Close()
				return err
			}
			if err := c.session(ctx, conn); err != nil {
				return err
			}
			starts, pause, started = 0, minPause, time.Time{}
			continue
		}
		if time.Since(started) > perStart {
			started = time.Now()
			if err := c.options.Start(); err != nil {
				c.options.Log(fmt.Sprintf("start the lease %s: %v", c.options.Name, err))
			}
			if starts++; starts%inVain == 0 {
				c.options.Log(fmt.Sprintf("the lease was started %d times and does not answer; jobs wait for it: see "+
					"%s", starts, c.options.LogOf))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
	return nil
}

func (c *Client) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lock.Close()
	for _, f := range c.passed {
		f.Close()
	}
}

// File returns the client's lock, for a child to inherit. What the jobs hold is free then when they have left, or when
// both processes have ended.
func (c *Client) File() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := c.lock.File()
	if err == nil {
		c.passed = append(c.passed, f)
	}
	return f, err
}

// session uses a connection until it ends. The error is what the lease has said at its end.
func (c *Client) session(ctx context.Context, conn *net.UnixConn) error {
	server := serverOf(conn)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	c.mu.Lock()
	c.online, c.server, c.queue = true, server, c.book.requests()
	c.poke()
	c.mu.Unlock()
	var writer sync.WaitGroup
	writer.Go(func() { c.write(conn, ended) })
	err := c.read(conn)
	c.mu.Lock()
	c.online, c.server, c.queue = false, nil, nil
	c.mu.Unlock()
	close(ended)
	stop()
	conn.Close()
	writer.Wait()
	return err
}

// write sends the queue until the connection ends. If it cannot, the reader has yet to take what has come.
func (c *Client) write(conn net.Conn, ended <-chan struct{}) {
	to := json.NewEncoder(conn)
	for {
		select {
		case <-ended:
			return
		case <-c.wake:
		}
		c.mu.Lock()
		queue := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, r := range queue {
			if err := to.Encode(r); err != nil {
				return
			}
		}
	}
}

func (c *Client) read(conn net.Conn) error {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			c.options.Log(fmt.Sprintf("the lease %s says what cannot be read: %v", c.options.Name, err))
			return nil
		}
		if a.Error != "" {
			return fmt.Errorf("the lease %s: %s", c.options.Name, a.Error)
		}
		c.mu.Lock()
		out, ok := c.book.heard(a)
		c.mu.Unlock()
		if ok {
			c.options.Answer(out)
		}
	}
	return nil
}

// Detach starts a program that outlives this process and its terminal. What it prints goes to a file.
func Detach(log string, program string, args ...string) error {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = file, file
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	go command.Wait() // so that it leaves nothing behind if this process outlives it
	return nil
}
