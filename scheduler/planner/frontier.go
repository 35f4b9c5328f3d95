package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// Point is what a policy made of a budget: memory against time.
type Point struct {
	Policy   string
	Budget   graph.Bytes // the budget that was asked for; 0: no limit
	EOR      float64     // predicted, the largest of the jobs'
	BoundEOR float64     // below which no plan gets within the budget; 0: several jobs share it, or it was not asked
	*Planned
}

// Clock tells a time from which the times of planning and packing are taken: that of the wall, or of a processor.
type Clock func() time.Duration

// realClock is the clock that hangs there.
func realClock() Clock {
	since := time.Now()
	return func() time.Duration { return time.Since(since) }
}

// Curve plans one request within many budgets.
type Curve struct {
	Request scheduler.Request // its budget does not matter
	Live    graph.Bytes       // what the jobs need with every tensor freed after its last use; budgets are shares of it
	Step    float64           // between two budgets, as a share of Live
	Every   bool              // every budget is planned, down to the working sets, whatever became of those before
	Clock   Clock             // nil: that of the wall

	limits limits
}

// Refusal is a budget within which a policy found no plan.
type Refusal struct {
	Budget graph.Bytes
	Err    error // unwraps to scheduler.ErrNoPlan
}

// Points plans without a limit and then within budgets that fall from Live by one step each, down to the largest
// working sets. Unless it plans Every budget, it leaves out those that the plan before keeps to as well, two refusals
// in a row end the curve, and what a refusal says would be enough is tried last. No plan is proven yet: see Prove.
func (c *Curve) Points(ctx context.Context) (points []Point, refused []Refusal, err error) {
	workingSets, _ := c.Request.WorkingSets()
	step := max(1, graph.Bytes(c.Step*float64(c.Live)))
	var need graph.Bytes
	last := graph.Bytes(0) // what the plan before needs; 0: there is none
	try := func(budget graph.Bytes) error {
		p, err := c.At(ctx, budget)
		switch over := (*scheduler.OverBudgetError)(nil); {
		case err == nil:
			points, last = append(points, *p), p.Least
		case errors.As(err, &over):
			need = over.Need
			fallthrough
		case errors.Is(err, scheduler.ErrNoPlan):
			refused = append(refused, Refusal{budget, err})
		default:
			return err
		}
		return nil
	}
	if err := try(0); err != nil {
		return nil, nil, err
	}
	inARow := 0
	for n := graph.Bytes(0); c.Live-n*step >= workingSets && (inARow < 2 || c.Every); n++ {
		budget := c.Live - n*step
		if !c.Every && 0 < last && last <= budget {
			continue
		}
		before := len(refused)
		if err := try(budget); err != nil {
			return nil, nil, err
		}
		if inARow++; len(refused) == before {
			inARow = 0
		}
	}
	if !c.Every && inARow > 0 && len(points) > 0 && 0 < need && need < points[len(points)-1].Budget {
		err = try(need)
	}
	return points, refused, err
}

// At plans within one budget, 0: no limit. The plan is not proven yet: see Prove.
func (c *Curve) At(ctx context.Context, budget graph.Bytes) (*Point, error) {
	r := c.Request
	r.Budget, r.Lowest = budget, false
	if c.Clock == nil {
		c.Clock = realClock()
	}
	planned, err := schedule(ctx, r, c.Clock)
	if err != nil {
		return nil, err
	}
	p := &Point{Policy: r.Policy, Budget: budget, Planned: planned}
	if runUnlessDone(ctx, func(tick func(int)) {
		for i, j := range planned.Jobs {
			compiled := compile.Compile(r.Jobs[i].Graph, j.Plan, j.Layout, compile.Options{Tick: tick})
			timing := program.Time(compiled, program.Durations{Steps: j.Plan.Made, Out: j.Out, In: j.In})
			p.EOR = max(p.EOR, float64(timing.Iteration)/float64(max(1, j.Unplanned)))
		}
	}) {
		return nil, context.Cause(ctx)
	}
	if len(r.Jobs) == 1 {
		p.BoundEOR, err = c.limits.eor(ctx, &r, planned, cmp.Or(budget, planned.Arena))
	}
	return p, err
}

// Prove proves the plans of a point of the curve.
func (c *Curve) Prove(ctx context.Context, p *Point) error { return p.prove(ctx, &c.Request) }

