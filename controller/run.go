package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/clock"
	"tensile/wire/limit"
)

// Options are what Run needs beside the bus.
type Options struct {
	Config

	// KeepSharing says that MemorySharing counts only if no jobs run. If some do, they go on sharing as they did.
	KeepSharing bool

	// PlanDevice describes the device of this process for plans. Config.Device, Align, Out and In follow from it. It is
	// zero with Config.NoDevice.
	PlanDevice planner.Device

	// Describe describes a device that executors register for plans. The error is why jobs cannot be planned for on it.
	// Several goroutines call it. nil: jobs can be planned for on no such device.
	Describe func(*wire.Device) (planner.Device, error)

	// Plan answers a plan request, on a goroutine of its own. Once ctx is done nobody wants the answer. nil: a
	// plans.Worker answers.
	Plan func(ctx context.Context, q *plans.Request) *plans.Result

	Launcher

	// Trouble says in one line why the bus stores nothing, as when the disk is full, and "" when it does. While there
	// is trouble requests are refused with that line, and no executor counts as silent. nil: there is never trouble.
	Trouble func() string
	// Full says in one line which store of the bus takes no more, and "" when all do. Answers tell it, and nothing is
	// refused for it. nil: none is ever full.
	Full func() string

	// Record writes what the machine takes and answers. nil: nothing is written.
	Record *Recorder
	// Last is the file for the most recent inputs, which is written if the machine panics. "": none is written.
	Last string
	// Log is where events are logged. nil: they are not.
	Log *slog.Logger
	// Ready is called once when requests are taken. It may be nil.
	Ready func()
	// Views shows what the controller knows, from when requests are taken on. It may be nil.
	Views *Views
	Observers
}

// Launcher is how the processes of executors are started and ended.
type Launcher struct {
	// Launch starts an executor process by this name, which joins by itself. ended is called once when the process has
	// ended, with the reason in one line and the lives of that name that are known to have ended. nil: executors are
	// started by hand.
	Launch func(executor string, ended func(why string, lives []string)) error

	// Kill ends the process of an executor that Launch has started and that does not answer. Then ended is called as
	// always. nil: such a process stays.
	Kill func(executor string)

	// Lives reports whether the process of an executor that was started here lives, if that is known, and if it does
	// not live, which lives of that name have ended. It is called once a second for the executors that a controller
	// before this one has launched; the end of others is told by Launch. nil: it is known of none.
	Lives func(executor string) (ended []string, lives, known bool)

	// Forgotten is called when an executor has left for good. It may be nil.
	Forgotten func(executor string)

	// Credentials are what the executor of a script needs to connect, as text. nil: no scripts are taken.
	Credentials func(executor string) string
}

// Observers are called with what happens. All may be nil.
type Observers struct {
	// Events is called with each event that is logged.
	Events func(Event)

	// Reports is called with the reports of executors as they arrive, before they are checked further. It must not
	// change them or wait. Another goroutine calls it than Events.
	Reports func(*wire.Report)

	// Waited is called with how long a message or request has waited until the machine took it, PlanTook with how long
	// the answer to a plan request took that was not given up. Several goroutines call them.
	Waited, PlanTook func(time.Duration)
}

// maxInputs is how many inputs may wait for the machine.
const maxInputs = 1024

// beat is the time between two ticks of the machine.
const beat = time.Second

