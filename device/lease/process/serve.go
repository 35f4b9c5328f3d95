package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"tensile/device/lease"
)

const (
	maxLine  = 1 << 20 // bytes
	maxQueue = 256     // answers to a client that does not read

	probeEvery = 10 * time.Millisecond // while it is not known whether a client lives
	lookEvery  = time.Second           // whether it is a client that has its slot
	sayAfter   = 10 * time.Second      // of waiting for clients before anything is granted
)

// ServeOptions are the settings of [Serve].
type ServeOptions struct {
	Linger time.Duration // it ends when for so long nobody was connected and nobody held anything; 0: 30 s
	Log    func(string)  // nil: nobody
}

const defaultLinger = 30 * time.Second

// server carries out what a hub says. All but the connections' goroutines is of the one that runs Serve.
type server struct {
	options ServeOptions
	name    string
	start   time.Time
	hub     *hub
	conns   map[string]*connection // by client
	all     map[*connection]bool
	events  chan func()
	done    <-chan struct{}
	work    sync.WaitGroup
	looked  time.Duration // when it was
	waiting bool          // it was said that clients are awaited
}

// connection is one with a client.
type connection struct {
	net.Conn
	client string // "": it has not said
	out    chan answer
}

// Serve is the process of the lease of a name at what [Listen] has returned for it, which it closes: it returns when
// nobody has needed it for a while, or when ctx ends.
func Serve(ctx context.Context, name string, listener net.Listener, o ServeOptions) {
	if o.Linger == 0 {
		o.Linger = defaultLinger
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &server{options: o, name: name, start: time.Now(), hub: newHub(taken(name)),
		conns: make(map[string]*connection), all: make(map[*connection]bool), events: make(chan func()),
		done: ctx.Done()}
	s.work.Go(func() { s.accept(listener) })
	s.run()
	cancel()
	listener.Close()
	for c := range s.all {
		c.Close()
		close(c.out)
	}
	s.work.Wait()
}

func (s *server) now() time.Duration { return time.Since(s.start) }

// run carries out events until nobody needs the process.
func (s *server) run() {
	var linger <-chan time.Time
	for {
		var wake, probe <-chan time.Time
		if at, ok := s.hub.m.Wake(); ok {
			wake = time.After(at - s.now())
		}
		if len(s.unknown()) > 0 {
			probe = time.After(probeEvery)
		}
		if len(s.all) > 0 || probe != nil {
			linger = nil
		} else if linger == nil {
			linger = time.After(s.options.Linger)
		}
		select {
		case <-s.done:
			return
		case <-linger:
			return
		case f := <-s.events:
			f()
		case <-wake:
			s.hub.tick(s.now())
		case <-probe:
			s.probe()
		}
		s.post()
	}
}

// post sends what the hub has to say. What is for a client that is not connected it says again when it is.
func (s *server) post() {
	for _, l := range s.hub.letters() {
		c := s.conns[l.client]
		if c == nil {
			continue
		}
		select {
		case c.out <- l.answer:
		default:
			s.options.Log(fmt.Sprintf("client %s does not read", l.client))
			c.Close()
		}
	}
}

// unknown returns the clients that may hold something, and are not connected: by their slots, where nothing else is
// known.
func (s *server) unknown() (ids []string) {
	for id := range s.hub.awaited {
		ids = append(ids, id)
	}
	for id := range s.hub.members {
		if s.conns[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// probe looks which of the clients that are not connected have ended. Their slots may be others' by then.
func (s *server) probe() {
	look := s.now()-s.looked >= lookEvery
	if look {
		s.looked = s.now()
	}
	for _, id := range s.unknown() {
		if slot := slotOf(id); free(s.name, slot) || look && foreign(s.name, slot) { // it holds nothing any more
			s.hub.gone(s.now(), id)
		}
	}
	if n := len(s.hub.awaited); n > 0 && !s.waiting && s.now() >= sayAfter {
		s.waiting = true
		s.options.Log(fmt.Sprintf("the lease %s grants nothing before its clients have said what they hold, and does "+
			"not hear of %d: end those that ss -xlp shows at %s- and that hang", s.name, n, address(s.name, "").Name))
	}
}

// do has the goroutine of Serve call f.
func (s *server) do(f func()) (ok bool) {
	select {
	case s.events <- f:
		return true
	case <-s.done:
		return false
	}
}

func (s *server) accept(l net.Listener) {
	said := false // that another user's process was refused, which may come again and again
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c := &connection{Conn: conn, out: make(chan answer, maxQueue)}
		if other, ok := conn.(syscall.Conn); ok { // of a client of this machine
			if err := strange(other); err != nil {
				if !said {
					s.options.Log("a process was refused: " + err.Error())
				}
				said = true
				conn.Close() // which finds out by itself
				continue
			}
		}
		if !s.do(func() {
			s.all[c] = true
			s.work.Go(func() { s.read(c) })
			s.work.Go(func() { s.write(c) })
		}) {
			conn.Close()
		}
	}
}

// write sends answers until the connection is closed.
func (s *server) write(c *connection) {
	to := json.NewEncoder(c)
	for a := range c.out {
		if err := to.Encode(a); err != nil || a.Error != "" {
			c.Close() // the reader sees that
		}
	}
}

// read takes what a client says until the connection ends.
func (s *server) read(c *connection) {
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r request
		err := json.Unmarshal(lines.Bytes(), &r)
		if !s.do(func() {
			if err == nil {
				err = s.take(c, &r)
			}
			if err != nil {
				if !errors.Is(err, errAlive) {
					s.options.Log(fmt.Sprintf("client %s: %v", c.client, err))
				}
				select {
				case c.out <- answer{Error: err.Error()}:
				default:
					c.Close()
				}
			}
		}) {
			return
		}
	}
	s.do(func() {
		c.Close()
		close(c.out)
		delete(s.all, c)
		if s.conns[c.client] == c {
			delete(s.conns, c.client)
		}
	})
}

// knows returns an error if a capacity names a method that this process does not have.
func knows(c *lease.Capacity) error {
	if c == nil || c.Method == "" || lease.NewMethod(c.Method) != nil {
		return nil
	}
	return fmt.Errorf("the lease does not know the method %.20q: end what trains on this device, then run the same "+
		"release", c.Method)
}

// errAlive is for a client that wants to know no more.
var errAlive = errors.New("the lease lives")

// take takes one line of a client.
func (s *server) take(c *connection, r *request) error {
	switch {
	case r.Hello != nil && c.client == "":
		hi := r.Hello
		if hi.Version == onlyAlive {
			return errAlive
		}
		if hi.Version != version {
			return fmt.Errorf("the lease speaks version %d and a client %d: end what trains on this device, then run "+
				"the same release", version, hi.Version)
		}
		if !named(hi.Client) {
			return fmt.Errorf("a client is named %.70q: a name is a slot, x, and letters and digits", hi.Client)
		}
		if err := knows(hi.Capacity); err != nil {
			return err
		}
		for id, old := range s.conns { // also of one that has ended: the slot is another's
			if slotOf(id) == slotOf(hi.Client) {
				old.Close()
				delete(s.conns, id)
			}
		}
		c.client, s.conns[hi.Client] = hi.Client, c
		s.hub.greet(s.now(), hi)
	case c.client == "" || s.conns[c.client] != c:
		return errors.New("a message before its hello")
	case r.Told != nil:
		return s.hub.told(s.now(), c.client, r.Told)
	case r.Capacity != nil:
		if err := knows(r.Capacity); err != nil {
			return err
		}
		s.hub.resize(s.now(), r.Capacity)
	default:
		return errors.New("an empty message")
	}
	return nil
}
