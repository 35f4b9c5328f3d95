package controller

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"tensile/internal/randgraph"
	"tensile/scheduler"
	"tensile/wire"
)

// A machine that is to stop makes no plan, and a runner whose time is over carries nothing out of what it says then: what
// was stored stays what it was, for the controller after it.
func TestPlanningStops(t *testing.T) {
	w := calmWorld(t, 1, 0)
	stopped := false
	w.config.Stop = func() bool { return stopped }
	w.machine = NewMachine(w.config)
	g := randgraph.New(rand.New(rand.NewPCG(1, 1)), randgraph.Options{})
	submit := func(name string) []Output {
		return w.machine.Step(Input{Submit: []Submission{{Spec: wire.Spec{Name: name, Graph: g.Digest(), Iterations: 3}, Graph: g}}})
	}
	planned := false
	for _, o := range submit("first") {
		planned = planned || o.Layout != nil
	}
	if !planned {
		t.Fatal("the first job was not planned for")
	}
	stopped = true
	out := submit("second")
	if len(out) != 1 || out[0].Answer == nil || !strings.Contains(out[0].Answer.Error, scheduler.ErrStopped.Error()) {
		t.Errorf("a machine that is to stop says %+v", out)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it is over")
	cancel(why)
	r := &runner{ctx: ctx} // without a bus: whatever is carried out panics
	if err := r.carryOut([]Output{{Record: &wire.Record{}}, {Orders: &wire.Orders{}}}, nil); !errors.Is(err, why) {
		t.Errorf("the outputs of a step that was cut short: %v", err)
	}
}
