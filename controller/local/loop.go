package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/agent"
	"tensile/models/task"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// loop is a controller's machine, an agent's machine and a host on one device, and what is stored between them.
type loop struct {
	ctx        context.Context
	options    Options
	spec       specOf
	device     device.Device
	host       *executor.Host
	lease      *lease.Machine
	controller *controller.Machine
	// agent is nil until it is launched.
	agent  *agent.Machine
	jobs   []*job
	byName map[string]*job

	// mail delivers the messages that are on their way, oldest first.
	mail []func() error
	// cancelled is the newest ticket whose plans nobody wants any more. 0: there is none.
	cancelled int64
	layouts   map[string]*wire.Layout
	results   map[string]*wire.Result
	// trouble ends the run. nil: there is none.
	trouble error
	// agentLeft says that the agent has nothing to do any more.
	agentLeft bool
}

// job is a task that is trained.
type job struct {
	index int
	task  task.Task
	// losses has one loss per iteration, nil without data. The job's host lane writes it before the report of the
	// iteration.
	losses []*wire.Loss
	// failure is the error of the device that ended the job. nil: there was none.
	failure error
	record  wire.Record
	watched Watched
}

// newLoop returns a loop to which all tasks are submitted.
func newLoop(ctx context.Context, d device.Device, on planner.Device, tasks []task.Task, o Options, spec specOf) *loop {
	o.Device, o.Align, o.Out, o.In, o.Sharing = on.Identity, on.Align, on.Out, on.In, on.Sharing
	o.OneExecutor, o.Watched = true, true
	on = o.SharedDevice(on)
	if o.Plan == nil {
		o.Plan = (&plans.Worker{Settings: o.Config.PlanSettings(), Device: on}).Plan
	}
	l := &loop{ctx: ctx, options: o, spec: spec, device: d, controller: controller.NewMachine(o.Config),
		byName: make(map[string]*job), layouts: make(map[string]*wire.Layout), results: make(map[string]*wire.Result)}
	l.host, l.lease = executor.NewHost(d, l.observe),
		lease.NewMachine(lease.Options{Still: -1})
	for i, t := range tasks {
		j := &job{index: i, task: t, losses: make([]*wire.Loss, o.Iterations)}
		l.jobs, l.byName[t.Name] = append(l.jobs, j), j
	}
	l.submit()
	return l
}

// submit submits all jobs.
func (l *loop) submit() {
	in := controller.Input{From: 1}
	for i, j := range l.jobs {
		s := wire.Spec{Name: j.task.Name, Model: j.task.Model, Graph: j.task.Graph.Digest(), Seed: j.task.Seed,
			Iterations: l.options.Iterations, From: l.options.From, AnyDevice: l.options.AnyDevice}
		if l.options.Priorities != nil {
			s.Priority = l.options.Priorities[i]
		}
		if l.options.SwapRates != nil {
			s.SwapRate = l.options.SwapRates[i]
		}
		in.Submit = append(in.Submit, controller.Submission{Spec: s, Graph: j.task.Graph})
	}
	l.send(func() error { return l.stepController(in) })
}

// run delivers messages, and lets the device go on when there are none, until the agent leaves.
func (l *loop) run() error {
	for {
		for len(l.mail) > 0 {
			deliver := l.mail[0]
			l.mail = l.mail[1:]
			if err := cmp.Or(deliver(), l.trouble); err != nil {
				return err
			}
		}
		if l.agentLeft {
			return nil
		}
		switch busy, err := l.host.Poll(l.ctx); {
		case err != nil:
			return err
		case !busy && len(l.mail) == 0:
			return errors.New("the jobs do not go on; please report this with the command line")
		}
	}
}

// send puts a message on its way.
func (l *loop) send(deliver func() error) { l.mail = append(l.mail, deliver) }

// stepController steps the controller's machine and carries out what it wants.
func (l *loop) stepController(in controller.Input) error {
	for _, o := range l.controller.Step(l.device.Now(), in) {
		switch {
		case o.Answer != nil && o.Answer.Error != "":
			return errors.New(o.Answer.Error)
		case o.Record != nil:
			if err := l.applyRecord(o.Record); err != nil {
				return err
			}
		case o.Layout != nil:
			l.layouts[wire.LayoutObject(o.Layout.Job, o.Layout.ID, o.Layout.Layout.Plan.Epoch)] = o.Layout.Layout
		case o.Result != nil:
			l.results[o.Result.Object] = cmp.Or(l.results[o.Result.Key], o.Result.FromReports)
		case o.Orders != nil:
			l.send(func() error { return l.stepAgent(agent.Input{Orders: o.Orders}) })
		case o.Launch != "":
			if err := l.launch(o.Launch); err != nil {
				return err
			}
		case o.PlanRequest != nil:
			l.send(func() error { return l.makePlans(o.PlanRequest) })
		case o.Cancel != 0:
			l.cancelled = o.Cancel
		}
	}
	return nil
}

// applyRecord keeps the record of a job, and returns an error if the job has failed.
func (l *loop) applyRecord(r *wire.Record) error {
	j := l.byName[r.Spec.Name]
	if j.record = *r; r.State == wire.JobFailed {
		return cmp.Or(j.failure, fmt.Errorf("job %s failed: %s", r.Spec.Name, r.Reason))
	}
	return nil
}

