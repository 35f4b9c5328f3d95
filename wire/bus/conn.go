package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"regexp"
	"strings"
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
	Log     func(line string)    // gets errors that no call returns and what is back, from any goroutine; nil: nobody
}

// Conn is a connection of one user to a NATS server.
type Conn struct {
	// credentials are what it connects with.
	credentials Credentials
	// options are the caller's.
	options ConnOptions
	// nats is the connection itself.
	nats *nats.Conn
	// inbox is the prefix of the subjects for answers.
	inbox string
	// closed is closed when no callback of nats runs any more.
	closed chan struct{}
	// end is closed when Close begins.
	end chan struct{}
	// retries counts the goroutines that try something again.
	retries sync.WaitGroup
	// mayAsk is asked whether a user may send a request of some bytes; nil: each may, as at external servers.
	mayAsk func(user string, bytes int) bool

	// mu guards the fields that follow.
	mu sync.Mutex
	// closing says that Close has begun.
	closing bool
	// refused says that the server, which knew the password before, refuses it.
	refused bool
	// lastError is the error that was logged last.
	lastError string
	// asked is how many requests were sent.
	asked uint64
	// waiting are the requests without an answer, by the last token of the answer's subject.
	waiting map[string]*waiting
	// subscriptions are those that were not stopped.
	subscriptions map[*subscription]bool
	// fence is that of the leader whose writes this connection makes.
	fence fence
	// made are the buckets that are known to be there, by stream.
	made map[string]bool
}

var _ wire.Bus = (*Conn)(nil)

// connectTimeout is how long a server may take to answer a new connection, also where the machine is busy: an executor
// that gives up has been started in vain.
const connectTimeout = time.Minute

// Connect connects to a server. It fails at once when nobody listens, the credentials are wrong or ctx is done. A
// connection that is lost later is tried again until it succeeds or is closed.
func Connect(ctx context.Context, to Credentials, o ConnOptions) (*Conn, error) {
	return connect(ctx, to, o, nil, connectTimeout)
}

func connect(ctx context.Context, to Credentials, o ConnOptions, within nats.InProcessConnProvider,
	timeout time.Duration) (*Conn, error) {
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
		credentials: to, options: o, closed: make(chan struct{}), end: make(chan struct{}),
		inbox: nats.NewInbox() + ".", waiting: make(map[string]*waiting), made: make(map[string]bool),
		subscriptions: make(map[*subscription]bool),
	}
	pool, err := certPool(to.CA)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to.URL, err)
	}
	with := []nats.Option{
		nats.Name(o.Name), nats.Timeout(timeout),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(c.handleDisconnect), nats.ReconnectHandler(c.handleReconnect),
		nats.ErrorHandler(c.failed), nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if to.External {
		with = append(with, to.Login.options()...)
	} else {
		with = append(with, nats.UserInfo(to.User, to.Password))
	}
	dial := newDialer(timeout)
	address := to.URL
	if l := localServerOf(to.URL, dial); l != nil {
		within, address = l, ""
	}
	if within != nil {
		with = append(with, nats.InProcessServer(within))
	} else {
		with = append(with, nats.SetCustomDialer(dial))
		if pool != nil {
			with = append(with, nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}))
		}
	}
	goOn := context.AfterFunc(ctx, dial.abort)
	c.nats, err = nats.Connect(address, with...)
	for tries := 0; saysNothing(err) && tries < 10; tries++ {
		c.nats, err = nats.Connect(address, with...)
	}
	switch aborted := !goOn(); {
	case aborted:
		if err == nil {
			c.Close()
		}
		return nil, fmt.Errorf("connect to %s: %w", c.server(), context.Cause(ctx))
	case err != nil:
		return nil, connectError(to, err, dial.failure(), timeout)
	}
	_, err = c.nats.Subscribe(c.inbox+"*", c.answered)
	if err == nil && to.External {
		err = c.checkServer()
	}
	if err == nil && to.User == Controller {
		err = c.prepare(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to %s: %w", c.server(), err)
	}
	if to.External {
		c.retries.Go(c.poll)
	}
	return c, nil
}

// saysNothing reports whether an attempt to connect has failed before the server has said whether it refuses. It asks
// by itself whether a client lives that is slow, and nats.go takes the question for a wrong answer. Where it closes the
// connection at once, its reason may be lost.
func saysNothing(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "expected 'PONG', got 'PING'") ||
		strings.Contains(err.Error(), "connection closed by remote after TLS handshake"))
}

