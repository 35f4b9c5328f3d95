package controller

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"tensile/graph"
	"tensile/predictor/correct"
	"tensile/wire"
)

// View is what a controller knows at one moment, for those who show it. It shares nothing with the controller that
// this still changes.
type View struct {
	wire.Answer                  // to a request for all jobs
	Live        []Live           // per job
	Owners      map[string]Tally // by Live.Owner, of all jobs that there were
	Reports     int64            // of iterations that were heard
	LostReports int64            // that were lost between these
}

// Live is what a record of a job does not say.
type Live struct {
	Tally
	Owner   string      // for whom it is counted: Spec.Owner, or OtherOwners
	Touched graph.Bytes // the highest byte of its arena that was used, in the newest iteration; 0: not known
	Swapped graph.Bytes // on the host alone, to come back: mean over the newest iteration

	// by which part of them measured latencies differ from those that its plans were made with last: |s'-s|/s;
	// negative: no iteration was reported
	PredictionError float64
}

// view is what the machine says of that.
func (m *Machine) view() View {
	s := View{Owners: make(map[string]Tally), Reports: m.reports, LostReports: m.missing}
	for owner, t := range m.tallies {
		s.Owners[owner] = t.clone()
	}
	for _, j := range m.jobs {
		if m.find(j.record.Spec.Name) != j {
			continue
		}
		l := Live{Tally: j.tally.clone(), Owner: m.counted(j), PredictionError: -1}
		if j.queued > 0 {
			l.Queued += m.now - j.queued
		}
		if j.progress.reported && j.record.State == wire.JobRunning {
			l.Touched, l.Swapped = j.progress.touched, j.progress.swapped()
			l.PredictionError = correct.Drift(j.latency, j.assumed)
		}
		s.Live = append(s.Live, l)
	}
	return s
}

// Views shows what a controller knows while it runs. The zero value is ready, for Options; any goroutine may ask.
type Views struct {
	now atomic.Pointer[func(context.Context) (View, error)]
}

// errNotRunning is returned while no controller runs.
var errNotRunning = errors.New("controller: it does not run")

// Now returns what the controller knows. While its bus stores nothing that is what it knew before. The error is
// ErrNotRunning, or that of ctx.
func (v *Views) Now(ctx context.Context) (View, error) {
	now := v.now.Load()
	if now == nil {
		return View{}, errNotRunning
	}
	return (*now)(ctx)
}

// view is what the controller knows, asked for from another goroutine.
func (r *runner) view(ctx context.Context) (View, error) {
	trouble := r.options.Trouble()
	if blocked := r.blocked.Load(); blocked != nil {
		v := *blocked
		v.Trouble = cmp.Or(trouble, v.Trouble)
		return v, nil
	}
	answer := make(chan View, 1)
	r.put(input{view: answer})
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return View{}, context.Cause(ctx)
	case <-r.ctx.Done():
		return View{}, errNotRunning
	}
}

// now is what the controller knows. The goroutine of the machine alone calls it.
func (r *runner) now() View {
	o, v := &r.options, r.machine.view()
	v.Answer = wire.Answer{Jobs: r.machine.Records(), Trouble: cmp.Or(o.Trouble(), o.Full(), r.machine.Trouble()),
		Device:     o.Device,
		Budget:     r.machine.Budget(),
		Contexts:   r.machine.Contexts(),
		HostMemory: o.HostMemory, Sharing: o.MemorySharing,
		ByHand:  r.machine.ByHand(),
		Link:    wire.Rates{Out: o.Out.Rate, In: o.In.Rate},
		Devices: r.machine.Devices(), Tenants: r.machine.Tenants()}
	return v
}
