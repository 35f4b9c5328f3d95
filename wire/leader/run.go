package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"tensile/wire"
	"tensile/wire/clock"
)

// Bus is what several controllers share.
type Bus interface {
	wire.Bus

	// Revision returns the latest value of a key and its revision, or wire.ErrNotFound.
	Revision(ctx context.Context, key string) (value []byte, revision uint64, err error)

	// Update sets the value of a key that has a revision, 0 if it was never there, and returns the new one; or
	// wire.ErrConflict. After any other error it may or may not have been set.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)

	// Fence has everything that is written from now on fail with wire.ErrDeposed, and not be stored, once the leader of
	// a later term has called it.
	Fence(ctx context.Context, term int64) error
}

// Run has lead called whenever this controller leads, with a bus to be used then alone, until ctx is done or lead
// returns by itself. The context of lead is done, with wire.ErrDeposed as its cause, when another leads; Run waits for
// it then, and stands by; it does so as well if lead returns wire.ErrDeposed. What else lead returns by itself is what
// Run returns.
func Run(ctx context.Context, bus Bus, c Config, log *slog.Logger,
	lead func(ctx context.Context, bus wire.Bus, as wire.Leadership) error) error {
	c = c.withDefaults()
	r := &runner{bus: bus, log: log, lead: lead, machine: New(c), deposed: make(chan struct{}, 1)}
	defer r.depose()
	tick := time.NewTicker(c.Beat)
	defer tick.Stop()
	for {
		if err := r.step(ctx, Input{Tick: true}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return r.resign(context.Cause(ctx))
		case err := <-r.done():
			if errors.Is(err, wire.ErrDeposed) { // it has heard of it before this goroutine
				r.term.result <- err
				if err := r.step(ctx, Input{Deposed: true}); err != nil {
					return err
				}
				continue
			}
			r.term = nil
			return r.resign(err)
		case <-r.deposed:
			if err := r.step(ctx, Input{Deposed: true}); err != nil {
				return err
			}
		case <-tick.C:
		}
	}
}

// runner drives a machine. What has no lock belongs to the goroutine in Run.
type runner struct {
	bus     Bus
	log     *slog.Logger
	lead    func(ctx context.Context, bus wire.Bus, as wire.Leadership) error
	machine *Machine
	term    *term  // nil: this controller does not lead
	leads   string // who does, as was logged last
	deposed chan struct{}
}

// term is the time in which this controller leads.
type term struct {
	until  atomic.Int64 // when nothing may be removed any more, on the clock of this process
	over   atomic.Bool
	cancel context.CancelCauseFunc
	result chan error // what lead has returned
}

// done returns a channel that gets what lead returns.
func (r *runner) done() <-chan error {
	if r.term == nil {
		return nil
	}
	return r.term.result
}

// step steps the machine, and does what it wants until it wants nothing more.
func (r *runner) step(ctx context.Context, in Input) error {
	for todo := []Input{in}; len(todo) > 0; todo = todo[1:] {
		for _, o := range r.machine.Step(clock.Now(), todo[0]) {
			switch {
			case o.Read:
				todo = append(todo, Input{Got: r.read(ctx)})
			case o.Set != nil:
				todo = append(todo, Input{Got: r.set(ctx, o.Set)})
			case o.Lead != nil:
				if err := r.beginLeading(ctx, *o.Lead); errors.Is(err, wire.ErrDeposed) {
					todo = append(todo, Input{Deposed: true})
				} else if err != nil {
					return err
				}
			case o.Lost != nil:
				r.depose()
				r.leads = o.Lost.Where
				r.log.Warn(fmt.Sprintf("this controller leads no longer: %s does", cmp.Or(r.leads, "another")))
			}
		}
		if r.term != nil {
			r.term.until.Store(int64(r.machine.Until()))
		}
	}
	return nil
}

func (r *runner) read(ctx context.Context) *Got {
	var got Got
	var value []byte
	if value, got.Revision, got.Err = r.bus.Revision(ctx, wire.LeaderKey); got.Err != nil {
		return &got
	}
	var err error
	if got.Holds, err = wire.DecodeAs[wire.Leadership](value); err != nil {
		got.Err = err
		r.log.Warn("the key that says which controller leads cannot be read", "key", wire.LeaderKey, "err", err)
		return &got
	}
	if where := got.Holds.Where; r.term == nil && got.Holds.ID != "" && r.leads != where {
		r.log.Info(fmt.Sprintf("this controller stands by: %s leads", where))
		r.leads = where
	}
	return &got
}

