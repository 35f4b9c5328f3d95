package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"tensile/data/checkpoint"
	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/reduce"
	"tensile/executor/timeline"
	"tensile/wire"
	"tensile/wire/clock"
)

// Bus is what an agent needs of a [wire.Bus].
type Bus interface {
	Put(ctx context.Context, key string, value []byte) error
	Watch(ctx context.Context, pattern string, each func(key string, value []byte)) (stop func(), err error)
	Load(ctx context.Context, bucket, name string) ([]byte, error)
	Publish(subject string, data []byte) error
	Append(ctx context.Context, log string, line []byte) error
	Connected() bool
}

// Options are what an agent is; name, device, host and bus must be given.
type Options struct {
	// Executor is the executor's name.
	Executor string
	// Life names the process: each process of that name has another. "": Run makes one up.
	Life string
	// Dead are the lives of that name that are known to have ended.
	Dead []string
	// Brings is what the controller is to know of the device, so that it plans for it as for one of its own; nil: the
	// device is that of the controller's process.
	Brings *wire.Device
	// Alone is how long the executor waits without work for a controller that is away; 0: an hour.
	Alone time.Duration
	// Orphan is how long jobs train without a controller before they leave; 0: for ever.
	Orphan time.Duration
	// Device describes the device for jobs' tasks.
	Device Device
	// Host makes what trains on the device, such as HostMaker(device).
	Host func(observer func(executor.Event)) Host
	// Bus is the connection to the controller.
	Bus Bus
	// Heartbeat is the time between statuses when nothing happens; 0: a second.
	Heartbeat time.Duration
	// Log gets trouble with the bus and its messages, and at level debug what jobs' logs say; nil: there is no log.
	Log *slog.Logger
	// Record writes down what the machine is told and answers; nil: nothing is written.
	Record *Recorder

	// Address is the address of this host at which replicas at other executors reach the process; zero: replicas are on
	// this host only, and need no network.
	Address netip.Addr

	// Checkpoints is the folder for its jobs' checkpoints. Without a Dir no job is taken that wants any.
	Checkpoints checkpoint.Folder
	// Access limits the files that jobs may name.
	Access Access

	// Interrupt, if not nil, is closed when the process is to end: jobs end after the iterations in flight, are saved
	// if they are to be, and Run returns an InterruptedError.
	Interrupt <-chan struct{}

	// Removed, if not nil, reports whether the files of this executor were removed, and so its controller: it ends as
	// after an Interrupt.
	Removed func() bool

	// Lease opens the lease of the device's host, whose answers go to answer, from any goroutine. It is called once,
	// when jobs share memory first; what it returns is closed when Run returns. Nil: no other process uses this device,
	// and the lease is one of this process.
	Lease func(l *wire.Lease, answer func(...lease.Output)) (HostLease, error)
	// Place is where such a lease is one lease, as process.Place has it; "": the lease is one of this process.
	Place string

	// Notice is what a person who started the executor wants to know: that it has joined, what becomes of jobs. Nil:
	// nobody is there.
	Notice *slog.Logger
}

// Run trains on a device what a controller orders, until that lets the executor leave (nil) or sends it away, it is
// interrupted, ctx is done, or the device fails. Whatever it has opened on the device is closed when it returns.
func Run(ctx context.Context, o Options) error {
	if err := wire.CheckName(o.Executor); err != nil {
		return fmt.Errorf("executor: %w", err)
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := Process{Executor: o.Executor, Life: cmp.Or(o.Life, rand.Text()), Dead: o.Dead, Device: o.Device.Identity(),
		Host: ProcessName(), Since: int64(clock.Now()), Alone: o.Alone, Orphan: o.Orphan, Brings: o.Brings,
		Place: o.Place}
	if o.Checkpoints.Dir != "" {
		var err error
		if p.Folder, err = o.Checkpoints.Identity(); err != nil {
			o.Log.Warn("jobs do not move between this executor's device and others", "err", err)
		}
	}
	if !isSimulated(o.Device) { // jobs of several processes are to have one clock
		p.Origin = clock.Now() - o.Device.Now()
	}
	r := &runner{Options: o, cancel: cancel, machine: NewMachine(p), sender: newSender(&o),
		ready: make(chan struct{}, 1), losses: make(map[string]*losses), lines: make(map[string]*reduce.Line),
		checkpoints: &Checkpoints{Folder: o.Checkpoints, Host: hostName(), FolderIdentity: p.Folder,
			Device: p.Device, NoData: isSimulated(o.Device), Access: o.Access}}
	o.Record.begin(p)
	r.timeline = timeline.Recorder{Device: o.Device.Name(), Origin: p.Origin}
	r.host = o.Host(func(e executor.Event) {
		if e.Trace != nil {
			r.publishTrace(e.Job, e.Trace)
			return
		}
		r.enqueue(Input{Event: &e})
	})
	stop, err := o.Bus.Watch(ctx, wire.OrdersKey(o.Executor), r.enqueueOrders)
	if err != nil {
		r.sender.close()
		return fmt.Errorf("wait for orders: %w", err)
	}
	why := r.run(ctx)
	stop()
	for _, line := range r.lines {
		line.Close()
	}
	closing := r.host.Close()
	if r.lease != nil {
		closing = errors.Join(closing, r.lease.Close())
	}
	r.step(clock.Now(), Input{Closed: true})
	r.sender.close()
	return errors.Join(why, closing)
}

// isSimulated reports whether a device has virtual time and no data.
func isSimulated(d Device) bool { return strings.HasPrefix(d.Name(), "sim:") }

// ProcessName names this machine and process.
func ProcessName() string { return fmt.Sprintf("%s, process %d", hostName(), os.Getpid()) }

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "a machine without a name"
	}
	return host
}

