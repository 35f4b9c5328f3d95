package planner

import (
	"context"
	"errors"
	"testing"

	"tensile/scheduler/jobtest"
)

// asked is a context that ends at a question.
type asked struct {
	context.Context
	cancel    context.CancelCauseFunc
	questions int
	last      int // at which it ends; 0: none
}

var errEnough = errors.New("enough")

func newAsked(ctx context.Context, last int) *asked {
	a := &asked{last: last}
	a.Context, a.cancel = context.WithCancelCause(ctx)
	return a
}

func (a *asked) Err() error {
	if a.questions++; a.questions == a.last {
		a.cancel(errEnough)
	}
	return a.Context.Err()
}

// Proofs and bounds look at their context every so many steps of work, and end at the look that finds it done. What is
// counted is work on a step of the plan: to validate, compile and check it, at least.
func TestProofStops(t *testing.T) {
	r := jobtest.Network(t, "resnet50", 4)
	p, err := Schedule(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		do    func(context.Context) error
		least int // steps of work per step of the plan
	}{
		"prove": {func(ctx context.Context) error { return p.prove(ctx, &r) }, 300},
		"bound": {func(ctx context.Context) error { _, err := p.BoundEOR(ctx, &r, 0, p.Arena/2); return err }, 60},
	} {
		all := newAsked(t.Context(), 0)
		if err := c.do(all); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if most := asking / c.least; all.questions < len(p.Jobs[0].Plan.Steps)/most {
			t.Errorf("%s: %d looks at %d steps, want one in %d", what, all.questions, len(p.Jobs[0].Plan.Steps), most)
		}
		for last := 1; last <= all.questions; last++ {
			ctx := newAsked(t.Context(), last)
			if err := c.do(ctx); !errors.Is(err, errEnough) || ctx.questions > last+1 { // Cause looks too
				t.Errorf("%s, stopped at look %d of %d: %v after %d", what, last, all.questions, err, ctx.questions)
			}
		}
	}
}
