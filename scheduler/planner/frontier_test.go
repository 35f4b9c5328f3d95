package planner

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/models/nettest"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"

	_ "tensile/scheduler/rivals"
)

// curve is that of a small network, on a link that is slow enough for it.
func curve(t *testing.T, network, policy string) *Curve {
	t.Helper()
	g, err := nettest.Build(network)
	if err != nil {
		t.Fatal(err)
	}
	r := jobtest.Of(t, g)
	r.Policy, r.Out.Rate, r.In.Rate = policy, 1e9, 1e9
	vanilla, err := Vanilla(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return &Curve{Request: r, Live: vanilla.Live[0], Step: 0.05}
}

// A curve's points keep to their budgets and their bounds, and can be proven; its staircase has no point that another
// beats, and for every budget what is best within it.
func TestCurve(t *testing.T) {
	for _, policy := range []string{"none-all", "none-live", "tensile", "tensile-paper"} {
		c := curve(t, "vgg11", policy)
		points, refused, err := c.Points(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range points {
			if p.Policy != policy || p.Budget > 0 && p.Arena > p.Budget || p.EOR < p.BoundEOR-1e-6 || p.BoundEOR < 1 {
				t.Errorf("%s: %d bytes of %d at %v, bound %v", p.Policy, p.Arena, p.Budget, p.EOR, p.BoundEOR)
			}
			if i > 1 && p.Budget >= points[i-1].Arena {
				t.Errorf("%s: %d bytes are asked for again, where a plan takes %d", policy, p.Budget, points[i-1].Arena)
			}
			if err := c.Prove(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			if eor := float64(p.Timing(0).Iteration) / float64(p.Jobs[0].Unplanned); eor != p.EOR {
				t.Errorf("%s: EOR %v, by its program %v", policy, p.EOR, eor)
			}
		}
		stairs := Staircase(points)
		for i := 1; i < len(stairs); i++ {
			if a, b := stairs[i-1], stairs[i]; a.Arena <= b.Arena || a.EOR >= b.EOR {
				t.Errorf("%s: %d bytes at %v, then %d at %v", policy, a.Arena, a.EOR, b.Arena, b.EOR)
			}
		}
		for _, p := range points {
			if !slices.ContainsFunc(stairs, func(s Point) bool { return s.Arena <= p.Arena && s.EOR <= p.EOR }) {
				t.Errorf("%s: nothing is as good as %d bytes at %v", policy, p.Arena, p.EOR)
			}
		}
		t.Logf("%s: %d points, %d stairs, %d refusals", policy, len(points), len(stairs), len(refused))
		if planned := policy == "tensile"; planned != (len(stairs) > 3) || !planned && len(refused) == 0 {
			t.Errorf("%s: %d stairs, %d refusals", policy, len(stairs), len(refused))
		}
	}
}

// A curve of every budget has all down to the working set, planned or refused.
func TestEveryBudget(t *testing.T) {
	c := curve(t, "lenet", "tensile")
	c.Every = true
	points, refused, err := c.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	workingSet, _ := c.Request.WorkingSets()
	step := graph.Bytes(c.Step * float64(c.Live))
	if want := int((c.Live-workingSet)/step) + 2; len(points)+len(refused) != want {
		t.Errorf("%d plans and %d refusals, want %d together", len(points), len(refused), want)
	}
	for i := 2; i < len(points); i++ {
		if points[i].Budget >= points[i-1].Budget {
			t.Errorf("a budget of %d after one of %d", points[i].Budget, points[i-1].Budget)
		}
	}
}

// The least memory for an overhead keeps to it, is that of the same request within its budget, and less for more
// overhead. What a budget does not allow is refused.
func TestLeast(t *testing.T) {
	c := curve(t, "vgg11", "tensile")
	last := graph.Bytes(math.MaxInt64)
	for _, overhead := range []float64{0, 0.02, 0.1} {
		p, err := c.Least(t.Context(), overhead, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %d bytes of %d at %v", overhead, p.Arena, c.Live, p.EOR)
		if p.EOR > 1+overhead || p.Arena >= last || len(p.Programs) != 1 {
			t.Errorf("overhead %v: %d bytes at %v with %d proofs; before %d", overhead, p.Arena, p.EOR, len(p.Programs),
				last)
		}
		last = p.Arena
		r := c.Request
		r.Budget = p.Budget
		if again := planned(t, r); again.Arena != p.Arena || again.Timing(0).Iteration != p.Timing(0).Iteration {
			t.Errorf("overhead %v: %d bytes, and %d within the same budget", overhead, p.Arena, again.Arena)
		}
		budget := p.Budget
		if p, err = c.Least(t.Context(), overhead, budget); err != nil || p.Arena > budget || p.EOR > 1+overhead {
			t.Errorf("overhead %v within %d: %+v, %v", overhead, budget, p, err)
		}
	}
	var slow *SlowError
	if _, err := c.Least(t.Context(), 0, last); !errors.As(err, &slow) || !errors.Is(err, scheduler.ErrNoPlan) ||
		slow.Budget != last || slow.EOR <= 1 {
		t.Errorf("no overhead within %d: %v", last, err)
	}
	if _, err := c.Least(t.Context(), 1, 1); !errors.Is(err, scheduler.ErrNoPlan) {
		t.Errorf("within one byte: %v", err)
	}
}

// Several jobs have curves too, without a bound; and curves end with their context.
func TestCurveOfJobs(t *testing.T) {
	c := &Curve{Request: twoJobs(t, "tensile", 0), Live: 2 * tight, Step: 0.1, Clock: func() time.Duration { return 0 }}
	points, _, err := c.Points(t.Context())
	if err != nil || len(points) < 2 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	for _, p := range points {
		if p.BoundEOR != 0 || len(p.Jobs) != 2 || p.EOR < 1 || p.PlanTime != 0 {
			t.Errorf("%d bytes at %v, bound %v, %d jobs, planned in %v", p.Arena, p.EOR, p.BoundEOR, len(p.Jobs),
				p.PlanTime)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, _, err := c.Points(ctx); !errors.Is(err, why) {
		t.Errorf("a curve whose context has ended: %v", err)
	}
}
