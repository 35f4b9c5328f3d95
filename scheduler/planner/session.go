package planner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/external"
	"tensile/models/task"
	"tensile/peak"
	"tensile/scheduler"
)

// Session plans for tasks on a device. [Device.Session] makes one; the caller then sets the fields up to Overhead, and
// what it knows of Jobs beside their latencies, and asks for plans.
type Session struct {
	// Device is the device as the jobs share it. Where Choose is set, planning settles its Gates.
	Device Device
	// Tasks are what the jobs train.
	Tasks []task.Task
	// Jobs are the tasks as if each had the device for itself.
	Jobs []scheduler.Job

	// Policy names the policy that makes plans, and Options are its settings.
	Policy  string
	Options scheduler.Options
	// Budget is memory of the device for the jobs, in bytes. 0: there is no limit.
	Budget graph.Bytes
	// HostBudget is for what the jobs have on the host. 0: there is no limit.
	HostBudget graph.Bytes
	// Lowest has plans without a budget made for the least memory that the policy can reach.
	Lowest bool
	// Explain asks for reasons of storages that stay, too.
	Explain bool
	// Choose says that nobody has said how the jobs share memory: the session takes the better of gates and arenas.
	Choose bool
	// Overhead asks for the least memory with which no job takes longer than that by more than this share. nil: plans
	// are for the least time.
	Overhead *float64

	// Request is what Planned are the plans for.
	Request scheduler.Request
	Planned *Planned

	peaks *Peaks // nil: nobody has needed them
}

// Session returns a session for tasks. It returns an error if the device cannot execute one of them.
func (d Device) Session(tasks []task.Task) (*Session, error) {
	jobs, err := d.Jobs(tasks)
	if err != nil {
		return nil, err
	}
	return &Session{Device: d, Tasks: tasks, Jobs: jobs, Policy: "tensile"}, nil
}

// Ask makes the request for the jobs, as they share memory. Leases grant whole pages.
func (s *Session) Ask() scheduler.Request {
	r := s.Device.Request(s.Jobs...)
	r.Policy, r.Options, r.Lowest, r.Explain = s.Policy, s.Options, s.Lowest, s.Explain
	r.Budget, r.HostBudget = s.Budget, s.HostBudget
	if page := s.Device.Page; (s.Device.Gates || s.Device.Turns) && 0 < page && page <= s.Budget {
		r.Budget = s.Budget / page * page
	}
	return r
}

// Peaks returns the peaks of the jobs without a plan.
func (s *Session) Peaks(ctx context.Context) (Peaks, error) {
	if s.peaks == nil {
		peaks, err := Vanilla(ctx, s.Ask())
		if err != nil {
			return Peaks{}, err
		}
		s.peaks = &peaks
	}
	return *s.peaks, nil
}

// Live is what the jobs need together without a plan, with every tensor freed after its last use. Budgets in percent
// are of that.
func (s *Session) Live(ctx context.Context) (graph.Bytes, error) {
	peaks, err := s.Peaks(ctx)
	return sumOf(peaks.Live), err
}

func sumOf(all []graph.Bytes) (sum graph.Bytes) {
	for _, b := range all {
		sum += b
	}
	return sum
}

// Percent is a budget that is given as a percentage.
func (s *Session) Percent(ctx context.Context, percent float64) (graph.Bytes, error) {
	live, err := s.Live(ctx)
	return max(1, graph.Bytes(float64(live)*percent/100)), err // 0 would be no limit
}

// Plan plans for the jobs, and settles how they share memory if that is open: by gates where the device can back a part
// of an arena, unless they fit side by side as they are, or gates leave no plan, or a slower one.
func (s *Session) Plan(ctx context.Context) error {
	if !s.Choose || len(s.Jobs) < 2 || s.Device.Page == 0 || 0 < s.Budget && s.Budget < s.Device.Page {
		return s.plan(ctx)
	}
	fit := !s.Lowest && s.Overhead == nil // without a budget
	if s.Budget > 0 {
		live, err := s.Live(ctx)
		if err != nil {
			return err
		}
		fit = live <= s.Budget
	}
	err := s.planBy(ctx, !fit)
	if errors.Is(err, scheduler.ErrNoPlan) { // packed they take more than their peaks
		return s.retry(ctx, err)
	}
	if err != nil || fit || s.Budget == 0 || s.Overhead != nil { // what counts is memory
		return err
	}
	return s.faster(ctx)
}

// retry plans in the other way than the one that was refused. If that is refused, too, it returns the error of the one
// that comes closer to a plan.
func (s *Session) retry(ctx context.Context, refused error) error {
	before := s.Device.Gates
	err := s.planBy(ctx, !before)
	if errors.Is(err, scheduler.ErrNoPlan) && enoughFor(refused) <= enoughFor(err) {
		s.Device.Gates = before
		return refused
	}
	return err
}

