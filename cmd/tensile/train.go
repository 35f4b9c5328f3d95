package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/controller/plans"
	"tensile/executor"
	"tensile/executor/timeline"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/bus"
)

// training is a controller of this process, executor processes of its own, and the jobs of a workload.
type training struct {
	session *session
	flags   *runFlags
	policy  string
	plain   bool // jobs share no memory
	budget  graph.Bytes
	planned *planner.Planned  // the first plans
	request scheduler.Request // for them
	save    bool
	learn   bool                   // read what the jobs have learned when they are over
	learned []map[string][]float32 // per job, by name of storage
	dir     string                 // of what the processes need; gone when they are, but for:
	left    []string               // folders of checkpoints of jobs that have failed
	screen  *observer              // may be nil
	trace   *tracing               // nil: what the jobs do is not recorded
	pace    *pace                  // nil: from the begin to the end without a rest
}

// run trains all jobs to their end: in this process where time is virtual, so that a run is the same every time.
func (t *training) run(ctx context.Context) (*local.Run, error) {
	if !t.flags.trainsInProcess() {
		run, err := t.processes(ctx)
		return run, t.interrupted(err)
	}
	end := func() {}
	if t.save { // the planned run
		var err error
		if end, err = profileTo(t.flags.profile); err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
	}
	defer end()
	run, err := local.Train(ctx, t.session.device, t.device(), t.session.Tasks, local.Options{Config: t.config(),
		Iterations: t.flags.iterations, From: t.flags.from,
		AnyDevice: t.flags.anyDevice, Priorities: t.session.priorities, SwapRates: t.session.swapRates,
		Plan:  t.planner().Plan,
		Trace: t.traced(),
		Observe: func(it local.Iterated) {
			t.screen.applied(it.Job, it.SlotPeak)
			t.screen.iteration(it.Job, it.Report)
		}})
	return run, t.interrupted(err)
}

// traced records what jobs do on the device of this process, beside what the first plans expect. It is nil without a
// trace.
func (t *training) traced() func(job string, did *executor.Trace) {
	if t.trace == nil {
		return nil
	}
	r := timeline.Recorder{Device: t.session.device.Name()}
	r.Timing = func(job string, p *plan.Plan) (program.Timing, bool) {
		i := slices.IndexFunc(t.session.Tasks, func(w task.Task) bool { return w.Name == job })
		if first := t.planned.Programs[i].Program().Plan; p.Epoch != first.Epoch {
			return program.Timing{}, false
		}
		return t.planned.Timing(i), true
	}
	return func(job string, did *executor.Trace) { t.trace.add(r.Add(job, did)) }
}

// trainsInProcess reports whether this process trains, with no executors: where time is virtual, unless they are asked
// for.
func (f *runFlags) trainsInProcess() bool { return f.simulated() && !f.share && !f.isolate }

// device is what plans are made for.
func (t *training) device() planner.Device {
	if t.plain {
		return t.session.Device.Unshared()
	}
	return t.session.Device
}

// config is what the controller plans by.
func (t *training) config() controller.Config {
	c := t.flags.controllerConfig(t.budget)
	c.Policy, c.HostMemory = t.policy, t.session.Request.HostBudget
	if c.Budget > 0 {
		c.Budget += t.session.contexts.Sum()
	}
	if t.plain {
		c.MemorySharing = wire.NoSharing
	}
	c.SharedDevice(t.device())
	return c
}

// planner makes the controller's plans. The first ones are made already, where it asks for just these.
func (t *training) planner() *plans.Worker {
	c := t.config()
	return &plans.Worker{Settings: c.PlanSettings(), Device: t.device(),
		Known: func(r scheduler.Request) *planner.Planned {
			r.Reports, r.Explain = false, false // nobody can ask for reasons
			if reflect.DeepEqual(r, t.request) && !t.planned.Again {
				return t.planned
			}
			return nil
		}}
}

