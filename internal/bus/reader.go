package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"tensile/wire"
)

// reader reports what is at a place of a stream in the order of its numbers: first what is there, then what comes.
//
// What comes is heard live, so it can be missed: while the connection is lost, or when callbacks are slow. The number of
// connections and of messages dropped, together the reader's era, tells; in a new era it asks for what is there before
// it heeds what it hears. A reader of the latest values then reports all of them, one of a log goes on where it was.
type reader struct {
	*ear
	place
	each func(message)
	last uint64 // the number of the newest message reported
	era  uint64
}

// now is the prefix of the subject under which a stream says again what it has stored.
const now = "now."

// read starts a reader.
func (c *Conn) read(ctx context.Context, p place, each func(message)) (stop func(), err error) {
	r := &reader{place: p, each: each}
	r.ear, err = c.listen(now+p.subject, r, r.hear)
	if err != nil {
		return nil, err
	}
	err = r.ask(ctx)
	r.mu.Unlock()
	if err != nil {
		r.stop()
		return nil, err
	}
	return r.stop, nil
}

// eraNow is the era that what is heard now belongs to.
func (e *ear) eraNow() uint64 {
	dropped, _ := e.sub.Dropped() // fails only for one that has ended
	return e.conn.nats.Stats().Reconnects + uint64(max(dropped, 0))
}

// hear takes a message that a stream said again.
func (r *reader) hear(m *nats.Msg) {
	if r.eraNow() != r.era {
		r.conn.mu.Lock()
		r.conn.heal(r.ear)
		r.conn.mu.Unlock()
		return
	}
	if got := newMessage(m); got.number > r.last {
		r.last = got.number
		r.each(got)
	}
}

// ask reports what is there.
func (r *reader) ask(ctx context.Context) error {
	era := r.eraNow()
	if r.latest {
		r.last = 0
	}
	err := r.present(ctx)
	if err == nil {
		r.era = era
	}
	return err
}

// present reports what is there. What comes in the meantime is heard, so it is not waited for: one who puts quickly
// could keep it busy for ever. At most as many messages are taken as there were at first, in the order of their numbers;
// those among the first that are not there any more have newer ones in their place, which are heard, if not taken here.
func (r *reader) present(ctx context.Context) error {
	if r.latest && !strings.Contains(r.subject, "*") {
		m, err := r.conn.newest(ctx, r.place)
		return r.take(m, err)
	}
	m, left, err := r.conn.first(ctx, r.place, r.last+1)
	for ; err == nil && left > 0; left-- {
		if err := r.take(m, err); err != nil {
			return err
		}
		m, err = r.conn.next(ctx, r.place, r.last+1)
	}
	return r.take(m, err)
}

// take reports a message; there may be none.
func (r *reader) take(m message, err error) error {
	if errors.Is(err, wire.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.last = m.number
	r.each(m)
	return nil
}

// heal has a reader ask for what it missed; the mutex of the connection is held.
func (c *Conn) heal(e *ear) {
	if e.reader == nil || e.healing || c.closing {
		return
	}
	e.healing = true
	c.retries.Go(func() {
		for wait := time.Duration(0); !e.healed(); wait = retryTime {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-e.end:
				timer.Stop()
				return
			}
			if c.Connected() {
				e.retry()
			}
		}
	})
}

// retryTime lies between two tries to ask.
const retryTime = 100 * time.Millisecond

// healed reports whether nothing was missed, and ends the healing if so.
func (e *ear) healed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conn.mu.Lock()
	defer e.conn.mu.Unlock()
	e.healing = !e.stopped && e.reader.era != e.eraNow()
	return !e.healing
}

func (e *ear) retry() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.reader.ask(ctx); err != nil {
		e.conn.options.Log(fmt.Sprintf("connection to %s: read %s again: %v", e.conn.server(), e.reader.subject, err))
	}
}
