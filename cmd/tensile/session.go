package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"tensile/device"
	"tensile/graph"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
	"tensile/wire"
)

// session is a workload, planned for a device.
type session struct {
	*planner.Session
	device   device.Device
	contexts wire.Contexts // Device memory of all processes outside the request's budget.
	link     linkRate
	latency  string // Source of the plan's latencies.

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
	if p.overhead != "" {
		s.Overhead = &overhead
	}
	if err = s.Plan(ctx); err != nil {
		s.device.Close()
		return nil, s.addContexts(p.explainRefusal(err))
	}
	if s.Choose && s.Device.Gates {
		p.sharing.Sharing = wire.Gates
	}
	tellNotes(s.Tasks)
	return s, nil
}

// explainRefusal says of an error of planning which flag it is about, and asks whether a percentage was meant where a
// budget of a few bytes is too small.
func (f *planFlags) explainRefusal(err error) error {
	if slow, ok := errors.AsType[*planner.SlowError](err); ok {
		within := ""
		if f.budget != "" {
			within = ", --budget " + f.budget
		}
		return fmt.Errorf("--max-overhead %s%s: %w", f.overhead, within, slow)
	}
	over, ok := errors.AsType[*scheduler.OverBudgetError](err)
	if n, number := strconv.ParseFloat(f.budget, 64); !ok || number != nil || n > 1000 {
		return err
	}
	return fmt.Errorf("--budget %s is %[1]s bytes: is %[1]s%% meant? The least that works is %s: %s", f.budget,
		over.Need, over.Reason)
}

// addContexts says of a budget that is too small what comes off it.
func (s *session) addContexts(err error) error {
	if _, ok := errors.AsType[*scheduler.OverBudgetError](err); ok && s.contexts.Sum() > 0 {
		return fmt.Errorf("%w (for the jobs, beside %s)", err, s.contexts)
	}
	return err
}

// unplanned loads the workload, opens the device and makes a session that has not planned yet. The caller closes the
// device.
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
	tasks, err := w.load(names)
	if err != nil {
		return nil, err
	}
	if !p.simulated() { // such a device is that of one replica
		tasks = task.Replicas(tasks)
	}
	recorded := p.latency.Record(tasks)
	if s.device, s.link, err = openDevice(p); err != nil {
		return nil, err
	}
	if err = p.checkSharing(s.device); err == nil {
		err = s.begin(ctx, p, tasks, recorded)
	}
	if err != nil {
		s.device.Close()
		return nil, err
	}
	s.prefer(priorities, swapRates)
	return &s, nil
}

// begin makes the session for tasks on the device that is open.
func (s *session) begin(ctx context.Context, p *planFlags, tasks []task.Task, recorded bool) (err error) {
	for _, t := range tasks { // before anything is calibrated
		if t.Latency != nil && p.onHost == nil { // recorded, and not to be trained
			continue
		}
		if err := device.Supports(s.device, t.Graph); err != nil {
			return err
		}
	}
	if s.latency, err = p.findModel(s.device, recorded); err != nil {
		return err
	}
	if s.Session, err = p.describeDevice(s.device).Session(tasks); err != nil {
		return err
	}
	s.Policy, s.Options, s.Lowest, s.Explain = p.policy, p.planning(), p.lowest, p.explain
	s.Choose = p.sharing.open && p.mayGate(s.device)
	if s.contexts.Each = p.context; p.context > 0 {
		if s.contexts.Processes = 1 + len(tasks); p.shared {
			s.contexts.Processes = 2
		}
	}
	if p.onHost != nil {
		for i := range s.Jobs {
			s.Jobs[i].OnHost = p.onHost(s.Jobs[i].Graph)
		}
		if s.HostBudget, err = p.host.limit(p.simulated()); err != nil {
			return err
		}
	}
	s.Budget, err = s.parseBudget(ctx, p.budget)
	return err
}

// saved returns what the plans save.
func (s *session) saved(ctx context.Context) ([]report.Memory, error) {
	peaks, err := s.Peaks(ctx)
	if err != nil {
		return nil, err
	}
	return report.MemoryOf(s.Planned, peaks), nil
}

// prefer sets what the jobs are worth and may swap, given per MODEL or, as nil, not at all.
func (s *session) prefer(priorities []int, swapRates []float64) {
	s.priorities, s.swapRates = perJob(priorities, s.Tasks), perJob(swapRates, s.Tasks)
	for i := range s.Jobs {
		if s.priorities != nil {
			s.Jobs[i].Weight = s.priorities[i]
		}
		if s.swapRates != nil {
			s.Jobs[i].MaxSwapRate = s.swapRates[i]
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

// parseBudget reads a budget for the jobs. Percentages are of what they need without a plan; of a size contexts come
// off.
func (s *session) parseBudget(ctx context.Context, text string) (graph.Bytes, error) {
	percent, ok, err := parsePercent(text)
	if err != nil || text == "" {
		return 0, err
	}
	if ok {
		return s.Percent(ctx, percent)
	}
	b, err := parseBytes("--budget", text)
	if taken := s.contexts.Sum(); err == nil && taken > 0 && b <= taken {
		return 0, fmt.Errorf("--budget %s: %s take all of it: give more than %s", text, s.contexts, taken)
	}
	return b - s.contexts.Sum(), err
}