// arrival is an input and when it came.
type arrival struct {
	at time.Duration
	Input
}

// runner is a machine and all that it drives. Its own goroutine alone touches the machine, and losses.
type runner struct {
	Options
	// cancel ends the process.
	cancel func(error)
	// machine decides for the jobs.
	machine *Machine
	// host trains the jobs.
	host Host
	// sender publishes what the machine says.
	sender *sender
	// ctx is for what is fetched.
	ctx context.Context
	// errands counts the goroutines that fetch or keep something.
	errands sync.WaitGroup
	// losses are those of the jobs that the host has, by name.
	losses map[string]*losses
	// lines are, by name, the connections of those jobs that are replicas, until they have ended.
	lines map[string]*reduce.Line
	// online says that there is a connection to the controller.
	online bool
	// sent is why the controller does not want the process; "": it does.
	sent string
	// lease is the lease of the host's device; nil: jobs share no memory, or only within this process.
	lease HostLease

	// timeline records traces. The goroutine in Serve alone uses it.
	timeline timeline.Recorder

	// checkpoints writes and reads the jobs' checkpoints.
	checkpoints *Checkpoints

	// mu guards inputs.
	mu sync.Mutex
	// inputs are those that the machine has not had yet.
	inputs []arrival
	// ready has a value if inputs has.
	ready chan struct{}
}

// run has the host serve and steps the machine, and returns when neither goes on.
func (r *runner) run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r.ctx = inner
	var failure error
	served := make(chan struct{})
	go func() {
		defer close(served)
		failure = r.host.Serve(inner)
	}()
	let := r.loop(ctx, served)
	cancel()
	<-served
	r.errands.Wait()
	if r.sent != "" {
		return fmt.Errorf("executor %s is sent away: %s", r.Executor, r.sent)
	}
	if let {
		return r.machine.Farewell()
	}
	for rest := r.takeInputs(); len(rest) > 0; rest = r.takeInputs() { // jobs that have ended by themselves
		for _, in := range rest {
			r.step(in.at, in.Input)
		}
		r.errands.Wait()
	}
	why := context.Cause(ctx)
	if ctx.Err() == nil {
		why = fmt.Errorf("the device has failed: %w", failure)
	}
	r.step(clock.Now(), Input{Quit: why})
	return why
}

// errInterrupted is why jobs of an interrupted executor have failed.
var errInterrupted = errors.New("its executor was interrupted")

// errRemoved is why jobs of an executor whose files were removed have failed.
var errRemoved = errors.New("the files of its executor were removed")