// makePlans answers a plan request.
func (l *loop) makePlans(q *plans.Request) error {
	if q.Ticket == l.cancelled {
		return nil
	}
	planned := l.options.Plan(l.ctx, q)
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return l.stepController(controller.Input{PlanResult: planned})
}

// launch starts the agent, or another in its place when it has been told to leave. What the first one wanted of the
// host is done before.
func (l *loop) launch(name string) error {
	if l.agent != nil {
		if _, err := l.host.Poll(l.ctx); err != nil {
			return err
		}
	}
	l.agent = agent.NewMachine(agent.Process{Executor: name, Life: "local", Device: l.device.Identity()})
	online := true
	l.send(func() error { return l.stepAgent(agent.Input{Online: &online}) })
	return nil
}

// stepAgent steps the agent's machine and carries out what it wants.
func (l *loop) stepAgent(in agent.Input) error {
	for _, o := range l.agent.Step(l.device.Now(), in) {
		switch {
		case o.Prepare != nil:
			l.sendToAgent(agent.Input{Prepared: l.prepare(o.Prepare)})
		case o.Fetch != nil:
			layout := l.layouts[wire.LayoutObject(o.Fetch.Job, o.Fetch.ID, o.Fetch.Epoch)]
			l.sendToAgent(agent.Input{Fetched: o.Fetch.Prove(layout, l.device)})
		case o.Open != nil:
			l.openJob(o.Open)
		case o.Change != nil:
			l.host.Change(o.Change.Job, o.Change.Proven)
		case o.Stop != "":
			l.host.Stop(o.Stop)
		case o.Remove != "":
			l.host.Remove(o.Remove)
		case o.Lend != nil:
			agent.ShareMemory(l.host, o.Lend, l.lease)
		case o.Keep != nil:
			l.sendToAgent(agent.Input{Kept: o.Keep.Take(l.byName[o.Keep.Spec.Name].reportedLosses(o.Keep.Ended))})
		case o.Store != nil:
			l.results[o.Store.Key] = o.Store.Result
			l.sendToAgent(agent.Input{Stored: &agent.Stored{Ticket: o.Store.Ticket}})
		case o.Status != nil:
			l.send(func() error { return l.stepController(controller.Input{Status: o.Status}) })
		case o.Report != nil:
			l.send(func() error { return l.report(o.Report) })
		case o.Leave:
			l.agentLeft = true
		}
	}
	return nil
}

// prepare finds where a job begins.
func (l *loop) prepare(p *agent.Prepare) *agent.Prepared {
	j := l.byName[p.Spec.Name]
	checkpoints := agent.Checkpoints{Device: l.device.Identity(), NoData: strings.HasPrefix(l.device.Name(), "sim:")}
	begin, _, err := checkpoints.Start(p, &j.task)
	if begin != nil {
		for i := range begin.Losses {
			j.losses[i] = (*wire.Loss)(&begin.Losses[i])
		}
	}
	return &agent.Prepared{Ticket: p.Ticket, Task: j.task, Begin: begin, Err: err}
}

// sendToAgent puts an input of the agent on its way.
func (l *loop) sendToAgent(in agent.Input) { l.send(func() error { return l.stepAgent(in) }) }

// openJob submits a job to the host.
func (l *loop) openJob(o *agent.Open) {
	j := l.byName[o.Spec.Name]
	spec := l.spec(o.Task, o.Spec.Iterations, func(iteration int, loss float32) {
		j.losses[iteration] = (*wire.Loss)(&loss)
	})
	spec.Weight = o.Spec.Priority
	if o.Begin != nil {
		spec.Begin = o.Begin.Iteration
	}
	l.host.Submit(spec, o.Proven)
	if l.options.Trace != nil {
		l.host.Trace(o.Spec.Name, math.MaxInt)
	}
}

// reportedLosses are the losses of a job that has ended. They are nil without data.
func (j *job) reportedLosses(e *executor.Ended) []float32 {
	var all []float32
	for _, loss := range j.losses[:e.Iterations] {
		if loss != nil {
			all = append(all, float32(*loss))
		}
	}
	return all
}

// observe takes an event of the host.
func (l *loop) observe(e executor.Event) {
	in := agent.Input{Event: &e}
	switch j := l.byName[e.Job]; {
	case e.Trace != nil:
		l.options.Trace(e.Job, e.Trace)
		return
	case e.Report != nil:
		in.Loss = j.losses[e.Report.Iteration]
	case e.Ended != nil:
		j.failure = e.Ended.Err
		if l.options.ended != nil {
			l.options.ended(e.Ended)
		}
	case e.Refused != nil:
		l.trouble = cmp.Or(l.trouble, e.Refused)
	}
	l.sendToAgent(in)
}

// report takes a report of the agent.
func (l *loop) report(r *wire.Report) error {
	j := l.byName[r.Job]
	j.watched.Add(r.Iteration, r.Epoch, r.Wall, r.Steps)
	if l.options.Observe != nil {
		l.options.Observe(Iterated{j.index, r, j.record.SlotPeak})
	}
	return l.stepController(controller.Input{Report: r})
}

// outcome is what became of the jobs.
func (l *loop) outcome() *Run {
	run := new(Run)
	for _, j := range l.jobs {
		result := j.record.Result
		if whole := l.results[result.Stored]; whole != nil {
			result = whole
		}
		run.Jobs = append(run.Jobs, JobRun{Result: *result, Iterations: j.record.Iteration, Watched: j.watched})
	}
	return run
}