// interrupted says what an interrupt has done to jobs that were not to be saved.
func (t *training) interrupted(err error) error {
	if _, saved := errors.AsType[*exitError](err); saved || !errors.Is(err, errInterrupted) {
		return err
	}
	return fmt.Errorf("%w: the jobs were stopped and their memory given back; nothing was saved", errInterrupted)
}

// processes has executor processes train. Whatever was started and made for it is gone when it returns.
func (t *training) processes(ctx context.Context) (_ *local.Run, err error) {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // after an interrupt, until jobs are saved
	defer cancel(nil)
	dir, err := os.MkdirTemp("", "tensile-run-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, err
	}
	t.dir = dir
	defer func() { err = errors.Join(err, t.clear()) }()
	server, err := bus.Start(bus.Options{Dir: dir, Listen: bus.Local})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	device := t.flags.planFlags
	device.link = t.session.link.flag()
	if device.cores && !t.flags.share { // two executors with all cores each take a sixth longer than with half of them
		device.threads = max(1, device.threads/len(t.session.Tasks))
	}
	children := newChildren(server, dir, &device, true)
	children.paced = t.pace != nil
	if t.save { // the planned run
		children.profile = t.flags.profile
	}
	defer func() { children.end(len(t.left) > 0) }()
	ended := make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(ended)
		o := controller.Options{Config: t.config(), PlanDevice: t.device(),
			Launcher: controller.Launcher{Launch: children.launch}, Plan: t.planner().Plan,
			Ready: func() { close(ready) }}
		o.Config.Lease = leaseName(server)
		o.OneExecutor = t.flags.share
		o.Limited = t.session.link.rate > 0
		cancel(control(running, server, nil, o))
	}()
	defer func() {
		cancel(nil)
		<-ended
	}()
	select {
	case <-ready:
	case <-running.Done():
		return nil, context.Cause(running)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := server.Connect(running, bus.ConnOptions{})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if t.pace != nil {
		stop, err := t.pace.watch(ctx, conn)
		if err != nil {
			return nil, err
		}
		defer stop()
		t.pace.begin(children)
	}
	run, err := t.jobs(ctx, running, conn)
	if err == nil && t.learn {
		t.learned, err = t.read()
	}
	return run, err
}

// saves reports whether the weights are to be kept.
func (t *training) saves() bool { return t.save && t.flags.save != "" }

