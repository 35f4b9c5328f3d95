package reduce

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"tensile/wire"
)

// Place is where a replica stands among those of its job, and what they train.
type Place struct {
	Number, Replicas int
	Begin            int    // the iteration before which this replica begins
	Network          string // what it trains; all replicas must name the same
}

const (
	// greeting is how long two replicas may take to make sure of each other; one that is later tries again
	greeting = 30 * time.Second
	// patience is how long a replica tries to reach the one before it, which listened before anybody heard of it
	patience = time.Minute
	// strangers is how many connections are greeted at a time; one more, and the oldest is closed
	strangers = 64
)

// Open returns a replica's place in a line that is made meanwhile: the first Mean waits for it. Each replica but the
// last listens for the next one, at an address of this host, and returns where; each but the first is told that by
// Join. Where the address is zero all are on this host, and want no network. The connections are TLS 1.3, and both
// sides know each other by the Meeting.
func Open(address netip.Addr, p Place) (*Line, *wire.Meeting, error) {
	var next *listener
	if p.Number < p.Replicas-1 {
		var err error
		if next, err = listen(address); err != nil {
			return nil, nil, fmt.Errorf("replica %d of %d cannot listen for the next one: %w", p.Number, p.Replicas,
				err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Line{number: p.Number, replicas: p.Replicas, joined: make(chan struct{}), cancel: cancel,
		before: make(chan wire.Meeting, 1)}
	go func() {
		defer close(l.joined)
		below, above, err := p.join(ctx, l.before, next)
		l.mu.Lock()
		if l.err == nil && err == nil {
			if below != nil {
				l.below = below
				l.watch(p.Number-1, below.idle)
			}
			if above != nil {
				l.above = above
				l.watch(p.Number+1, above.idle)
			}
		}
		l.mu.Unlock()
		switch {
		case err != nil:
			l.fail(err)
		case l.failure() != nil:
			closeAll(below, above)
		}
	}()
	if next == nil {
		return l, nil, nil
	}
	return l, &next.meeting, nil
}

// Join tells where the replica before this one listens. What is told later counts, until the connection is there.
func (l *Line) Join(m wire.Meeting) {
	select {
	case <-l.before:
	default:
	}
	l.before <- m
}

// join connects a replica with those before and behind it.
func (p Place) join(ctx context.Context, before <-chan wire.Meeting, next *listener) (below, above *link, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var joining sync.WaitGroup
	if p.Number > 0 {
		joining.Go(func() {
			var err error
			if below, err = p.dial(ctx, before); err != nil {
				cancel(err)
			}
		})
	}
	if next != nil {
		joining.Go(func() {
			var err error
			if above, err = p.await(ctx, next); err != nil {
				cancel(err)
			}
		})
	}
	joining.Wait()
	if err := context.Cause(ctx); err != nil {
		closeAll(below, above)
		return nil, nil, err
	}
	return below, above, nil
}

func closeAll(all ...*link) {
	for _, c := range all {
		if c != nil {
			c.Close()
		}
	}
}

// alive has the system notice within seconds that the host at the other side of an idle connection is gone: that host
// answers for its processes, also for one that is stopped.
var alive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 4}

// listener is where a replica listens for the next one.
type listener struct {
	net.Listener
	meeting     wire.Meeting
	certificate tls.Certificate
}

func listen(address netip.Addr) (*listener, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{}, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	config := net.ListenConfig{KeepAliveConfig: alive}
	at := wire.LocalMeeting + rand.Text()
	if address.IsValid() {
		at = netip.AddrPortFrom(address, 0).String()
	}
	l, err := config.Listen(context.Background(), networkOf(at), at)
	if err != nil {
		return nil, err
	}
	return &listener{l, wire.Meeting{Address: l.Addr().String(), Key: rand.Text(), Certificate: fingerprint(der)},
		tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// networkOf is what an address of a Meeting belongs to.
func networkOf(address string) string {
	if strings.HasPrefix(address, wire.LocalMeeting) {
		return "unix"
	}
	return "tcp"
}

// fingerprint is what a Meeting says of a certificate.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// connection is a TLS connection that closes without a word: what was said says how long it is.
type connection struct {
	*tls.Conn
	below net.Conn
}

func (c connection) Close() error { return c.below.Close() }

// link is the two connections to a neighbour: that of the means, and an idle one. While something is on its way the
// system cannot tell a host that is gone from a process that does not read, but after minutes; by the idle one it can.
type link struct {
	connection
	idle connection
}

func (l *link) Close() error { return errors.Join(l.connection.Close(), l.idle.Close()) }

// purpose is what who dials says of a connection.
type purpose struct {
	idle bool
	pair [16]byte // random bytes by which the two ends of an attempt are told from those of other attempts
}

// await returns the connections of the next replica. Each that comes is greeted by a goroutine of its own, so that one
// that says nothing keeps no other waiting, nor do many: the newest are greeted, and the next replica tries again.
func (p Place) await(ctx context.Context, l *listener) (*link, error) {
	ctx, cancel := context.WithCancel(ctx)
	var greetings sync.WaitGroup
	defer greetings.Wait()
	defer cancel()
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	type arrival struct {
		c    connection
		what purpose
		err  error
	}
	arrivals := make(chan arrival)
	arrive := func(a arrival) {
		select {
		case arrivals <- a:
		case <-ctx.Done():
			if a.err == nil {
				a.c.Close()
			}
		}
	}
	greetings.Go(func() {
		var giveUp [strangers]context.CancelFunc // ends the newest attempts of strangers
		for i := 0; ; i = (i + 1) % strangers {
			c, err := l.Accept()
			if err != nil {
				arrive(arrival{err: err})
				return
			}
			if giveUp[i] != nil {
				giveUp[i]()
			}
			greeting, cancel := context.WithCancel(ctx)
			giveUp[i] = cancel
			greetings.Go(func() {
				defer cancel()
				greeted, what, err := p.greet(greeting, tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS13,
					Certificates: []tls.Certificate{l.certificate}, SessionTicketsDisabled: true}), l.meeting.Key,
					p.Number+1, nil)
				if err == nil || errors.As(err, new(*differsError)) {
					arrive(arrival{greeted, what, err})
				} // else, whoever that was, it was not the next replica
			})
		}
	})
	single := make(map[[16]byte]arrival) // of attempts that were given up, and of one whose other is on its way
	defer func() {
		for _, a := range single {
			a.c.Close()
		}
	}()
	for {
		select {
		case a := <-arrivals:
			first, come := single[a.what.pair]
			switch {
			case a.err != nil:
				return nil, a.err
			case !come:
				single[a.what.pair] = a
			case first.what.idle == a.what.idle:
				a.c.Close()
			case a.what.idle:
				delete(single, a.what.pair)
				return &link{first.c, a.c}, nil
			default:
				delete(single, a.what.pair)
				return &link{a.c, first.c}, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// dial connects to the replica before this one, as soon as it is known where that is.
func (p Place) dial(ctx context.Context, before <-chan wire.Meeting) (*link, error) {
	const shortest, longest = 20 * time.Millisecond, time.Second
	var m wire.Meeting
	var since time.Time
	pause := shortest
	retry := time.NewTimer(0)
	defer retry.Stop()
	var err error
	for {
		select {
		case m = <-before:
			since, pause = time.Now(), shortest
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		}
		if m == (wire.Meeting{}) {
			continue
		}
		var c *link
		if c, err = p.try(ctx, m); err == nil || errors.As(err, new(*differsError)) {
			return c, err
		}
		if ctx.Err() == nil && time.Since(since) > patience {
			return nil, &LostError{p.Number - 1, fmt.Errorf("cannot be reached: %w (executors of one job must reach "+
				"each other by TCP)", err)}
		}
		retry.Reset(pause)
		pause = min(2*pause, longest)
	}
}

func (p Place) try(ctx context.Context, m wire.Meeting) (*link, error) {
	what := purpose{idle: true}
	if _, err := rand.Read(what.pair[:]); err != nil {
		return nil, err
	}
	idle, err := p.call(ctx, m, what)
	if err != nil {
		return nil, err
	}
	what.idle = false
	c, err := p.call(ctx, m, what)
	if err != nil {
		idle.Close()
		return nil, err
	}
	return &link{c, idle}, nil
}

// call dials one of the connections of a pair.
func (p Place) call(ctx context.Context, m wire.Meeting, what purpose) (connection, error) {
	dialer := net.Dialer{KeepAliveConfig: alive, Timeout: greeting}
	below, err := dialer.DialContext(ctx, networkOf(m.Address), m.Address)
	if err != nil {
		return connection{}, err
	}
	c, _, err := p.greet(ctx, tls.Client(below, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error { // in the place of authorities
			if len(s.PeerCertificates) == 0 || fingerprint(s.PeerCertificates[0].Raw) != m.Certificate {
				return errors.New("it shows another certificate than the replica said")
			}
			return nil
		}}), m.Key, p.Number-1, &what)
	return c, err
}

// hello is what two neighbours tell each other: digests of equal length, so that nothing that a stranger sends is
// waited for or read for long, and by which the two connections of a pair are known.
type hello struct {
	key  [sha256.Size]byte // a digest of the meeting's key, who says it, and what the connection is for
	job  [sha256.Size]byte
	pair [16]byte
}

const helloBytes = 2*sha256.Size + 16

func (p Place) newHello(key string, number int, what purpose) (h hello) {
	copy(h.key[:], digest(fmt.Sprintf("%s %d %t", key, number, what.idle)))
	copy(h.job[:], digest(fmt.Sprintf("%d %d %s", p.Replicas, p.Begin, p.Network)))
	h.pair = what.pair
	return h
}

func (h hello) bytes() []byte { return slices.Concat(h.key[:], h.job[:], h.pair[:]) }

func (h hello) matches(key []byte) bool { return subtle.ConstantTimeCompare(h.key[:], key) == 1 }

// differsError tells of a neighbour that is the right one, and trains something else.
type differsError struct{ replica int }

func (e *differsError) Error() string {
	return fmt.Sprintf("replica %d trains another network, begins at another iteration or has another number of "+
		"replicas: begin all replicas of a job alike", e.replica)
}

// greet makes sure that a connection leads to a neighbour, or closes it. Who dials speaks first, hears the other, and
// confirms: so both have the connection, or the one that listens goes on listening. dials is what who dials says of it,
// and nil for the other, who hears it.
func (p Place) greet(ctx context.Context, c *tls.Conn, key string, neighbour int, dials *purpose) (_ connection,
	what purpose, err error) {
	below := c.NetConn()
	stop := context.AfterFunc(ctx, func() { below.Close() })
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			below.Close()
		}
	}()
	if err := c.SetDeadline(time.Now().Add(greeting)); err != nil {
		return connection{}, what, err
	}
	if dials != nil {
		what = *dials
		if _, err := c.Write(p.newHello(key, p.Number, what).bytes()); err != nil {
			return connection{}, what, err
		}
	}
	var said [helloBytes]byte
	if _, err := io.ReadFull(c, said[:]); err != nil {
		return connection{}, what, err
	}
	if dials == nil {
		copy(what.pair[:], said[2*sha256.Size:])
		what.idle = p.newHello(key, neighbour, purpose{idle: true}).matches(said[:sha256.Size])
	}
	theirs := p.newHello(key, neighbour, what)
	if !theirs.matches(said[:sha256.Size]) {
		return connection{}, what, errors.New("it does not know the key")
	}
	if dials == nil {
		if _, err := c.Write(p.newHello(key, p.Number, what).bytes()); err != nil {
			return connection{}, what, err
		}
	}
	if !slices.Equal(said[sha256.Size:2*sha256.Size], theirs.job[:]) {
		return connection{}, what, &differsError{neighbour}
	}
	confirmed := [1]byte{1}
	if dials != nil {
		_, err = c.Write(confirmed[:])
	} else {
		_, err = io.ReadFull(c, confirmed[:])
	}
	if err != nil {
		return connection{}, what, err
	}
	return connection{c, below}, what, c.SetDeadline(time.Time{})
}

func digest(text string) []byte {
	d := sha256.Sum256([]byte(text))
	return d[:]
}
