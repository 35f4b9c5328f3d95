package bus

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

// ConnOptions are the settings of a connection.
type ConnOptions struct {
	Name    string               // who connects, for the server's log; "": the user
	OnState func(connected bool) // is told when the connection is lost and when it is back, in order; nil: nobody
	Log     func(line string)    // gets what goes wrong and has nobody else to be told, from any goroutine; nil: nobody
}

// Conn is a connection of one user to a NATS server.
type Conn struct {
	credentials Credentials
	options     ConnOptions
	nats        *nats.Conn
	inbox       string        // prefix of the subjects for answers
	closed      chan struct{} // no callback of nats runs any more
	retries     sync.WaitGroup

	mu      sync.Mutex
	closing bool
	trouble string              // that was logged last
	asked   uint64              // requests so far
	waiting map[string]*waiting // for answers, by the last token of their subject
	ears    map[*ear]bool
}

var _ wire.Bus = (*Conn)(nil)

// connectTime is how long a server may take to answer a new connection, also where the machine is busy.
const connectTime = 10 * time.Second

// Connect connects to a server. It fails at once when nobody listens or the credentials are wrong. Later on, a lost
// connection is made again as long as it takes.
func Connect(ctx context.Context, to Credentials, o ConnOptions) (*Conn, error) {
	return connect(ctx, to, o, nil)
}

func connect(ctx context.Context, to Credentials, o ConnOptions, within nats.InProcessConnProvider) (*Conn, error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.OnState == nil {
		o.OnState = func(bool) {}
	}
	if o.Name == "" {
		o.Name = to.User
	}
	c := &Conn{
		credentials: to, options: o, closed: make(chan struct{}),
		inbox: nats.NewInbox() + ".", waiting: make(map[string]*waiting), ears: make(map[*ear]bool),
	}
	pool, err := roots(to.CA)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to.URL, err)
	}
	with := []nats.Option{
		nats.Name(o.Name), nats.Timeout(connectTime), nats.UserInfo(to.User, to.Password),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(pause), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(c.lost), nats.ReconnectHandler(c.back),
		nats.ErrorHandler(c.failed), nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	dial := new(dialer)
	if within != nil {
		with = append(with, nats.InProcessServer(within))
	} else {
		with = append(with, nats.SetCustomDialer(dial))
		if pool != nil {
			with = append(with, nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}))
		}
	}
	if c.nats, err = nats.Connect(to.URL, with...); err != nil {
		return nil, connectError(to, err, dial.failure())
	}
	_, err = c.nats.Subscribe(c.inbox+"*", c.answered)
	if err == nil && to.User == Controller {
		err = c.prepare(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to %s: %w", c.server(), err)
	}
	return c, nil
}

func (c *Conn) prepare(ctx context.Context) error {
	js, err := jetstream.New(c.nats)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return prepare(ctx, js)
}

// server names the other side in errors.
func (c *Conn) server() string {
	if c.credentials.URL == "" {
		return "the server of this process"
	}
	return c.credentials.URL
}

// Connected reports whether there is a connection now.
func (c *Conn) Connected() bool { return c.nats.IsConnected() }

// Close ends the connection and all callbacks, and waits for them; so none of them, OnState included, may call it.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closing = true
	ears := make([]*ear, 0, len(c.ears))
	for e := range c.ears {
		ears = append(ears, e)
	}
	c.mu.Unlock()
	c.release(fmt.Errorf("%w to %s: it was closed", wire.ErrAway, c.server()), "")
	for _, e := range ears {
		e.stop()
	}
	c.retries.Wait()
	c.nats.Close()
	<-c.closed
	return nil
}

// lost is called by nats when the connection is lost, and once in Close.
func (c *Conn) lost(_ *nats.Conn, err error) {
	c.release(c.away(), "")
	if c.isClosing() {
		return
	}
	if err != nil {
		c.options.Log(fmt.Sprintf("connection to %s is lost: %v", c.server(), err))
	}
	c.options.OnState(false)
}

// back is called by nats when there is a connection again.
func (c *Conn) back(*nats.Conn) {
	if c.isClosing() {
		return
	}
	c.options.OnState(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = ""
	for e := range c.ears {
		c.heal(e)
	}
}

// failed is called by nats for what goes wrong and belongs to no call. What repeats is logged once.
func (c *Conn) failed(_ *nats.Conn, sub *nats.Subscription, err error) {
	if refused := refusedSubject(err); refused != "" {
		c.release(fmt.Errorf("user %q of %s may not publish to %s", c.credentials.User, c.server(), refused), refused)
	}
	c.mu.Lock()
	for e := range c.ears {
		if e.sub == sub {
			c.heal(e) // it was too slow
		}
	}
	known := c.closing || c.trouble == err.Error()
	c.trouble = err.Error()
	c.mu.Unlock()
	if !known {
		c.options.Log(fmt.Sprintf("connection to %s: %v", c.server(), err))
	}
}

func (c *Conn) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

func (c *Conn) away() error {
	return fmt.Errorf("%w to %s: it comes back by itself when the server does", wire.ErrAway, c.server())
}