// Staircase returns the points that no other point beats in both memory and time, from the most memory to the least:
// so no plan is worse than that of a smaller budget.
func Staircase(points []Point) []Point {
	stairs := slices.Clone(points)
	slices.SortStableFunc(stairs, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Least, b.Least), cmp.Compare(a.EOR, b.EOR))
	})
	n := 0
	for _, p := range stairs {
		if n == 0 || p.EOR < stairs[n-1].EOR {
			stairs[n] = p
			n++
		}
	}
	slices.Reverse(stairs[:n])
	return stairs[:n]
}

// SlowError says that plans within a budget take longer than they may.
type SlowError struct {
	Budget   graph.Bytes // 0: none
	EOR      float64     // the EOR of the best plans found within the budget
	Overhead float64     // the overhead that was allowed
}

func (e *SlowError) Error() string {
	within, remedy := "", "a larger overhead"
	if e.Budget > 0 {
		within, remedy = fmt.Sprintf(" within %s", e.Budget), "a larger budget or a larger overhead"
	}
	return fmt.Sprintf("the best plans found%s take %.2f %% longer than without a plan, and %.4g %% are allowed: "+
		"give %s", within, 100*(e.EOR-1), 100*e.Overhead, remedy)
}

func (e *SlowError) Unwrap() error { return scheduler.ErrNoPlan }

// Least returns proven plans with little memory with which no job takes more than an overhead longer than without a
// plan: a share of that time such as 0.05. The memory is the least that bisection finds, to a 256th of Live; with a
// budget it is within that, or the error is a *SlowError. The plans are those that the request has within Point.Budget.
func (c *Curve) Least(ctx context.Context, overhead float64, budget graph.Bytes) (*Point, error) {
	best, err := c.At(ctx, budget)
	if err != nil {
		return nil, err
	}
	if best.EOR > 1+overhead {
		return nil, &SlowError{budget, best.EOR, overhead}
	}
	low, _ := c.Request.WorkingSets() // below which nothing is planned
	high := best.Least
	if budget == 0 {
		high = min(high, c.Live)
	}
	for resolution := max(1, c.Live/256); high-low > resolution; {
		middle := low + (high-low)/2
		p, err := c.At(ctx, middle)
		switch {
		case err == nil && p.EOR <= 1+overhead:
			best, high = p, p.Least
		case err == nil || errors.Is(err, scheduler.ErrNoPlan):
			low = middle
		default:
			return nil, err
		}
	}
	return best, c.Prove(ctx, best)
}

// limits are those of the last plan's order of ops, which most plans of a curve share.
type limits struct {
	order  []graph.OpID
	limits *draft.Limits
}

// eor is the least EOR of plans of a request's one job within a budget.
func (l *limits) eor(ctx context.Context, r *scheduler.Request, p *Planned, budget graph.Bytes) (float64, error) {
	ran := make([]bool, len(r.Jobs[0].Graph.Ops))
	var order []graph.OpID
	for _, step := range p.Jobs[0].Plan.Steps {
		if !ran[step.Op] {
			ran[step.Op] = true
			order = append(order, step.Op)
		}
	}
	if l.limits == nil || !slices.Equal(order, l.order) {
		var err error
		if l.limits, err = limitsOf(ctx, r, 0, p); err != nil {
			return 0, err
		}
		l.order = order
	}
	return leastEOR(ctx, l.limits, budget)
}

// leastEOR is the least EOR within a budget.
func leastEOR(ctx context.Context, l *draft.Limits, budget graph.Bytes) (float64, error) {
	eor, err := l.EOR(budget)
	if errors.Is(err, scheduler.ErrStopped) {
		err = context.Cause(ctx)
	}
	return eor, err
}

// limitsOf returns the limits of a job's plans with the order of ops of its plan.
func limitsOf(ctx context.Context, r *scheduler.Request, job int, p *Planned) (*draft.Limits, error) {
	l, err := draft.NewLimits(r, job, p.Jobs[job].Plan, scheduler.Watch{
		Stop: func(int64) bool { return ctx.Err() != nil }})
	if errors.Is(err, scheduler.ErrStopped) {
		err = context.Cause(ctx)
	}
	return l, err
}

// BoundEOR is the EOR below which no plan of a job has an arena of so many bytes, with the order of ops of its plan and
// the whole link. It takes n log n.
func (p *Planned) BoundEOR(ctx context.Context, r *scheduler.Request, job int, arena graph.Bytes) (float64, error) {
	l, err := limitsOf(ctx, r, job, p)
	if err != nil {
		return 0, err
	}
	return leastEOR(ctx, l, arena)
}
