package main

import (
	"context"
	"errors"
	"fmt"

	"tensile/device"
	"tensile/graph"
	"tensile/models/task"
	"tensile/models/workload"
	"tensile/observe/report"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
	"tensile/wire"
)

// session is a workload, planned for a device.
type session struct {
	workload []task.Task
	device   device.Device
	jobs     []scheduler.Job // as if each had the device for itself
	budget   graph.Bytes     // Memory for the jobs; 0: no limit.
	request  scheduler.Request
	planned  *planner.Planned
	vanilla  *planner.Peaks // nil: not needed yet
	contexts wire.Contexts  // Device memory of all processes outside the request's budget.
	link     linkRate
	latency  string // Source of the plan's latencies.

	hostBudget graph.Bytes // 0: none

	priorities []int     // per job; nil: not given
	swapRates  []float64 // per job; nil: not given
}

// open loads the workload, opens the device and plans, until ctx ends. The caller closes the device.
func open(ctx context.Context, names []string, w *workloadFlags, p *planFlags) (*session, error) {
	overhead, err := parseOverhead(p.overhead)
	if err != nil {
		return nil, err
	}
	if err := policies.Check(p.policy); err != nil {
		return nil, err
	}
	if err := p.checkParts(); err != nil {
		return nil, err
	}
	s, err := unplanned(ctx, names, w, p)
	if err != nil {
		return nil, err
	}
	if err = s.plan(ctx, p, overhead); err != nil {
		s.device.Close()
		return nil, s.addContexts(err)
	}
	tellNotes(s.workload)
	return s, nil
}

// plan plans for the jobs, and settles how they share memory if no flag says it: by gates where the device can back a
// part of an arena, unless they fit side by side as they are, or gates leave no plan, or a slower one.
func (s *session) plan(ctx context.Context, p *planFlags, overhead float64) error {
	one := p.describeDevice(s.device).Page
	if !p.sharing.open || len(s.jobs) < 2 || !p.mayGate(s.device) || 0 < s.budget && s.budget < one {
		return s.planAs(ctx, p, p.sharing.Sharing, overhead)
	}
	fit := !p.lowest && p.overhead == "" // without a budget
	if s.budget > 0 {
		peaks, err := s.unplanned(ctx)
		if err != nil {
			return err
		}
		fit = sumOf(peaks.Live) <= s.budget
	}
	if fit {
		err := s.planAs(ctx, p, wire.NoSharing, overhead)
		if errors.Is(err, scheduler.ErrNoPlan) { // packed they take more
			return s.retryPlan(ctx, p, wire.Gates, overhead, err)
		}
		return err
	}
	if err := s.planAs(ctx, p, wire.Gates, overhead); errors.Is(err, scheduler.ErrNoPlan) {
		return s.retryPlan(ctx, p, wire.NoSharing, overhead, err)
	} else if err != nil || s.budget == 0 || p.overhead != "" { // what counts is memory
		return err
	}
	return s.faster(ctx, p)
}

// retryPlan plans in another way than the one that was refused. If that is refused, too, it returns the error of the
// one that comes closer to a plan.
func (s *session) retryPlan(ctx context.Context, p *planFlags, way wire.Sharing, overhead float64,
	refused error) error {
	before := p.sharing.Sharing
	err := s.planAs(ctx, p, way, overhead)
	if errors.Is(err, scheduler.ErrNoPlan) && enoughFor(refused) <= enoughFor(err) {
		p.sharing.Sharing = before
		return refused
	}
	return err
}

