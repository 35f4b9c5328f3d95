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

	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/clock"
	"tensile/wire/limit"
)

// Options are what Run needs beside the bus.
type Options struct {
	Config

	// InForce: MemorySharing is for when no jobs run. If some do, theirs goes on.
	InForce bool

	// On is the device of this process; Config.Device, Align, Out and In follow from it. With Config.NoDevice there is
	// none.
	On planner.Device

	// Describe is what plans have to know of a device that executors bring; the error is why jobs cannot be planned for
	// on it. Several goroutines call it. Nil: they can on none.
	Describe func(*wire.Device) (planner.Device, error)

	// Plan makes plans, on a goroutine of its own, until ctx is done: then nobody wants them any more. Nil: a Planner
	// does.
	Plan func(ctx context.Context, q *Plan) *Planned

	// Launch starts an executor process by this name, which joins by itself; ended is called once when it has ended,
	// with the reason in one line and the lives of that name that are known to have ended. Nil: executors are started
	// by hand.
	Launch func(executor string, ended func(why string, lives []string)) error

	// Kill ends the process of an executor that Launch has started, which does not answer; ended is called as ever.
	// Nil: such a process stays.
	Kill func(executor string)

	// Lives reports whether the process of an executor that was started here lives, if that is known, and if it does
	// not, which lives of that name have ended. It is asked, once a second, about those that a controller before this
	// one has launched: of the end of others it is told by Launch. Nil: it is known of none.
	Lives func(executor string) (ended []string, lives, known bool)

	// Forgotten is told that an executor has left for good; may be nil.
	Forgotten func(executor string)

	// Credentials are what the executor of a script needs to connect, as text. Nil: no scripts are taken.
	Credentials func(executor string) string

	// Trouble says in one line why the bus stores nothing, as with a full disk, and "" when it does; nil: it always
	// does. While there is trouble requests are refused for that reason, and no executor counts as silent.
	Trouble func() string
	// Full says in one line which store of the bus takes no more, "" when all do: that is told, and nothing is refused
	// for it; nil: none is ever full.
	Full func() string

	Record *Recorder // writes down what the machine is told and answers; nil: nobody does
	// Last is the file for the newest of what the machine was told, which is written if it panics; "": none is.
	Last   string
	Log    *slog.Logger // nil: nobody reads it
	Events func(Event)  // what the log says, for programs; may be nil

	// Reports is given what executors have measured, as it arrives and before it is checked further; it is not to be
	// changed, nor to be waited for. From another goroutine than Events. May be nil.
	Reports func(*wire.Report)

	Ready func() // called once when requests are taken
	Views *Views // shows what the controller knows, from when requests are taken; may be nil

	// Waited is told how long a message or request has waited until the machine took it, Planned how long an errand
	// took that was not given up; both may be nil. Several goroutines call them.
	Waited, Planned func(time.Duration)
}

// maxInputs is how many inputs may wait for the machine.
const maxInputs = 1024

// beat is how often the machine is told the time.
const beat = time.Second

// Run is a controller on a bus, until ctx is done. It takes up what one before it has stored there. Where the bus gives
// no answer meanwhile, the error is wire.ErrAway or context.DeadlineExceeded.
func Run(ctx context.Context, bus wire.Bus, o Options) error {
	o.Device, o.Align, o.Out, o.In, o.Sharing = o.On.Identity, o.On.Align, o.On.Out, o.On.In, o.On.Sharing
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
		waiting: make(map[int64]chan<- wire.Answer), sizes: make(map[graph.Digest]int),
		asked: make(chan struct{}, maxAsked), planning: make(chan struct{}, 1),
		stop: make(map[int64]func()), plans: NewPlans(keptCommands)}
	defer r.errands.Wait()
	defer cancel()
	if err := r.restore(); err != nil {
		return fmt.Errorf("take up what is stored: %w", err)
	}
	if o = r.options; o.Plan == nil {
		r.options.Plan = func(ctx context.Context, q *Plan) *Planned { return r.planner(q).Plan(ctx, q) }
	}
	if err := r.resume(); err != nil {
		return err
	}
	stop, err := r.listen()
	if err != nil {
		return err
	}
	defer stop()
	if o.Views != nil {
		now := r.view
		o.Views.now.Store(&now)
		defer o.Views.now.Store(nil)
	}
	if o.Ready != nil {
		o.Ready()
	}
	return r.loop()
}