func (r *runner) set(ctx context.Context, s *Set) *Got {
	revision, err := r.bus.Update(ctx, wire.LeaderKey, wire.Encode(s.Value), s.Revision)
	return &Got{Revision: revision, Err: err}
}

// beginLeading runs lead in this controller.
func (r *runner) beginLeading(ctx context.Context, as wire.Leadership) error {
	for {
		err := r.bus.Fence(ctx, as.Term)
		if err == nil {
			break
		}
		if errors.Is(err, wire.ErrDeposed) || ctx.Err() != nil {
			return err
		}
		r.log.Warn("the bus does not take the word that this controller leads, trying again", "err", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(r.machine.config.Beat):
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t := &term{cancel: cancel, result: make(chan error, 1)}
	r.term, r.leads = t, as.Where
	t.until.Store(int64(r.machine.Until()))
	guarded := &guard{Bus: r.bus, term: t, deposed: r.deposed}
	go func() { t.result <- r.lead(ctx, guarded, as) }()
	return nil
}

// depose ends the term, if there is one.
func (r *runner) depose() {
	if r.term == nil {
		return
	}
	r.term.over.Store(true)
	r.term.cancel(wire.ErrDeposed)
	if err := <-r.term.result; err != nil && !errors.Is(err, wire.ErrDeposed) {
		r.log.Warn("the term has ended", "err", err)
	}
	r.term = nil
	select {
	case <-r.deposed: // of that term
	default:
	}
}

// resign lets others lead at once.
func (r *runner) resign(why error) error {
	if t := r.term; t != nil {
		t.over.Store(true)
		t.cancel(why)
		if err := <-t.result; err != nil {
			why = err
		}
		r.term = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.machine.config.TTL) // after which others lead anyway
	defer cancel()
	for _, o := range r.machine.Step(clock.Now(), Input{Resign: true}) {
		if got := r.set(ctx, o.Set); got.Err != nil {
			r.log.Warn("the next controller takes over when the term of this one has run out", "err", got.Err)
		}
	}
	return why
}

// guard is the bus of a leader. What it writes the bus refuses once another leads; it asks for nothing when it may have
// been deposed.
type guard struct {
	Bus
	term    *term
	deposed chan<- struct{}
}

// errDoubt is why a leader that has not renewed its word waits.
var errDoubt = errors.New("this controller has not been able to say for some seconds that it leads")

// writeError returns why the leader may not write now; nil: it may.
func (g *guard) writeError() error {
	switch {
	case g.term.over.Load():
		return wire.ErrDeposed
	case int64(clock.Now()) >= g.term.until.Load():
		return errDoubt
	}
	return nil
}

// write writes if the leader may.
func (g *guard) write(do func() error) error {
	err := g.writeError()
	if err == nil {
		err = do()
	}
	if errors.Is(err, wire.ErrDeposed) {
		g.term.over.Store(true)
		select {
		case g.deposed <- struct{}{}:
		default:
		}
	}
	return err
}

func (g *guard) Put(ctx context.Context, key string, value []byte) error {
	return g.write(func() error { return g.Bus.Put(ctx, key, value) })
}

func (g *guard) Delete(ctx context.Context, key string) error {
	return g.write(func() error { return g.Bus.Delete(ctx, key) })
}

func (g *guard) Store(ctx context.Context, bucket, name string, data []byte) error {
	return g.write(func() error { return g.Bus.Store(ctx, bucket, name, data) })
}

func (g *guard) Remove(ctx context.Context, bucket, name string) error {
	return g.write(func() error { return g.Bus.Remove(ctx, bucket, name) })
}

func (g *guard) Append(ctx context.Context, log string, line []byte) error {
	return g.write(func() error { return g.Bus.Append(ctx, log, line) })
}

func (g *guard) Clear(ctx context.Context, log string) error {
	return g.write(func() error { return g.Bus.Clear(ctx, log) })
}

// awaitCertainty waits until it is certain whether this controller leads, and reports whether it does.
func (g *guard) awaitCertainty() bool {
	for {
		switch g.writeError() {
		case nil:
			return true
		case errDoubt:
			time.Sleep(doubtInterval)
		default:
			return false
		}
	}
}

// doubtInterval lies between two looks whether a leader in doubt leads.
const doubtInterval = 50 * time.Millisecond

// Serve leaves requests to others once this controller is deposed, and has them wait while it may have been.
func (g *guard) Serve(subject string, each func(user string, data []byte, reply func(answer []byte))) (func(), error) {
	return g.Bus.Serve(subject, func(user string, data []byte, reply func([]byte)) {
		if g.awaitCertainty() {
			each(user, data, reply)
		}
	})
}