// Run is a controller on a bus, until ctx is done. It takes up what a controller before it has stored there. If the bus
// gives no answer meanwhile, the error is wire.ErrAway or context.DeadlineExceeded.
func Run(ctx context.Context, bus wire.Bus, o Options) error {
	o.Device, o.Align, o.Out, o.In, o.Sharing = o.PlanDevice.Identity, o.PlanDevice.Align, o.PlanDevice.Out,
		o.PlanDevice.In, o.PlanDevice.Sharing
	o.Config = o.Config.withDefaults()
	o.Watched = o.Launch != nil
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Full == nil {
		o.Full = func() string { return "" }
	}
	if o.Trouble == nil {
		o.Trouble = func() string { return "" }
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &runner{ctx: ctx, bus: bus, options: o, inputs: make(chan input, maxInputs),
		waiters: waiters{answers: make(map[int64]chan<- wire.Answer)}, sizes: make(map[graph.Digest]int),
		planning: planning{explanations: make(chan struct{}, maxExplanations), explaining: make(chan struct{}, 1),
			cancels: make(map[int64]func()), planCache: plans.NewCache(cachedCommands)}}
	defer r.background.Wait()
	defer cancel()
	if err := r.restore(); err != nil {
		return fmt.Errorf("take up what is stored: %w", err)
	}
	if o = r.options; o.Plan == nil {
		r.options.Plan = func(ctx context.Context, q *plans.Request) *plans.Result {
			return r.workerFor(q).Plan(ctx, q)
		}
	}
	if err := r.resume(); err != nil {
		return err
	}
	stop, err := r.subscribe()
	if err != nil {
		return err
	}
	defer stop()
	if o.Views != nil {
		now := r.askForView
		o.Views.read.Store(&now)
		defer o.Views.read.Store(nil)
	}
	if o.Ready != nil {
		o.Ready()
	}
	return r.loop()
}

// runner has a machine talk over a bus. The machine belongs to the goroutine in loop, and so do the fields that no lock
// protects.
type runner struct {
	ctx     context.Context
	bus     wire.Bus
	options Options
	machine *Machine
	inputs  chan input

	waiters
	planning

	// sizes has the sizes, in bytes, of the graphs that are stored.
	sizes map[graph.Digest]int

	// blocked is what was known when the bus began to refuse something. nil: it refuses nothing.
	blocked atomic.Pointer[View]
	// deaf says that the bus refused something since the last tick.
	deaf bool

	// listing says that logs are being listed.
	listing atomic.Bool
	// strayLogs are the logs of no job in the newest listing.
	strayLogs map[string]bool
	// strayResults are the keys of results that are to be removed.
	strayResults []string
	recent       recentInputs
	garbageLines
}

// waiters are those who wait for an answer.
type waiters struct {
	// answers are their channels, by Input.From.
	answers map[int64]chan<- wire.Answer
	// lastFrom is the newest Input.From. 0: nobody has waited.
	lastFrom int64
	// askers are the users whose requests wait.
	askers askers
}

// planning is what goes on beside the machine's goroutine.
type planning struct {
	// background counts the goroutines that make plans, explanations and answers.
	background sync.WaitGroup
	// explanations holds a token for each explanation that is asked for and not given.
	explanations chan struct{}
	// explaining holds a token while an explanation is worked out.
	explaining chan struct{}
	// cancels end open plan requests, by ticket.
	cancels map[int64]func()
	// planCache has the plans for devices that executors register.
	planCache *plans.Cache
}

// garbageLines limits the log lines about messages that are ignored.
type garbageLines struct {
	// garbageLock protects garbage.
	garbageLock sync.Mutex
	garbage     limit.Lines
}

// input is what the machine is told or asked, or what else its goroutine is to do. One of Input and the fields from
// listJobs on is set; graphs and answer come with an Input.
type input struct {
	Input
	// at is when it arrived, since the Unix epoch.
	at time.Duration
	// listJobs asks for all jobs after a page, to be sent to answer.
	listJobs *wire.Request
	// graphs come with a request.
	graphs map[graph.Digest]*handedGraph
	answer chan<- wire.Answer
	// view asks for what is known.
	view chan<- View
	// result is a key at which an executor has left a result.
	result string
	// logs are all that are stored.
	logs map[string]int
	// removed is how many stray results were removed.
	removed int
}

// putInput puts an input in line. Any goroutine may call it. What an executor says counts as heard at this moment,
// however long the line is.
func (r *runner) putInput(in input) {
	in.at = clock.Now()
	select {
	case r.inputs <- in:
	case <-r.ctx.Done():
	}
}

// loop steps the machine until ctx is done.
func (r *runner) loop() error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case in := <-r.inputs:
			if err := r.takeInput(in); err != nil {
				return err
			}
		case <-tick.C:
			if err := r.tick(); err != nil {
				return err
			}
		}
	}
}