// loop steps the machine until it lets go, and reports whether it did. Otherwise the jobs can not go on.
func (r *runner) loop(ctx context.Context, served <-chan struct{}) bool {
	beat := time.NewTicker(r.Heartbeat)
	defer beat.Stop()
	if r.listen() {
		return true
	}
	interrupt, removed := r.Interrupt, r.Removed
	for {
		select {
		case <-r.ready:
			for _, in := range r.takeInputs() {
				if r.step(in.at, in.Input) {
					return true
				}
			}
		case <-beat.C:
			tick := Input{Tick: true}
			if r.lease != nil {
				tick.Waits = r.lease.Waits()
			}
			if r.listen() || r.step(clock.Now(), tick) {
				return true
			}
			if removed != nil && removed() {
				removed = nil
				if r.step(clock.Now(), Input{Drain: errRemoved}) {
					return true
				}
			}
		case <-interrupt:
			interrupt = nil
			if r.step(clock.Now(), Input{Drain: errInterrupted}) {
				return true
			}
		case <-served:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// listen tells the machine when the connection has come or gone, and reports whether it lets the process go then.
func (r *runner) listen() bool {
	online := r.Bus.Connected()
	if online == r.online {
		return false
	}
	r.online = online
	return r.step(clock.Now(), Input{Online: &online})
}

// enqueue puts an input in line for the machine. Any goroutine may call it.
func (r *runner) enqueue(in Input) {
	r.mu.Lock()
	r.inputs = append(r.inputs, arrival{clock.Now(), in})
	r.mu.Unlock()
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

func (r *runner) takeInputs() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	inputs := r.inputs
	r.inputs = nil
	return inputs
}

// enqueueOrders enqueues orders from the bus, which may be any message.
func (r *runner) enqueueOrders(_ string, value []byte) {
	if value == nil {
		return // what was ordered goes on
	}
	o, err := wire.DecodeAs[wire.Orders](value)
	if err != nil {
		r.Log.Warn("orders are left", "err", err)
		return
	}
	r.enqueue(Input{Orders: &o})
}

// step steps the machine, does what it says, and reports whether it lets the process go.
func (r *runner) step(at time.Duration, in Input) (leave bool) {
	if in.Event != nil {
		in.Loss = r.takeLoss(in.Event)
	}
	outputs := r.machine.Step(at, in)
	in.Spare(outputs)
	r.Record.step(at, in, outputs)
	for _, out := range outputs {
		r.sent = cmp.Or(r.sent, out.Refused)
		leave = leave || out.Leave || out.Refused != ""
		r.do(out)
	}
	return leave
}

func (r *runner) do(out Output) {
	switch {
	case out.Meet != nil:
		r.listenForNext(out.Meet)
	case out.Join != nil:
		if line := r.lines[out.Join.Job]; line != nil {
			line.Join(out.Join.Meeting)
		}
	case out.Part != "":
		r.closeConnections(out.Part)
	case out.Prepare != nil:
		r.errands.Go(func() { r.enqueue(Input{Prepared: r.prepare(out.Prepare)}) })
	case out.Fetch != nil:
		r.errands.Go(func() { r.enqueue(Input{Fetched: r.fetch(out.Fetch)}) })
	case out.Open != nil:
		r.submitJob(out.Open)
	case out.Change != nil:
		r.host.Change(out.Change.Job, out.Change.Proven)
	case out.Stop != "":
		r.host.Stop(out.Stop)
	case out.Park != nil:
		r.host.Park(out.Park.Job, out.Park.Number, out.Park.At)
	case out.Resume != "":
		r.host.Resume(out.Resume)
	case out.Take != nil:
		r.host.Checkpoint(out.Take.Job, out.Take.At)
	case out.Write != nil:
		losses := r.losses[out.Write.Spec.Name].prefix(out.Write.Snapshot.Iteration)
		r.errands.Go(func() {
			since := clock.Now()
			w := r.checkpoints.Write(out.Write, losses)
			if w.Checkpoint != nil && !r.checkpoints.NoData {
				w.Checkpoint.Took = min(clock.Now()-since, wire.MaxTook)
			}
			r.enqueue(Input{Written: w})
		})
	case out.Discard != nil:
		r.errands.Go(func() {
			if err := r.checkpoints.Discard(out.Discard); err != nil {
				r.Log.Warn("checkpoints of a job that is over are left", "job", out.Discard.Job, "err", err)
			}
		})
	case out.Remove != "":
		r.host.Remove(out.Remove)
	case out.Keep != nil:
		l := r.losses[out.Keep.Spec.Name]
		r.errands.Go(func() { r.enqueue(Input{Kept: r.checkpoints.keepResult(out.Keep, l)}) })
	case out.Store != nil:
		r.errands.Go(func() { r.enqueue(Input{Stored: r.store(out.Store)}) })
	case out.Status != nil:
		r.sender.setStatus(out.Status)
	case out.Report != nil:
		r.publish(out.Report)
	case out.Event != nil:
		if text := out.Event.Log(); text != "" {
			r.sender.addLine(&logLine{out.Event.Job, text})
			r.Log.LogAttrs(r.ctx, slog.LevelDebug, "job "+out.Event.Job+": "+text, out.Event.attrs()...)
		}
		if text := out.Event.Notice(); text != "" && r.Notice != nil {
			r.Notice.LogAttrs(r.ctx, out.Event.level(), text, out.Event.attrs()...)
		}
	case out.Lend != nil:
		r.lend(out.Lend)
	case out.Weigh != nil:
		r.host.Weigh(out.Weigh.Job, out.Weigh.Weight)
	case out.Unplanned != nil:
		if h, ok := r.host.(unplannable); ok {
			h.Unplanned(out.Unplanned.Job, out.Unplanned.Reason)
		}
	case out.Trace != nil:
		r.host.Trace(out.Trace.Job, out.Trace.Iterations)
	case out.Link != nil:
		if d, ok := r.Device.(device.LinkSharer); ok {
			d.ShareLink(out.Link.Out, out.Link.In)
		}
	}
}

// publish sends a report. One that is lost is not missed.
func (r *runner) publish(report *wire.Report) {
	if err := r.Bus.Publish(wire.ReportSubject(report.Executor, report.Job), wire.Encode(*report)); err != nil {
		r.Log.Debug("a report was lost", "job", report.Job, "err", err)
	}
}

// publishTrace publishes the trace of a section, before anything that follows from it is published.
func (r *runner) publishTrace(job string, t *executor.Trace) {
	data, err := timeline.Encode(r.timeline.Add(job, t))
	if err == nil {
		err = r.Bus.Publish(wire.TraceSubject(r.Executor, job), data)
	}
	if err != nil {
		r.Log.Debug("a part of a trace was lost", "job", job, "err", err)
	}
}
