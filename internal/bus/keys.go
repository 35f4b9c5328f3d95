package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"tensile/wire"
)

// Put sets the latest value of a key.
func (c *Conn) Put(ctx context.Context, key string, value []byte) error {
	return c.setKey(ctx, "put", key, &nats.Msg{Data: value})
}

// Delete removes a key; one that is not there is no error.
func (c *Conn) Delete(ctx context.Context, key string) error {
	return c.setKey(ctx, "delete", key, &nats.Msg{Header: nats.Header{operation: {"DEL"}}})
}

func (c *Conn) setKey(ctx context.Context, what, key string, m *nats.Msg) error {
	p, err := keyPlace(key)
	if err == nil {
		m.Subject = p.subject
		err = c.store(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, key, err)
	}
	return nil
}

// Get returns the latest value of a key, or an error that is [wire.ErrNotFound].
func (c *Conn) Get(ctx context.Context, key string) ([]byte, error) {
	p, err := keyPlace(key)
	var m message
	if err == nil {
		m, err = c.newest(ctx, p)
	}
	if err == nil && m.deleted {
		err = wire.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return m.data, nil
}

// Watch reports the keys of a pattern, then every change, as [wire.Bus] says.
func (c *Conn) Watch(ctx context.Context, pattern string, each func(key string, value []byte)) (func(), error) {
	p, err := keyPlace(pattern)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", pattern, err)
	}
	const prefix = len("$KV.")
	known := make(map[string]bool) // keys that each was told of
	stop, err := c.read(ctx, p, func(m message) {
		key := m.subject[prefix:]
		switch {
		case !m.deleted:
			known[key] = true
			each(key, m.data)
		case known[key]:
			delete(known, key)
			each(key, nil)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", pattern, err)
	}
	return stop, nil
}

// Append adds a line to a log. A line of more than 16 KiB is cut.
func (c *Conn) Append(ctx context.Context, log string, line []byte) error {
	p, err := logPlace(log)
	if err == nil {
		err = c.store(ctx, &nats.Msg{Subject: p.subject, Data: line[:min(len(line), maxLine)]})
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", log, err)
	}
	return nil
}

// Follow reports the lines of a log, then each new one, as [wire.Bus] says. The newest 10,000 lines of a log are kept.
func (c *Conn) Follow(ctx context.Context, log string, each func(line []byte)) (func(), error) {
	p, err := logPlace(log)
	var stop func()
	if err == nil {
		stop, err = c.read(ctx, p, func(m message) { each(m.data) })
	}
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", log, err)
	}
	return stop, nil
}

// notFound reports whether there is none, or no more.
func notFound(err error) bool { return errors.Is(err, wire.ErrNotFound) }
