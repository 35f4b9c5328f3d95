package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"tensile/wire"
)

// subscription has callbacks that come one after the other, and end with it.
type subscription struct {
	// conn is the connection that it belongs to.
	conn *Conn
	// sub is the subscription at nats.
	sub *nats.Subscription
	// end is closed when it stops.
	end chan struct{}
	// once stops it once.
	once sync.Once
	// reader is that of Watch and Follow; nil for other subscriptions.
	reader *reader
	// lost is how often it was found that the reader has missed something.
	lost atomic.Uint64

	// mu is held while a callback runs.
	mu sync.Mutex
	// stopped says that no callback runs any more.
	stopped bool
	// resyncing says that what is stored is being read again. The mutex of conn guards it.
	resyncing bool
}

// listen subscribes; each is called with the subscription's mutex held. The mutex is still held when listen returns: no
// callback runs before the caller releases it.
func (c *Conn) listen(subject string, r *reader, each func(m *nats.Msg)) (*subscription, error) {
	if !c.nats.IsConnected() {
		return nil, c.disconnectedError()
	}
	s := &subscription{conn: c, end: make(chan struct{}), reader: r}
	s.mu.Lock()
	sub, err := c.nats.Subscribe(subject, func(m *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.stopped {
			each(m)
		}
	})
	if err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	c.mu.Lock()
	s.sub = sub
	c.subscriptions[s] = true
	closing := c.closing
	c.mu.Unlock()
	err = c.nats.FlushTimeout(c.patience()) // after which the server has it, or has refused it
	switch refusal := c.nats.LastError(); {
	case closing || errors.Is(err, nats.ErrConnectionClosed):
		err = c.disconnectedError()
	case err != nil:
		err = fmt.Errorf("subscribe to %s: %w", subject, err)
	case isRefusal(refusal, subject):
		err = fmt.Errorf("user %q of %s may not listen to %s", c.credentials.User, c.server(), subject)
	}
	if err != nil {
		s.stopped = true
		s.mu.Unlock()
		s.stop()
		return nil, err
	}
	return s, nil
}

// isRefusal reports whether an error is the server's refusal of a subscription.
func isRefusal(err error, subject string) bool {
	return errors.Is(err, nats.ErrPermissionViolation) &&
		strings.Contains(err.Error(), fmt.Sprintf("Subscription to %q", subject))
}

// stop ends the callbacks, and waits for one that runs.
func (s *subscription) stop() {
	s.once.Do(func() {
		close(s.end)
		_ = s.sub.Unsubscribe() // fails only when the connection is closed
		s.conn.mu.Lock()
		delete(s.conn.subscriptions, s)
		s.conn.mu.Unlock()
	})
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
}

// reader reports the messages at a place of a stream in the order of their sequence numbers: first the stored ones,
// then the new ones.
//
// New ones come by a subscription, so some can be missed: while the connection is lost, when callbacks are slow, or
// when a server ends. The number of reconnects, plus that of dropped messages, plus how often something was found
// missing, is the reader's generation. When that has changed, the reader reads what is stored again before it takes
// what it hears. A reader of the latest values then reports all of them, a reader of a log goes on where it was.
type reader struct {
	*subscription
	place
	each       func(message)
	last       uint64 // the sequence number of the newest message reported
	generation uint64
}

// now is the prefix of the subject under which a stream publishes again what it has stored.
const now = "now."

// read starts a reader.
func (c *Conn) read(ctx context.Context, p place, each func(message)) (stop func(), err error) {
	r := &reader{place: p, each: each}
	r.subscription, err = c.listen(now+p.subject, r, r.handleRepublished)
	if err != nil {
		return nil, err
	}
	err = r.readStored(ctx)
	r.mu.Unlock()
	if err != nil {
		r.stop()
		return nil, err
	}
	return r.stop, nil
}

// generationNow is the generation of what is heard now.
func (s *subscription) generationNow() uint64 {
	dropped, _ := s.sub.Dropped() // fails only for one that has ended
	return s.conn.nats.Stats().Reconnects + uint64(max(dropped, 0)) + s.lost.Load()
}

// handleRepublished handles a message that a stream has published again.
func (r *reader) handleRepublished(m *nats.Msg) {
	if r.generationNow() != r.generation {
		r.conn.mu.Lock()
		r.conn.resync(r.subscription)
		r.conn.mu.Unlock()
		return
	}
	if got := newMessage(m); got.sequence > r.last {
		r.last = got.sequence
		r.each(got)
	}
}

// readStored reports what is stored.
func (r *reader) readStored(ctx context.Context) error {
	generation := r.generationNow()
	if r.latest {
		r.last = 0
	}
	err := r.reportStored(ctx)
	if err == nil {
		r.generation = generation
	}
	return err
}

// reportStored reports what is stored now. It takes at most as many messages as there were at first, in the order of
// their numbers: a sender that is quick could keep it busy for ever. Messages stored in the meantime are heard; so are
// those that have replaced one of the first.
func (r *reader) reportStored(ctx context.Context) error {
	if r.latest && !strings.Contains(r.subject, "*") {
		m, err := r.conn.newestMessage(ctx, r.place)
		return r.deliver(m, err)
	}
	if r.conn.byLeader(r.stream) {
		return r.reportUpTo(ctx)
	}
	m, left, err := r.conn.firstMessage(ctx, r.place, r.last+1)
	for ; err == nil && left > 0; left-- {
		if err := r.deliver(m, err); err != nil {
			return err
		}
		m, err = r.conn.nextMessage(ctx, r.place, r.last+1)
	}
	return r.deliver(m, err)
}

// reportUpTo is reportStored where the leader of the stream is asked, which does not count what follows.
func (r *reader) reportUpTo(ctx context.Context) error {
	newest, err := r.conn.newestMessage(ctx, r.place)
	for err == nil && r.last < newest.sequence {
		var m message
		if m, err = r.conn.nextMessage(ctx, r.place, r.last+1); err == nil {
			err = r.deliver(m, nil)
		}
	}
	if isNotFound(err) {
		return nil
	}
	return err
}

// deliver reports a message; there may be none.
func (r *reader) deliver(m message, err error) error {
	if errors.Is(err, wire.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.last = m.sequence
	r.each(m)
	return nil
}

// resync has a reader read what is stored again, in the background, until it has missed nothing; the mutex of the
// connection is held.
func (c *Conn) resync(s *subscription) {
	if s.reader == nil || s.resyncing || c.closing {
		return
	}
	s.resyncing = true
	c.retries.Go(func() {
		for wait := time.Duration(0); !s.endResync(); wait = resyncInterval {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-s.end:
				timer.Stop()
				return
			}
			if c.Connected() {
				s.scheduleRetry()
			}
		}
	})
}

// resyncInterval lies between two tries to read.
const resyncInterval = 100 * time.Millisecond

// endResync reports whether nothing was missed, and ends the resync if so.
func (s *subscription) endResync() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.resyncing = !s.stopped && s.reader.generation != s.generationNow()
	return !s.resyncing
}

func (s *subscription) scheduleRetry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.conn.patience())
	defer cancel()
	if err := s.reader.readStored(ctx); err != nil {
		s.conn.options.Log(fmt.Sprintf("connection to %s: read %s again: %v", s.conn.server(), s.reader.subject, err))
	}
}
