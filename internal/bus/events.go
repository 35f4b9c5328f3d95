package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

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
	return c.hear(subject, func(m *nats.Msg) { each(m.Subject, m.Data) })
}

// Ask sends a request and returns its one answer, or an error that is [wire.ErrNobody] when nobody serves.
func (c *Conn) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := c.request(ctx, &nats.Msg{Subject: subject, Data: data}, askPatience)
	if err != nil {
		return nil, fmt.Errorf("ask %s at %s: %w", subject, c.server(), err)
	}
	return m.Data, nil
}

// Serve reports requests. Each is answered by calling reply, once, from any goroutine, then or later.
func (c *Conn) Serve(subject string, each func(data []byte, reply func(answer []byte))) (func(), error) {
	return c.hear(subject, func(m *nats.Msg) {
		each(m.Data, func(answer []byte) {
			if m.Reply == "" {
				return
			}
			if err := c.publish(&nats.Msg{Subject: m.Reply, Data: answer}); err != nil {
				c.options.Log(fmt.Sprintf("answer a request to %s: %v", subject, err))
			}
		})
	})
}

func (c *Conn) hear(subject string, each func(m *nats.Msg)) (func(), error) {
	e, err := c.listen(subject, nil, each)
	if err != nil {
		return nil, err
	}
	e.mu.Unlock()
	return e.stop, nil
}
