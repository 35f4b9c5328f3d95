package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"tensile/graph"
	"tensile/predictor/correct"
	"tensile/wire"
)

// View is what a controller knows at one moment, for those who show it. It shares nothing with the controller that
// still changes.
type View struct {
	// Answer is the answer to a request for all jobs.
	wire.Answer
	// Live has one entry per job.
	Live []Live
	// Owners counts what all jobs have done, by Live.Owner, also those that are forgotten.
	Owners map[string]Counters
	// Reports is how many iterations were reported.
	Reports int64
	// LostReports is how many reports were lost between these.
	LostReports int64
}

// Live is what is known of a job beyond its record.
type Live struct {
	Counters
	// Owner is for whom the job is counted: Spec.Owner, or "*" for the users beyond the first hundred.
	Owner string
	// Touched is the highest byte of the arena that the newest iteration used. 0: it is not known.
	Touched graph.Bytes
	// Swapped is the mean, over the newest iteration, of the bytes that were on the host alone and came back.
	Swapped graph.Bytes

	// PredictionError is the relative difference of measured latencies and those that plans were last requested with:
	// |s'-s|/s. Negative: no iteration was reported.
	PredictionError float64
}

// takeView is what the machine knows for a View: all but the answer to a request for all jobs.
func (m *Machine) takeView() View {
	s := View{Owners: make(map[string]Counters), Reports: m.reportCount, LostReports: m.lostReports}
	for owner, t := range m.counters {
		s.Owners[owner] = t.clone()
	}
	for _, j := range m.listed() {
		l := Live{Counters: m.soFar(j), Owner: m.countedOwner(j), PredictionError: -1}
		if j.progress.reported && j.record.State == wire.JobRunning {
			l.Touched, l.Swapped = j.progress.touched, j.progress.meanSwapped()
			l.PredictionError = correct.Drift(j.latency, j.plannedLatency)
		}
		s.Live = append(s.Live, l)
	}
	return s
}

// Views shows what a controller knows while it runs. The zero value is ready to stand in Options. Any goroutine may
// ask.
type Views struct {
	read atomic.Pointer[func(context.Context) (View, error)]
}

// errNotRunning is returned while no controller runs.
var errNotRunning = errors.New("controller: it does not run")

// Read returns what the controller knows. While its bus stores nothing, that is what it knew before. The error says
// that no controller runs, or is that of ctx.
func (v *Views) Read(ctx context.Context) (View, error) {
	now := v.read.Load()
	if now == nil {
		return View{}, errNotRunning
	}
	return (*now)(ctx)
}

// askForView asks the goroutine of the machine for what the controller knows.
func (r *runner) askForView(ctx context.Context) (View, error) {
	trouble := r.options.Trouble()
	if blocked := r.blocked.Load(); blocked != nil {
		v := *blocked
		v.Trouble = cmp.Or(trouble, v.Trouble)
		return v, nil
	}
	answer := make(chan View, 1)
	r.putInput(input{view: answer})
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return View{}, context.Cause(ctx)
	case <-r.ctx.Done():
		return View{}, errNotRunning
	}
}

// currentView is what the controller knows. Only the goroutine of the machine calls it.
func (r *runner) currentView() View {
	v := r.machine.takeView()
	v.Answer = r.currentAnswer()
	return v
}

// currentAnswer is the answer to a request for all jobs. Only the goroutine of the machine calls it.
func (r *runner) currentAnswer() wire.Answer {
	o := &r.options
	return wire.Answer{Jobs: r.machine.Records(), Trouble: cmp.Or(o.Trouble(), o.Full(), r.machine.Trouble()),
		Device:     o.Device,
		Budget:     r.machine.Budget(),
		Contexts:   r.machine.Contexts(),
		HostMemory: o.HostMemory, Sharing: o.MemorySharing,
		ByHand:  r.machine.executors.IsByHand(),
		Link:    wire.Rates{Out: o.Out.Rate, In: o.In.Rate},
		Devices: r.machine.Devices(), Tenants: r.machine.Tenants()}
}

// remainingJobs are the jobs after those of the pages before, of all. Those that are not taken yet come last, by name.
func remainingJobs(q *wire.Request, jobs []wire.Record) []wire.Record {
	compare := func(a, b *wire.Record) int {
		return cmp.Or(cmp.Compare(uint64(a.Order-1), uint64(b.Order-1)), cmp.Compare(a.Spec.Name, b.Spec.Name))
	}
	slices.SortStableFunc(jobs, func(a, b wire.Record) int { return compare(&a, &b) })
	if q.Job == "" {
		return jobs
	}
	last := wire.Record{Spec: wire.Spec{Name: q.Job}, Order: q.After}
	return slices.DeleteFunc(jobs, func(r wire.Record) bool { return compare(&r, &last) <= 0 })
}
