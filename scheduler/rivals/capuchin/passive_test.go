package capuchin

import (
	"testing"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
)

// inSession calls a function with a session of a request.
func inSession(r scheduler.Request, do func(*draft.Session)) {
	draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
		do(s)
		return scheduler.Result{}, nil
	})
}

// took is how long an iteration of a plan of the first job takes, wherever it is placed.
func took(t *testing.T, r scheduler.Request, p *plan.Plan) time.Duration {
	t.Helper()
	g := r.Jobs[0].Graph
	p.Graph = g.Digest()
	if err := proof.Validate(g, p); err != nil {
		t.Fatalf("%v\n%s", err, p.Text(g))
	}
	l, err := compile.Place(g, p, r.Align)
	if err != nil {
		t.Fatal(err)
	}
	d := program.Durations{Steps: p.Made, Out: r.Out, In: r.In}
	return program.Time(compile.Compile(g, p, l, compile.Options{}), d).Iteration
}

// TestPassiveAsReimplemented compares passive mode with that of another program, as TestAsGoodAsReimplemented does.
// Both count bytes per slot: packed, storages that are evicted in turn leave holes.
func TestPassiveAsReimplemented(t *testing.T) {
	for network, theirs := range map[string][]float64{
		"resnet50":    {1.64, 2.16, 2.59, 3.55},
		"densenet121": {1.58, 2.16, 2.67, 3.74},
	} {
		r := jobtest.Network(t, network, 16)
		inSession(r, func(s *draft.Session) {
			d := s.Draft(0, draft.FirstSteps(draft.GraphOrder(r.Jobs[0].Graph)), draft.Style{})
			_, live := d.Peak()
			vanilla := took(t, r, d.Plan("none-live"))
			for k, percent := range []graph.Bytes{90, 80, 70, 50} {
				p, err := passivePlan(s, 0, live*percent/100)
				if err != nil {
					t.Fatal(err)
				}
				eor := float64(took(t, r, p)) / float64(vanilla)
				t.Logf("%s at %d %%: %.3f, another program %.2f", network, percent, eor, theirs[k])
				if eor > theirs[k]+.05 {
					t.Errorf("%s at %d %%: %.3f, another program %.2f", network, percent, eor, theirs[k])
				}
			}
		})
	}
}
