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
	// askTimeout is for a request to the controller, and to the server of one: where it ends, so does the connection,
	// so no answer within seconds only says that its machine is busy.
	askTimeout = time.Minute
	// answerTimeout is for a request to servers of others, which end one by one, and behind which others answer.
	answerTimeout = 5 * time.Second
)

// patience is how long a request to the server may take.
func (c *Conn) patience() time.Duration {
	if c.credentials.External {
		return answerTimeout
	}
	return askTimeout
}

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
// connection is lost or the subject forbidden, and takes an answer with a header "Status: 503" for no answer: a stored
// message may have got that header from its sender.
func (c *Conn) request(ctx context.Context, m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
		if a.err == nil && len(a.msg.Data) == 0 && a.msg.Header.Get("Status") == "503" && sequenceOf(a.msg) == 0 {
			return nil, wire.ErrNobody
		}
		return a.msg, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer from %s: %w", c.server(), context.Cause(ctx))
	}
}

// publish sends a message, or says why it cannot.
func (c *Conn) publish(m *nats.Msg) error {
	if !c.nats.IsConnected() {
		return c.disconnectedError()
	}
	err := c.nats.PublishMsg(m)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%d bytes are over the limit of %d that the server has", len(m.Data), c.nats.MaxPayload())
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed):
		return c.disconnectedError()
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

// Publish sends an event to those who are subscribed now, at most once.
func (c *Conn) Publish(subject string, data []byte) error {
	if err := c.publish(&nats.Msg{Subject: subject, Data: data}); err != nil {
		return fmt.Errorf("publish to %s: %w", subject, err)
	}
	return nil
}

// Subscribe reports the events of a subject, in which "*" stands for any token. Of events that come faster than each
// takes them, those that do not fit 64 MiB are lost.
func (c *Conn) Subscribe(subject string, each func(subject string, data []byte)) (func(), error) {
	return c.subscribe(subject, func(m *nats.Msg) { each(m.Subject, m.Data) })
}

// Ask sends a request and returns its one answer, or an error that is [wire.ErrNobody] when nobody serves.
func (c *Conn) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if c.credentials.External && subject == wire.ControlSubject { // elsewhere the server does this
		subject += "." + c.credentials.User
	}
	m, err := c.request(ctx, &nats.Msg{Subject: subject, Data: data}, askTimeout)
	if err != nil {
		return nil, fmt.Errorf("ask %s at %s: %w", subject, c.server(), err)
	}
	return m.Data, nil
}

// Serve reports requests, as [wire.Bus] says. The server appends to the subject of a request the user whose account it
// comes from. Who asks after that has ended is told at once that nobody serves. Requests of a user beyond what that may
// send get no answer.
func (c *Conn) Serve(subject string, each func(user string, data []byte, reply func(answer []byte))) (func(), error) {
	stop, err := c.subscribe(subject+".*", func(m *nats.Msg) {
		asks := strings.TrimPrefix(m.Subject, subject+".")
		name, person, ok := UserName(asks)
		if !(ok && person) && asks != Client && asks != Controller {
			return // no account has such a subject
		}
		if c.mayAsk != nil && !c.mayAsk(asks, m.Size()) {
			return // an answer would keep the requests of others waiting
		}
		each(name, m.Data, func(answer []byte) {
			if m.Reply == "" {
				return
			}
			if err := c.publish(&nats.Msg{Subject: m.Reply, Data: answer}); err != nil {
				c.options.Log(fmt.Sprintf("answer a request to %s: %v", subject, err))
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return func() {
		stop()
		if c.Connected() { // else the server knows
			_ = c.nats.FlushTimeout(c.patience()) // after which it does not hand on requests
		}
	}, nil
}

func (c *Conn) subscribe(subject string, each func(m *nats.Msg)) (func(), error) {
	s, err := c.listen(subject, nil, each)
	if err != nil {
		return nil, err
	}
	s.mu.Unlock()
	return s.stop, nil
}