// faster takes plans for an arena for each job instead of those by gates, unless by gates jobs are expected to be
// faster by a hundredth: to back pages and give them back costs a little that is not expected.
func (s *session) faster(ctx context.Context, p *planFlags) error {
	request, gates := s.request, s.planned
	err := s.planAs(ctx, p, wire.NoSharing, 0)
	if errors.Is(err, scheduler.ErrNoPlan) || err == nil &&
		gates.WeightedTime(&request) <= s.planned.WeightedTime(&request)/100*99 {
		s.request, s.planned, p.sharing.Sharing = request, gates, wire.Gates
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

// planAs plans for jobs that share memory in a way.
func (s *session) planAs(ctx context.Context, p *planFlags, way wire.Sharing, overhead float64) (err error) {
	p.sharing.Sharing = way
	s.shared(p)
	on := p.describeDevice(s.device)
	if p.overhead != "" {
		if err = s.planLeastMemory(ctx, p, overhead); err == nil && s.request.Together {
			s.planned.Expected, err = on.Expect(ctx, s.planned, &s.request, s.planned.Least)
		}
		return err
	}
	s.planned, err = on.Plan(ctx, s.request)
	return perhapsPercent(p.budget, err)
}

// addContexts says of a budget that is too small what comes off it.
func (s *session) addContexts(err error) error {
	if _, ok := errors.AsType[*scheduler.OverBudgetError](err); ok && s.contexts.Sum() > 0 {
		return fmt.Errorf("%w (for the jobs, beside %s)", err, s.contexts)
	}
	return err
}

// planLeastMemory plans for the least memory with which no job takes more than an overhead longer, and makes that the
// budget.
func (s *session) planLeastMemory(ctx context.Context, p *planFlags, overhead float64) error {
	peaks, err := s.unplanned(ctx)
	if err != nil {
		return err
	}
	c := planner.Curve{Request: s.request, Live: sumOf(peaks.Live)}
	point, err := c.Least(ctx, overhead, s.request.Budget)
	if slow, ok := errors.AsType[*planner.SlowError](err); ok {
		within := ""
		if p.budget != "" {
			within = ", --budget " + p.budget
		}
		return fmt.Errorf("--max-overhead %s%s: %w", p.overhead, within, slow)
	} else if err != nil {
		return perhapsPercent(p.budget, err)
	}
	s.planned, s.budget, s.request.Budget, s.request.Lowest = point.Planned, point.Budget, point.Budget, false
	return nil
}

// unplanned loads the workload, opens the device and makes the request. The caller closes the device.
func unplanned(ctx context.Context, names []string, w *workloadFlags, p *planFlags) (*session, error) {
	var s session
	priorities, err := parsePerModel("--priority", p.priority, len(names), priorityValue)
	if err != nil {
		return nil, err
	}
	swapRates, err := parsePerModel("--max-swap-rate", p.swapRate, len(names), swapRateValue)
	if err != nil {
		return nil, err
	}
	if w.replicas > 1 { // a lease would grant them all that they ask for
		p.whole, p.sharing.open = true, false
	}
	if s.workload, err = w.load(names); err != nil {
		return nil, err
	}
	if !p.simulated() { // such a device is that of one replica
		s.workload = workload.Replicas(s.workload)
	}
	p.record(s.workload)
	if s.device, s.link, err = openDevice(p); err != nil {
		return nil, err
	}
	if err = p.checkSharing(s.device); err == nil {
		err = s.ask(ctx, p, priorities, swapRates)
	}
	if err != nil {
		s.device.Close()
		return nil, err
	}
	return &s, nil
}

// ask makes the request for the plans.
func (s *session) ask(ctx context.Context, p *planFlags, priorities []int, swapRates []float64) (err error) {
	for _, t := range s.workload { // before anything is calibrated
		if t.Latency != nil && p.onHost == nil { // recorded, and not to be trained
			continue
		}
		if err := device.Supports(s.device, t.Graph); err != nil {
			return err
		}
	}
	if s.latency, err = p.findModel(s.device); err != nil {
		return err
	}
	if s.jobs, err = p.describeDevice(s.device).Jobs(s.workload); err != nil {
		return err
	}
	s.prefer(priorities, swapRates)
	if s.contexts.Each = p.context; p.context > 0 {
		if s.contexts.Processes = 1 + len(s.workload); p.shared {
			s.contexts.Processes = 2
		}
	}
	if p.onHost != nil {
		for i := range s.jobs {
			s.jobs[i].OnHost = p.onHost(s.jobs[i].Graph)
		}
		if s.hostBudget, err = p.host.limit(p.simulated()); err != nil {
			return err
		}
	}
	s.shared(p)
	if s.budget, err = s.parseBudget(ctx, p.budget); err != nil {
		return err
	}
	s.shared(p)
	return nil
}

// shared makes the request for jobs that share memory as flags say. Leases grant whole pages.
func (s *session) shared(p *planFlags) {
	on := p.describeDevice(s.device)
	s.request = on.Request(s.jobs...)
	s.request.Policy, s.request.Options, s.request.Lowest, s.request.Explain = p.policy, p.planning(), p.lowest,
		p.explain
	s.request.Budget, s.request.HostBudget = s.budget, s.hostBudget
	if p.sharing.Sharing != wire.NoSharing && s.budget >= on.Page {
		s.request.Budget = s.budget / on.Page * on.Page
	}
}

// unplanned returns the peaks of the jobs without a plan.
func (s *session) unplanned(ctx context.Context) (planner.Peaks, error) {
	if s.vanilla == nil {
		peaks, err := planner.Vanilla(ctx, s.request)
		if err != nil {
			return planner.Peaks{}, err
		}
		s.vanilla = &peaks
	}
	return *s.vanilla, nil
}

// saved returns what the plans save.
func (s *session) saved(ctx context.Context) ([]report.Memory, error) {
	peaks, err := s.unplanned(ctx)
	if err != nil {
		return nil, err
	}
	return report.MemoryOf(s.planned, peaks), nil
}

// prefer sets what the jobs are worth and may swap, given per MODEL or, as nil, not at all.
func (s *session) prefer(priorities []int, swapRates []float64) {
	s.priorities, s.swapRates = perJob(priorities, s.workload), perJob(swapRates, s.workload)
	for i := range s.jobs {
		if s.priorities != nil {
			s.jobs[i].Weight = s.priorities[i]
		}
		if s.swapRates != nil {
			s.jobs[i].MaxSwapRate = s.swapRates[i]
		}
	}
}

// perJob repeats each MODEL's value for its copies, which have one graph.
func perJob[T any](values []T, w []task.Task) []T {
	if values == nil {
		return nil
	}
	var all []T
	model := 0
	for i := range w {
		if i > 0 && w[i].Graph != w[i-1].Graph {
			model++
		}
		all = append(all, values[model])
	}
	return all
}

// parseBudget reads a budget for the jobs. Percentages are of the sum of their slot peaks under none-live; of a size
// contexts come off.
func (s *session) parseBudget(ctx context.Context, text string) (graph.Bytes, error) {
	percent, ok, err := parsePercent(text)
	if err != nil || text == "" {
		return 0, err
	}
	if !ok {
		b, err := parseBytes("--budget", text)
		if taken := s.contexts.Sum(); err == nil && taken > 0 && b <= taken {
			return 0, fmt.Errorf("--budget %s: %s take all of it: give more than %s", text, s.contexts, taken)
		}
		return b - s.contexts.Sum(), err
	}
	peaks, err := s.unplanned(ctx)
	if err != nil {
		return 0, err
	}
	return max(1, graph.Bytes(float64(sumOf(peaks.Live))*percent/100)), nil // 0 would be no limit
}

func sumOf(all []graph.Bytes) (sum graph.Bytes) {
	for _, b := range all {
		sum += b
	}
	return sum
}