// takeInput has the machine take an input, or does what else the input asks for.
func (r *runner) takeInput(in input) error {
	if in.listJobs != nil {
		a := r.currentAnswer()
		a.Jobs = remainingJobs(in.listJobs, a.Jobs)
		in.answer <- a
		return nil
	}
	if in.result != "" {
		r.removeStrayResult(in.result)
		return nil
	}
	if in.removed > 0 {
		r.strayResultsRemoved(in.removed)
		return nil
	}
	if in.logs != nil {
		return r.clearStrayLogs(in.logs)
	}
	if in.view != nil {
		in.view <- r.currentView()
		return nil
	}
	if r.options.Waited != nil {
		r.options.Waited(clock.Now() - in.at)
	}
	if in.PlanResult != nil {
		delete(r.cancels, in.PlanResult.Ticket)
	}
	if in.answer != nil {
		r.lastFrom++
		in.From = r.lastFrom
		r.answers[in.From] = in.answer
	}
	if len(in.graphs) == 0 {
		return r.step(in.at, in.Input)
	}
	if refusal, err := r.storeGraphs(&in); err != nil {
		return err
	} else if refusal != "" {
		in.answer <- wire.Answer{Error: refusal}
		delete(r.answers, in.From)
		return nil
	}
	if err := r.step(in.at, in.Input); err != nil {
		return err
	}
	for digest := range in.graphs {
		if !r.machine.usesGraph(digest) { // the request was refused
			if err := r.retryOnBus(func() error { return r.removeGraph(digest) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// tick tells the machine the time, after all that arrived before.
func (r *runner) tick() error {
	for {
		select {
		case in := <-r.inputs:
			if err := r.takeInput(in); err != nil {
				return err
			}
			continue
		default:
		}
		break
	}
	r.logOmitted()
	r.listLogs()
	if err := r.buryOrphans(); err != nil {
		return err
	}
	deaf := r.deaf || r.options.Trouble() != "" // what executors say is not stored, and does not arrive
	r.deaf = false
	return r.step(clock.Now(), Input{Tick: &Tick{Deaf: deaf}})
}

// step steps the machine and carries out what it wants.
func (r *runner) step(at time.Duration, in Input) error {
	if p := in.Report; p != nil {
		r.options.Log.LogAttrs(r.ctx, slog.LevelDebug, "an iteration was reported", slog.String("job", p.Job),
			slog.String("executor", p.Executor), slog.Int64("epoch", p.Epoch), slog.Int("iteration", p.Iteration),
			slog.Duration("took_ns", p.Wall), slog.Duration("stall_ns", p.Stall), slog.Duration("gate_ns", p.Gate))
	}
	r.recent.add(at, in)
	defer r.reportPanic()
	outputs := r.machine.Step(at, in)
	r.options.Record.step(at, in, outputs)
	return r.carryOut(outputs)
}

// resume carries out what the machine wants before the first step.
func (r *runner) resume() error {
	at := clock.Now()
	outputs := r.machine.Resume(at)
	r.options.Record.resume(at, outputs)
	return r.carryOut(outputs)
}

// carryOut carries out outputs in their order. It stops once ctx is done.
func (r *runner) carryOut(outputs []Output) error {
	for _, o := range outputs {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if err := r.carryOutOne(o); err != nil {
			return err
		}
	}
	return nil
}

// carryOutOne carries out one output.
func (r *runner) carryOutOne(o Output) error {
	switch {
	case o.Answer != nil:
		if answer := r.answers[o.Answer.To]; answer != nil {
			answer <- o.Answer.Answer
			delete(r.answers, o.Answer.To)
		}
	case o.PlanRequest != nil:
		r.beginPlan(o.PlanRequest)
	case o.Explain != nil:
		r.explain(o.Explain)
	case o.Cancel != 0:
		if stop := r.cancels[o.Cancel]; stop != nil {
			stop()
			delete(r.cancels, o.Cancel)
		}
	case o.Launch != "":
		r.launch(o.Launch)
	case o.Kill != "":
		if r.options.Kill != nil {
			r.options.Kill(o.Kill)
		}
	case o.Event != nil:
		r.options.Log.LogAttrs(r.ctx, o.Event.level(), o.Event.String(), o.Event.attrs()...)
		if r.options.Events != nil {
			r.options.Events(*o.Event)
		}
	default:
		return r.retryOnBus(func() error { return r.store(o) })
	}
	return nil
}

// store has the bus store, or remove, what an output says.
func (r *runner) store(o Output) error {
	switch {
	case o.Record != nil:
		return r.bus.Put(r.ctx, wire.RecordKey(o.Record.Spec.Name), wire.Encode(*o.Record))
	case o.Graph != nil:
		return r.storeGraph(wire.Bucket(o.Graph.Executor), o.Graph.Graph)
	case o.Layout != nil:
		l := o.Layout
		return r.bus.Store(r.ctx, wire.Bucket(l.Executor), wire.LayoutObject(l.Job, l.ID, l.Layout.Plan.Epoch),
			wire.Encode(*l.Layout))
	case o.Result != nil:
		return r.storeResult(o.Result)
	case o.Learnt != nil:
		return r.bus.Store(r.ctx, wire.Lessons, wire.LearntObject(o.Learnt.Wire.Device), wire.Encode(o.Learnt.Wire))
	case o.Device != nil:
		return r.bus.Put(r.ctx, wire.DeviceKey(o.Device.Name), wire.Encode(*o.Device))
	case o.Settings != nil:
		return r.bus.Store(r.ctx, wire.Administration, wire.SettingsObject(o.Settings.Device), wire.Encode(*o.Settings))
	case o.Tenants != nil:
		return r.bus.Store(r.ctx, wire.Administration, wire.TenantsObject, wire.Encode(*o.Tenants))
	case o.Orders != nil:
		return r.bus.Put(r.ctx, wire.OrdersKey(o.Orders.Executor), wire.Encode(*o.Orders))
	case o.Forget != "":
		return r.removeExecutor(o.Forget)
	case o.Drop != nil && o.Drop.Graph != "":
		return r.removeGraph(o.Drop.Graph)
	case o.Drop != nil && o.Drop.Executor != "":
		return r.bus.Remove(r.ctx, wire.Bucket(o.Drop.Executor), o.Drop.Object)
	case o.Drop != nil && o.Drop.Result != "":
		return r.bus.Remove(r.ctx, wire.Results, o.Drop.Result)
	case o.Drop != nil && o.Drop.Device != "":
		return r.bus.Delete(r.ctx, wire.DeviceKey(o.Drop.Device))
	case o.Drop != nil && o.Drop.Settings != "":
		return r.bus.Remove(r.ctx, wire.Administration, o.Drop.Settings)
	case o.Drop != nil && o.Drop.Log != "":
		return r.bus.Clear(r.ctx, wire.LogSubject("*", o.Drop.Log))
	case o.Drop != nil:
		return errors.Join(r.bus.Delete(r.ctx, wire.RecordKey(o.Drop.Job)),
			r.bus.Clear(r.ctx, wire.LogSubject("*", o.Drop.Job)))
	}
	panic(fmt.Sprintf("controller: an output that says nothing: %+v", o))
}

// cachedCommands is how many commands of plans are kept: a few tens of megabytes.
const cachedCommands = 300_000

// workerFor is a worker of the device that a request is for. Any goroutine may call it.
func (r *runner) workerFor(p *plans.Request) *plans.Worker {
	if p == nil || p.Device == nil {
		return &plans.Worker{Settings: r.options.Config.PlanSettings(), Device: r.options.PlanDevice}
	}
	c := r.options.Config.ForDevice(p.Device)
	return &plans.Worker{Device: c.SharedDevice(r.describe(p.Device)), Settings: c.PlanSettings(), Cache: r.planCache}
}

// describe describes for plans a device that executors have registered. If it cannot be planned for, no job can run on
// it.
func (r *runner) describe(d *wire.Device) planner.Device {
	err := errors.New("this controller plans for its own device alone")
	if r.options.Describe != nil {
		var on planner.Device
		if on, err = r.options.Describe(d); err == nil {
			return on
		}
	}
	return planner.Device{Identity: d.Identity, Align: d.Align, Page: d.Page,
		Profile: func(*graph.Graph) (planner.Profile, error) { return planner.Profile{}, err }}
}

// beginPlan has a plan request answered on a goroutine of its own.
func (r *runner) beginPlan(p *plans.Request) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.cancels[p.Ticket] = cancel
	r.background.Go(func() {
		defer cancel()
		began := clock.Now()
		planned := r.makePlans(ctx, p)
		if ctx.Err() == nil {
			if r.options.PlanTook != nil {
				r.options.PlanTook(clock.Now() - began)
			}
			r.putInput(input{Input: Input{PlanResult: planned}})
		}
	})
}

// makePlans makes plans. A panic is a bug that makes this request alone fail: the jobs say so, and the log says where
// it was.
func (r *runner) makePlans(ctx context.Context, p *plans.Request) (planned *plans.Result) {
	defer func() {
		if bug := recover(); bug != nil {
			r.options.Log.Error("a bug ended the making of plans: report it with these lines", "panic", bug,
				"stack", string(debug.Stack()))
			why := fmt.Sprintf("a bug ended the making of plans (%v): the log of the controller says where", bug)
			planned = &plans.Result{Ticket: p.Ticket, NoPlan: &plans.NoPlan{Why: strings.ReplaceAll(why, "\n", " ")}}
		}
	}()
	return r.options.Plan(ctx, p)
}

// retryOnBus does something on the bus again and again until it works: without its bus a controller can only wait.
func (r *runner) retryOnBus(do func() error) error {
	said := false
	for {
		err := do()
		if err == nil {
			if r.blocked.Swap(nil) != nil {
				r.deaf = true // what executors said meanwhile has not arrived yet
			}
			return nil
		}
		if r.blocked.Load() == nil {
			view := r.currentView()
			r.blocked.Store(&view)
		}
		if !said && r.options.Trouble() == "" { // otherwise the log says already what the trouble is
			said = true
			r.options.Log.Warn("the bus does not take it, trying again", "err", err)
		}
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-time.After(time.Second / 4):
		}
	}
}
