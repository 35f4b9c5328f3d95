package bus

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// ear is a subscription whose callbacks come one after the other, and end with it.
type ear struct {
	conn   *Conn
	sub    *nats.Subscription
	end    chan struct{} // closed when it stops
	once   sync.Once
	reader *reader // of Watch and Follow

	mu      sync.Mutex // held while a callback runs
	stopped bool
	healing bool // under the mutex of conn
}

// listen subscribes; each is called with the ear's mutex held. The ear is returned with its mutex held: callbacks wait
// until that is released.
func (c *Conn) listen(subject string, r *reader, each func(m *nats.Msg)) (*ear, error) {
	if !c.nats.IsConnected() {
		return nil, c.away()
	}
	e := &ear{conn: c, end: make(chan struct{}), reader: r}
	e.mu.Lock()
	sub, err := c.nats.Subscribe(subject, func(m *nats.Msg) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.stopped {
			each(m)
		}
	})
	if err != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	c.mu.Lock()
	e.sub = sub
	c.ears[e] = true
	closing := c.closing
	c.mu.Unlock()
	err = c.nats.FlushTimeout(patience) // after which the server has it, or has refused it
	switch refusal := c.nats.LastError(); {
	case closing || errors.Is(err, nats.ErrConnectionClosed):
		err = c.away()
	case err != nil:
		err = fmt.Errorf("subscribe to %s: %w", subject, err)
	case errors.Is(refusal, nats.ErrPermissionViolation) && strings.Contains(refusal.Error(), fmt.Sprintf("Subscription to %q", subject)):
		err = fmt.Errorf("user %q of %s may not listen to %s", c.credentials.User, c.server(), subject)
	}
	if err != nil {
		e.stopped = true
		e.mu.Unlock()
		e.stop()
		return nil, err
	}
	return e, nil
}

// stop ends the callbacks, and waits for one that runs.
func (e *ear) stop() {
	e.once.Do(func() {
		close(e.end)
		_ = e.sub.Unsubscribe() // fails only when the connection is closed
		e.conn.mu.Lock()
		delete(e.conn.ears, e)
		e.conn.mu.Unlock()
	})
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
}