// runner has a machine talk over a bus. The machine belongs to the goroutine in loop, and so does what has no lock.
type runner struct {
	ctx     context.Context
	bus     wire.Bus
	options Options
	machine *Machine
	inputs  chan input

	waiting map[int64]chan<- wire.Answer // who waits for an answer, by Input.From
	last    int64                        // From of the newest

	errands  sync.WaitGroup
	asked    chan struct{}    // holds one for each explanation that is asked for and not given
	planning chan struct{}    // holds one while one is worked out
	stop     map[int64]func() // cancel errands that are not answered, by ticket

	sizes map[graph.Digest]int // bytes of the graphs that are stored
	plans *Plans               // that were made for devices that executors bring

	blocked atomic.Pointer[View] // what was known, while the bus does not take something
	deaf    bool                 // it did not since the last beat

	listing atomic.Bool // of logs
	doomed  []string    // keys of results that are to be removed
	newest  newest

	garbageLock sync.Mutex
	garbage     limit.Lines // that arrives
}

// input is what the machine is to be told, or asked.
type input struct {
	Input
	at      time.Duration            // it arrived: since the Unix epoch
	list    bool                     // the answer is a list of all jobs
	graphs  map[graph.Digest]*handed // that come with it
	answer  chan<- wire.Answer
	view    chan<- View    // what is known is asked for
	result  string         // a key at which an executor has left one
	logs    map[string]int // all that there are
	removed int            // doomed results
}

// put puts an input in line. Any goroutine may call it. What an executor says counts as heard at this moment, however
// long the line is.
func (r *runner) put(in input) {
	in.at = clock.Now()
	select {
	case r.inputs <- in:
	case <-r.ctx.Done():
	}
}

// loop steps the machine.
func (r *runner) loop() error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case in := <-r.inputs:
			if err := r.take(in); err != nil {
				return err
			}
		case <-tick.C:
			if err := r.tick(); err != nil {
				return err
			}
		}
	}
}