func (c *Conn) prepare(ctx context.Context) error {
	if c.credentials.External {
		return c.prepareExternal(ctx)
	}
	js, err := jetstream.New(c.nats)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
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

// User is who is connected.
func (c *Conn) User() string { return c.credentials.User }

// Address is the address of this host by which it is connected; zero: it is not, or it has no such address.
func (c *Conn) Address() netip.Addr {
	at, err := netip.ParseAddrPort(c.nats.LocalAddr())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// Connected reports whether there is a connection now.
func (c *Conn) Connected() bool { return c.nats.IsConnected() }

// Close ends the connection and all callbacks, and waits for them; so none of them, OnState included, may call it.
func (c *Conn) Close() error {
	c.mu.Lock()
	if !c.closing {
		close(c.end)
	}
	c.closing = true
	subscriptions := make([]*subscription, 0, len(c.subscriptions))
	for s := range c.subscriptions {
		subscriptions = append(subscriptions, s)
	}
	c.mu.Unlock()
	c.release(fmt.Errorf("%w to %s: it was closed", wire.ErrAway, c.server()), "")
	for _, s := range subscriptions {
		s.stop()
	}
	c.retries.Wait()
	c.nats.Close()
	<-c.closed
	return nil
}

// handleDisconnect is called by nats when the connection is lost, and once in Close.
func (c *Conn) handleDisconnect(_ *nats.Conn, err error) {
	c.release(c.disconnectedError(), "")
	if c.isClosing() {
		return
	}
	if err != nil {
		c.options.Log(fmt.Sprintf("connection to %s is lost: %v", c.server(), err))
	}
	c.options.OnState(false)
}

// handleReconnect is called by nats when there is a connection again.
func (c *Conn) handleReconnect(*nats.Conn) {
	if c.isClosing() {
		return
	}
	c.options.Log(fmt.Sprintf("connection to %s is back", c.server()))
	c.options.OnState(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastError, c.refused = "", false
	for s := range c.subscriptions {
		c.resync(s)
	}
}

// failed is called by nats for errors that belong to no call. An error that repeats is logged once.
func (c *Conn) failed(_ *nats.Conn, sub *nats.Subscription, err error) {
	if refused := refusedSubject(err); refused != "" {
		c.release(fmt.Errorf("user %q of %s may not publish to %s", c.credentials.User, c.server(), refused), refused)
	}
	c.mu.Lock()
	for s := range c.subscriptions {
		if s.sub == sub {
			c.resync(s) // it was too slow
		}
	}
	c.refused = c.refused || errors.Is(err, nats.ErrAuthorization) // until it is back
	known := c.closing || c.lastError == err.Error()
	c.lastError = err.Error()
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

func (c *Conn) disconnectedError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		return fmt.Errorf("%w to %s: user %q is refused: its credentials were revoked, or are those "+
			"of another controller; ask for new ones", wire.ErrAway,
			c.server(), c.credentials.User)
	}
	return fmt.Errorf("%w to %s: it comes back by itself when the server does", wire.ErrAway, c.server())
}

// dialer dials and remembers why it could not: nats only says that there is no server, and knows of no context.
type dialer struct {
	timeout time.Duration
	dialing context.Context // done when it is aborted
	cancel  context.CancelFunc

	mu   sync.Mutex
	conn net.Conn // the newest
	err  error
}

func newDialer(timeout time.Duration) *dialer {
	d := &dialer{timeout: timeout}
	d.dialing, d.cancel = context.WithCancel(context.Background())
	return d
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: d.timeout}).DialContext(d.dialing, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn, d.err = conn, err; d.dialing.Err() != nil && err == nil {
		conn.Close()
	}
	return conn, err
}

// abort ends what is dialled and the newest connection.
func (d *dialer) abort() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel(); d.conn != nil {
		d.conn.Close()
	}
}

func (d *dialer) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// connectError says why no connection came about, and what to do.
func connectError(to Credentials, err, dialed error, timeout time.Duration) error {
	var remedy string
	_, untrusted := errors.AsType[x509.UnknownAuthorityError](err)
	_, misnamed := errors.AsType[x509.HostnameError](err)
	switch {
	case to.External && errors.Is(err, nats.ErrAuthorization):
		err, remedy = errors.New("this login is refused"), "give one that the servers know with --nats-auth"
	case to.External && untrusted:
		remedy = "give the certificate that signed the servers' with --nats-ca"
	case to.External && dialed != nil:
		err, remedy = dialed, "start the servers, or correct --nats"
	case dialed != nil:
		err, remedy = dialed, "start a controller there (tensile controller, with --listen for "+
			"other machines), or correct the URL"
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired):
		err = fmt.Errorf("user %q is refused", to.User)
		remedy = "use the credentials that the controller wrote into its state directory, or ask an administrator " +
			"for new ones if these were revoked"
	case untrusted:
		remedy = "use the credentials that the controller wrote, which hold the certificate (ca) that signed the " +
			"server's"
	case misnamed:
		remedy = "use a name or address that the controller listens on"
	case errors.Is(err, nats.ErrSecureConnWanted):
		remedy = "the server has no TLS: start it with TLS, or use credentials without a ca"
	case errors.Is(err, nats.ErrTimeout) || isTimeout(err):
		err, remedy = fmt.Errorf("no answer within %v", timeout),
			"see whether that is a NATS server, and how busy its machine is"
	default:
		remedy = "see whether that is a NATS server"
	}
	where := to.URL
	if where == "" {
		where = "the server of this process"
	}
	return fmt.Errorf("connect to %s: %w: %s", where, err, remedy)
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// reconnectDelay is how long to wait before another try to connect: longer and longer, and for each connection another.
func reconnectDelay(tries int) time.Duration {
	limit := 100 * time.Millisecond << min(max(tries-1, 0), 4)
	return limit/2 + rand.N(limit)
}

var publishRefused = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// refusedSubject returns the subject that a server forbids to publish to, "" for other errors.
func refusedSubject(err error) string {
	if match := publishRefused.FindStringSubmatch(err.Error()); match != nil {
		return match[1]
	}
	return ""
}