// jobs submits the jobs and waits until all are over, ctx is done, or the controller does not run any more.
func (t *training) jobs(ctx, running context.Context, conn *bus.Conn) (*local.Run, error) {
	index := make(map[string]int)
	for i, task := range t.session.Tasks {
		index[task.Name] = i
	}
	var mu sync.Mutex
	watched := make([]local.Watched, len(index))
	if t.trace != nil {
		stop, err := t.trace.follow(conn)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	unwatch, err := conn.Subscribe(wire.ReportSubject("*", "*"), func(_ string, data []byte) {
		r, err := wire.DecodeAs[wire.Report](data)
		if err != nil {
			return
		}
		mu.Lock()
		watched[index[r.Job]].Add(r.Iteration, r.Epoch, r.Wall, r.Steps)
		mu.Unlock()
		t.screen.iteration(index[r.Job], &r)
	})
	if err != nil {
		return nil, err
	}
	defer unwatch()
	over := make(chan wire.Record, len(index))
	told := make(map[string]bool)
	stop, err := conn.Watch(running, wire.RecordKey("*"), func(_ string, value []byte) {
		r, err := wire.DecodeAs[wire.Record](value)
		if err != nil {
			return
		}
		if r.State == wire.JobRunning {
			t.screen.trouble(index[r.Spec.Name], r.Reason)
		}
		if r.SlotPeak > 0 {
			t.screen.applied(index[r.Spec.Name], r.SlotPeak)
		}
		if r.State.Over() && !told[r.Spec.Name] {
			told[r.Spec.Name] = true
			over <- r
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	jobs := make([]newJob, len(index))
	for i, task := range t.session.Tasks {
		replica := replicaOf(&task)
		if t.flags.simulated() { // such a device is that of one replica
			replica = wire.Replica{}
		}
		if jobs[i], err = t.submission(i).job(task, len(index), replica); err != nil {
			return nil, err
		}
	}
	if _, err := submit(ctx, conn, jobs); ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		return nil, err
	}
	if t.trace != nil {
		for name := range index {
			if _, err := ask(ctx, conn, wire.Request{Verb: wire.TraceJob, Job: name,
				Iterations: math.MaxInt32}); err != nil {
				return nil, err
			}
		}
	}
	run := &local.Run{Jobs: make([]local.JobRun, len(index))}
	var ended []wire.Record
	for range index {
		select {
		case r := <-over:
			ended = append(ended, r)
			if r.State != wire.JobFinished {
				if !t.saves() {
					return nil, &exitError{errors.New(t.cameTo(r)), max(someFailed, statusOf(&r))}
				}
				kept, err := t.keep(running, conn, ended, over) // what the others have learned
				return nil, cmp.Or(err, error(&exitError{errors.New(kept), statusOf(&r)}))
			}
			result, err := loadResult(ctx, conn, r.Result)
			if err != nil {
				return nil, err
			}
			run.Jobs[index[r.Spec.Name]] = local.JobRun{Result: *result, Iterations: r.Iteration}
		case <-running.Done():
			return nil, context.Cause(running)
		case <-ctx.Done():
			if t.saves() {
				kept, err := t.keep(running, conn, ended, over)
				return nil, cmp.Or(err, error(&exitError{fmt.Errorf("%w: %s", errInterrupted, kept), interruptStatus}))
			}
			return nil, context.Cause(ctx)
		}
	}
	if t.trace != nil {
		t.trace.rest(t.flags.iterations)
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range run.Jobs {
		run.Jobs[i].Watched = watched[i]
	}
	return run, nil
}

// keep stops the jobs, which saves them, and says where each is. Some have ended before.
func (t *training) keep(ctx context.Context, conn *bus.Conn, ended []wire.Record, over <-chan wire.Record) (string,
	error) {
	for _, task := range t.session.Tasks {
		_, _ = ask(ctx, conn, wire.Request{Verb: wire.Stop, Job: task.Name}) // it may be over
	}
	for len(ended) < len(t.session.Tasks) {
		select {
		case r := <-over:
			ended = append(ended, r)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	var lines []string
	for _, r := range ended {
		if r.Result != nil && !t.saves() {
			r.Result.Saved = "" // what is learned goes with the run
		}
		line := t.cameTo(r)
		if r.Result == nil || r.Result.Saved == "" {
			line += "; not saved"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; "), nil
}

// cameTo says how a job has ended. The checkpoint of one that has failed, which that names, stays.
func (t *training) cameTo(r wire.Record) string {
	if c := r.Checkpoint; c != nil && r.State == wire.JobFailed {
		t.left = append(t.left, filepath.Dir(c.File))
		here := *c
		here.Host, r.Checkpoint = "", &here
	}
	return cameTo(r)
}

// clear removes what the processes needed, but for the checkpoints that are left.
func (t *training) clear() error {
	if len(t.left) == 0 {
		return os.RemoveAll(t.dir)
	}
	var problems []error
	checkpoints := filepath.Join(t.dir, checkpointsName)
	for _, dir := range []string{t.dir, checkpoints} {
		list, err := os.ReadDir(dir)
		problems = append(problems, err)
		for _, e := range list {
			if path := filepath.Join(dir, e.Name()); path != checkpoints && !slices.Contains(t.left, path) {
				problems = append(problems, os.RemoveAll(path))
			}
		}
	}
	return errors.Join(problems...)
}

// submission is what is asked for a job.
func (t *training) submission(job int) *submission {
	s := &submission{workloadFlags: t.flags.workloadFlags, checkpointFlags: t.flags.checkpointFlags,
		iterations: t.flags.iterations}
	if t.session.priorities != nil {
		s.priority = t.session.priorities[job]
	}
	if t.session.swapRates != nil {
		s.swapRate = t.session.swapRates[job]
	}
	s.save = t.keeps()
	return s
}

// absolute is a path that another process understands.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}