// take has the machine take an input.
func (r *runner) take(in input) error {
	if in.list {
		in.answer <- r.now().Answer
		return nil
	}
	if in.result != "" {
		r.left(in.result)
		return nil
	}
	if in.removed > 0 {
		r.removed(in.removed)
		return nil
	}
	if in.logs != nil {
		return r.listed(in.logs)
	}
	if in.view != nil {
		in.view <- r.now()
		return nil
	}
	if r.options.Waited != nil {
		r.options.Waited(clock.Now() - in.at)
	}
	if in.Planned != nil {
		delete(r.stop, in.Planned.Ticket)
	}
	if in.answer != nil {
		r.last++
		in.From = r.last
		r.waiting[in.From] = in.answer
	}
	if len(in.graphs) == 0 {
		return r.step(in.at, in.Input)
	}
	if refusal, err := r.keep(&in); err != nil {
		return err
	} else if refusal != "" {
		in.answer <- wire.Answer{Error: refusal}
		delete(r.waiting, in.From)
		return nil
	}
	if err := r.step(in.at, in.Input); err != nil {
		return err
	}
	for digest := range in.graphs {
		if !r.machine.uses(digest) { // it was refused
			if err := r.insist(func() error { return r.removeGraph(digest) }); err != nil {
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
			if err := r.take(in); err != nil {
				return err
			}
			continue
		default:
		}
		break
	}
	r.leftOut()
	r.listLogs()
	if err := r.bury(); err != nil {
		return err
	}
	deaf := r.deaf || r.options.Trouble() != "" // what executors say is not stored, and so not heard
	r.deaf = false
	return r.step(clock.Now(), Input{Tick: &Tick{Deaf: deaf}})
}

// step steps the machine and does what it wants.
func (r *runner) step(at time.Duration, in Input) error {
	if p := in.Report; p != nil {
		r.options.Log.LogAttrs(r.ctx, slog.LevelDebug, "an iteration was reported", slog.String("job", p.Job),
			slog.String("executor", p.Executor), slog.Int64("epoch", p.Epoch), slog.Int("iteration", p.Iteration),
			slog.Duration("took_ns", p.Wall), slog.Duration("stall_ns", p.Stall), slog.Duration("gate_ns", p.Gate))
	}
	r.newest.add(at, in)
	defer r.panicked()
	outputs := r.machine.Step(at, in)
	r.options.Record.step(at, in, outputs)
	return r.carryOut(outputs)
}

// resume does what the machine wants before the first step.
func (r *runner) resume() error {
	at := clock.Now()
	outputs := r.machine.Resume(at)
	r.options.Record.resume(at, outputs)
	return r.carryOut(outputs)
}

// carryOut does what the machine wants, in its order; nothing once ctx is done.
func (r *runner) carryOut(outputs []Output) error {
	for _, o := range outputs {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if err := r.do(o); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) do(o Output) error {
	switch {
	case o.Answer != nil:
		if answer := r.waiting[o.Answer.To]; answer != nil {
			answer <- o.Answer.Answer
			delete(r.waiting, o.Answer.To)
		}
	case o.Plan != nil:
		r.begin(o.Plan)
	case o.Ask != nil:
		r.explain(o.Ask)
	case o.Cancel != 0:
		if stop := r.stop[o.Cancel]; stop != nil {
			stop()
			delete(r.stop, o.Cancel)
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
		return r.insist(func() error { return r.store(o) })
	}
	return nil
}

// store has the bus keep what an output says, or no longer.
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
		return r.collect(o.Result)
	case o.Learnt != nil:
		return r.bus.Store(r.ctx, wire.Lessons, wire.LearntObject(o.Learnt.Wire.Device), wire.Encode(o.Learnt.Wire))
	case o.Device != nil:
		return r.bus.Put(r.ctx, wire.DeviceKey(o.Device.Name), wire.Encode(*o.Device))
	case o.Set != nil:
		return r.bus.Store(r.ctx, wire.Administration, wire.SettingsObject(o.Set.Device), wire.Encode(*o.Set))
	case o.Tenants != nil:
		return r.bus.Store(r.ctx, wire.Administration, wire.TenantsObject, wire.Encode(*o.Tenants))
	case o.Orders != nil:
		return r.bus.Put(r.ctx, wire.OrdersKey(o.Orders.Executor), wire.Encode(*o.Orders))
	case o.Forget != "":
		return r.forget(o.Forget)
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
	case o.Drop != nil:
		return errors.Join(r.bus.Delete(r.ctx, wire.RecordKey(o.Drop.Job)),
			r.bus.Clear(r.ctx, wire.LogSubject("*", o.Drop.Job)))
	}
	panic(fmt.Sprintf("controller: an output that says nothing: %+v", o))
}

// keptCommands are those of plans that are kept: a few tens of megabytes.
const keptCommands = 300_000

// planner is one of the device that a plan is for. Any goroutine may call it.
func (r *runner) planner(p *Plan) *Planner {
	if p == nil || p.Device == nil {
		return &Planner{Config: r.options.Config, On: r.options.On}
	}
	c := r.options.Config.For(p.Device)
	return &Planner{Config: c, On: c.Shared(r.describe(p.Device)), Plans: r.plans}
}

// describe is what plans have to know of a device that executors have brought. Jobs can not run on one that cannot be
// planned for.
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

// begin has plans made beside all else.
func (r *runner) begin(p *Plan) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.stop[p.Ticket] = cancel
	r.errands.Go(func() {
		defer cancel()
		began := clock.Now()
		planned := r.plan(ctx, p)
		if ctx.Err() == nil {
			if r.options.Planned != nil {
				r.options.Planned(clock.Now() - began)
			}
			r.put(input{Input: Input{Planned: planned}})
		}
	})
}

// plan makes plans. A panic is a bug that fails these plans alone: the jobs say so, and where it was stands in the log.
func (r *runner) plan(ctx context.Context, p *Plan) (planned *Planned) {
	defer func() {
		if bug := recover(); bug != nil {
			r.options.Log.Error("a bug ended the making of plans: report it with these lines", "panic", bug,
				"stack", string(debug.Stack()))
			why := fmt.Sprintf("a bug ended the making of plans (%v): the log of the controller says where", bug)
			planned = &Planned{Ticket: p.Ticket, Why: &NoPlan{Why: strings.ReplaceAll(why, "\n", " ")}}
		}
	}()
	return r.options.Plan(ctx, p)
}

// insist does something on the bus again and again until it works: without its bus a controller can only wait.
func (r *runner) insist(do func() error) error {
	said := false
	for {
		err := do()
		if err == nil {
			if r.blocked.Swap(nil) != nil {
				r.deaf = true // what executors said meanwhile is still to be read
			}
			return nil
		}
		if r.blocked.Load() == nil {
			view := r.now()
			r.blocked.Store(&view)
		}
		if !said && r.options.Trouble() == "" { // which is said by whoever knows of it
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