// faster takes plans for an arena for each job instead of those by gates, unless by gates jobs are expected to be
// faster by a hundredth: to back pages and give them back costs a little that is not expected.
func (s *Session) faster(ctx context.Context) error {
	request, gates := s.Request, s.Planned
	err := s.planBy(ctx, false)
	if errors.Is(err, scheduler.ErrNoPlan) || err == nil &&
		gates.WeightedTime(&request) <= s.Planned.WeightedTime(&request)/100*99 {
		s.Request, s.Planned, s.Device.Gates = request, gates, true
		return nil
	}
	return err
}

// enoughFor is how much memory would be enough, as far as an error says it.
func enoughFor(err error) graph.Bytes {
	if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok {
		return over.Need
	}
	return graph.MaxTotal
}

// planBy plans for jobs that share memory by gates, or have an arena each.
func (s *Session) planBy(ctx context.Context, gates bool) error {
	s.Device.Gates = gates
	return s.plan(ctx)
}

// plan plans for jobs as they share memory.
func (s *Session) plan(ctx context.Context) (err error) {
	s.Request = s.Ask()
	if s.Overhead == nil {
		s.Planned, err = s.Device.Plan(ctx, s.Request)
		return err
	}
	live, err := s.Live(ctx)
	if err != nil {
		return err
	}
	c := Curve{Request: s.Request, Live: live}
	point, err := c.Least(ctx, *s.Overhead, s.Request.Budget)
	if err != nil {
		return err
	}
	s.Planned, s.Budget, s.Request.Budget, s.Request.Lowest = point.Planned, point.Budget, point.Budget, false
	if s.Request.Together {
		s.Planned.Expected, err = s.Device.Expect(ctx, s.Planned, &s.Request, s.Planned.Least)
	}
	return err
}

// Remeasure plans again with latencies that a run of the same jobs has measured; measured returns those of a job in the
// first variants of its ops, nil if not all were. They are kept as if each job ran alone, as predicted ones are: a
// request has what ops take beside the other jobs.
func (s *Session) Remeasure(ctx context.Context, from *Sources, measured func(int, Profile) []time.Duration) error {
	uses := make([]cost.Use, len(s.Jobs))
	for i := range s.Jobs {
		uses[i] = s.Device.Sharing.Use(s.Jobs[i].Latency)
	}
	stretch := s.Device.Sharing.Slowdowns(uses)
	known := make(map[graph.Digest][]time.Duration)
	for i, t := range s.Tasks {
		profile, err := s.Device.Profile(t.Graph)
		if err != nil {
			return err
		}
		latency := measured(i, profile)
		if latency == nil {
			return fmt.Errorf("job %s: not every op was measured", t.Name)
		}
		for op := range latency {
			latency[op] = s.Device.Sharing.Uncontended(latency[op], stretch[i])
		}
		known[t.Graph.Digest()] = latency
		s.Jobs[i].Latency, s.Jobs[i].Slack = latency, nil
	}
	from.measured, s.Device.Loaded = known, nil
	s.Request.Jobs = s.Device.Request(s.Jobs...).Jobs
	var err error
	s.Planned, err = s.Device.Plan(ctx, s.Request)
	return err
}

// Frontier plans by the session's policy within budgets that fall by a fiftieth of what the jobs need, and proves what
// is best. The plan within the session's budget stands beside the curve; it is nil if there is none or no such plan.
func (s *Session) Frontier(ctx context.Context) (curve []Point, within *Point, err error) {
	live, err := s.Live(ctx)
	if err != nil {
		return nil, nil, err
	}
	c := Curve{Request: s.Ask(), Live: live, Step: 0.02}
	points, _, err := c.Points(ctx)
	if err != nil {
		return nil, nil, err
	}
	curve = Staircase(points)
	for i := range curve {
		if err := c.Prove(ctx, &curve[i]); err != nil {
			return nil, nil, err
		}
		curve[i].Programs = nil // a curve has many
	}
	if s.Budget == 0 {
		return curve, nil, nil
	}
	within, err = c.At(ctx, s.Budget)
	if errors.Is(err, scheduler.ErrNoPlan) {
		return curve, nil, nil
	} else if err == nil {
		err = c.Prove(ctx, within)
	}
	return curve, within, err
}

// Script returns the plan of the session's one recorded graph as its script takes it.
func (s *Session) Script() external.Plan {
	t, planned := s.Tasks[0], s.Planned.Jobs[0].Plan
	p := external.Compile(t.Graph, planned)
	p.Number, p.Graph, p.Limit = 1, 1, s.Budget
	p.Bytes = peak.Of(t.Graph, planned).Peak + t.Held
	return p
}
