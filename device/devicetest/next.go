package devicetest

import (
	"context"
	"errors"

	"tensile/plan/compile"
)

// wake signals before Next, while it waits, and beside events.
func wake(c *crew) {
	before := make(chan struct{}, 1)
	before <- struct{}{}
	if events, err := c.d.Next(c.t.Context(), before); len(events) > 0 || err != nil {
		c.t.Errorf("woken before: %d events and error %v", len(events), err)
	}
	during := make(chan struct{})
	go func() { during <- struct{}{} }()
	if events, err := c.d.Next(c.t.Context(), during); len(events) > 0 || err != nil {
		c.t.Errorf("woken: %d events and error %v", len(events), err)
	}

	g := Tiny()
	s := c.open(g)
	p := s.load(Build(c.t, c.d, g, KeepAll(g), compile.Options{}))
	s.train(p, 0, 2)
	before <- struct{}{}
	events, err := c.d.Next(c.t.Context(), before)
	if err != nil {
		c.t.Fatalf("woken with commands to end: %v", err)
	}
	for _, e := range events {
		c.take(e)
	}
	c.wait()
	if len(before) > 0 && len(events) == 0 {
		c.t.Error("Next returned neither for a wake nor for events")
	}
}

// cancel ends ctx before Next and while it waits.
func cancel(c *crew) {
	cause := errors.New("the test ends it")
	ctx, end := context.WithCancelCause(c.t.Context())
	go end(cause)
	for range 2 {
		if events, err := c.d.Next(ctx, nil); len(events) > 0 || !errors.Is(err, cause) {
			c.t.Errorf("cancelled: %d events and error %v, want %v", len(events), err, cause)
		}
	}
}

// closeIdle opens jobs that do nothing; Run closes them and the device.
func closeIdle(c *crew) {
	g := Tiny()
	c.open(g)
	c.open(g).reserve(c.d.Align())
	c.open(g).reserve(0)
}
