package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"tensile/wire"
)

const (
	patience    = 5 * time.Second // how long to wait for any answer of the server
	askPatience = time.Minute     // and of who serves requests: a controller that plans answers nobody meanwhile
)

// waiting is a request that waits for its answer.
type waiting struct {
	subject string
	got     chan answer // holds one
}

type answer struct {
	msg *nats.Msg
	err error
}

// request sends a request and returns its answer. It does not use nats.Conn.Request, which goes on waiting when the
// connection is lost or the subject forbidden, and takes an answer that has a header "Status: 503" for none: whoever
// stored the message that is the answer may have given it that.
func (c *Conn) request(ctx context.Context, m *nats.Msg, patience time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := &waiting{subject: m.Subject, got: make(chan answer, 1)}
	c.mu.Lock()
	c.asked++
	token := strconv.FormatUint(c.asked, 36)
	c.waiting[token] = w
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, token)
		c.mu.Unlock()
	}()
	m.Reply = c.inbox + token
	if err := c.publish(m); err != nil {
		return nil, err
	}
	select {
	case a := <-w.got:
		if a.err == nil && len(a.msg.Data) == 0 && a.msg.Header.Get("Status") == "503" && sequence(a.msg) == 0 {
			return nil, wire.ErrNobody
		}
		return a.msg, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer from %s: %w", c.server(), ctx.Err())
	}
}

// publish sends a message, or says why it cannot.
func (c *Conn) publish(m *nats.Msg) error {
	if !c.nats.IsConnected() {
		return c.away()
	}
	err := c.nats.PublishMsg(m)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%d bytes are over the limit of %d that the server has", len(m.Data), c.nats.MaxPayload())
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed):
		return c.away()
	}
	return err
}

// answered is called by nats with every answer.
func (c *Conn) answered(m *nats.Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[strings.TrimPrefix(m.Subject, c.inbox)]; w != nil {
		w.answer(answer{msg: m})
	}
}

// answer hands an answer over if it is the first.
func (w *waiting) answer(a answer) {
	select {
	case w.got <- a:
	default:
	}
}

// release ends the requests to a subject, or all if it is "", with an error.
func (c *Conn) release(err error, subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		if subject == "" || w.subject == subject {
			w.answer(answer{err: err})
		}
	}
}
