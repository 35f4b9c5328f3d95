package simtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/agent"
	"tensile/checkpoint"
	"tensile/controller"
	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/internal/randgraph"
	"tensile/lease"
	"tensile/planner"
	"tensile/scheduler"
	"tensile/task"
	"tensile/wire"
)

// world is a controller, executors, what a bus stores, and a network.
type world struct {
	t          *testing.T
	rng        *rand.Rand
	config     controller.Config
	own        *site   // the device of the controller's process
	sites      []*site // all devices on which jobs may train
	clock      time.Duration
	controller *controller.Machine
	processes  map[string]*process // by key
	mail       []func()            // on its way, in any order
	apart      bool                // some processes are on another host, with other checkpoints
	calm       bool                // nothing is lost or doubled, nobody dies any more
	lives      int

	records map[string]wire.Record
	graphs  map[graph.Digest]*graph.Graph
	layouts map[string]*wire.Layout // by object name
	dropped map[string]bool         // layouts that are of no use any more
	orders  map[string]wire.Orders
	results map[string]wire.Result // by key and object
	learnt  *wire.Learnt
	set     *wire.Settings
	devices map[string]wire.Device // that executors have brought

	disk *disk // with the checkpoints of all executors

	answers []wire.Answer
	reports []wire.Report
	events  []controller.Event
	names   int
	refused int      // second processes of an executor
	killed  int      // processes that did not answer
	resumed int      // jobs that began with a checkpoint
	unknown []func() // tell of processes that have ended without anybody's knowing

	ended    map[string]string                // lives that were started by hand and have ended, with their names
	ranOn    map[string]*site                 // jobs, by name
	moved    int                              // jobs that went from one device to another
	leaders  *leadership                      // nil: there is one controller
	turned   map[string]bool                  // jobs of which they have heard that they are not
	accepted map[string]bool                  // jobs of which whoever submitted them has heard that they are taken
	asks     int64                            // the number of the newest request
	handed   map[graph.Digest]*graph.Graph    // to executors, which keep them
	asked    map[int64]func(wire.Answer)      // who hears the answer
	recorded map[graph.Digest][]time.Duration // the latencies of scripts' graphs
	scripts  bool                             // some jobs are scripts
	orphans  []*script                        // whose sidecars have ended
	hurt     map[string]bool                  // scripts that have died, or lost their sidecars
	played   int                              // iterations of scripts by plans
	sidecars map[string]bool                  // executors of scripts that the controller counts with
	cameFrom map[string]*site                 // executors that were started by hand, by name
	doubled  map[string]bool                  // names that two processes have had
	tenants  *tenants                         // nil: nobody has a share
	lines    map[string]*line                 // of replicas, by their keys; nil: no job is replicated
	slow     time.Duration                    // how many times as long as others the devices of this world take
}

// planning is the work of a set of plans: enough for most to be what more work would find. What is tested here is what
// becomes of plans, and a soak of thousands of seeds would plan for three quarters of its time.
const planning = 1_000_000

// host trains jobs a turn at a time.
type host interface {
	agent.Host
	Poll(ctx context.Context) (bool, error)
}

// process is an executor process.
type process struct {
	w      *world
	site   *site
	name   string
	agent  *agent.Machine
	device device.Device
	opened time.Duration    // when that began to count its time
	lines  map[string]*line // of replicas, by job
	host   host
	job    string // of a script, whose sidecar it is; "": it is none
	cut    bool   // no message passes
	key    string // in the world; another than name for one that was started by hand, with the same credentials
	life   string
	far    bool                   // it is on another host
	arenas map[string]graph.Bytes // what its jobs have now
	hosts  map[string]graph.Bytes // what their host slots take
	loads  map[string]graph.Bytes // what they take under the programs that jobs were given, by job and epoch
	losses map[string][]float32
	epochs map[string]int64
	events []executor.Event // that the agent has not heard yet
	left   bool
	dead   bool
	stands bool // it does nothing, and hears nothing, for now

	asks    []lease.Input // on their way to the lease
	answers []lease.Output
}

func newWorld(t *testing.T, seed uint64, share bool, open func() device.Device) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 91)), processes: map[string]*process{},
		records: map[string]wire.Record{},
		graphs:  map[graph.Digest]*graph.Graph{}, layouts: map[string]*wire.Layout{}, orders: map[string]wire.Orders{},
		results: map[string]wire.Result{}, devices: map[string]wire.Device{}, cameFrom: map[string]*site{},
		ranOn: map[string]*site{}, accepted: map[string]bool{}, turned: map[string]bool{},
		handed: map[graph.Digest]*graph.Graph{},
		slow:   1, sidecars: map[string]bool{},
		asked: map[int64]func(wire.Answer){}, recorded: map[graph.Digest][]time.Duration{}, hurt: map[string]bool{},
		dropped: map[string]bool{}, ended: map[string]string{}, doubled: map[string]bool{}}
	w.own = &site{w: w, open: open}
	w.sites = []*site{w.own}
	on := w.own.planner()
	w.disk = &disk{rng: w.rng, files: map[string]*bytes.Buffer{}, calm: &w.calm}
	w.config = controller.Config{Name: "own", Device: on.Identity, Align: on.Align, Out: on.Out, In: on.In,
		Sharing: on.Sharing,
		Policy:  "tensile", Options: scheduler.Options{Work: planning}, Share: share, Horizon: 1000,
		Watched: true}
	w.controller = controller.NewMachine(w.config)
	return w
}

// send puts a message on its way.
func (w *world) send(deliver func()) {
	if !w.calm && w.rng.IntN(10) == 0 {
		return
	}
	w.mail = append(w.mail, deliver)
	if !w.calm && w.rng.IntN(10) == 0 {
		w.mail = append(w.mail, deliver)
	}
}

// surely puts a message on its way that can not be lost.
func (w *world) surely(deliver func()) { w.mail = append(w.mail, deliver) }

func (w *world) deliver() {
	at := w.rng.IntN(len(w.mail))
	message := w.mail[at]
	w.mail = slices.Delete(w.mail, at, at+1)
	message()
}

func (w *world) step(in controller.Input) {
	w.clock += time.Millisecond
	if w.leaders != nil {
		w.leaders.hear(in)
		return
	}
	w.carryOut(w.controller.Step(w.clock, in))
	if in.Tick != nil && w.tenants != nil {
		w.tenants.there = training(w.controller)
	}
}

// plan has plans made, which come when they come, unless the controller has died meanwhile.
func (w *world) plan(p *controller.Plan, m *controller.Machine) {
	c, at := w.config, w.own
	if p.Device != nil {
		c, at = c.For(p.Device), w.site(p.Device.Name)
	}
	w.surely(func() {
		planner := controller.Planner{Config: c, On: c.Shared(at.planner())}
		switch {
		case w.leaders != nil:
			w.leaders.planned(m, func() *controller.Planned { return planner.Plan(w.t.Context(), p) })
		case w.controller == m:
			w.step(controller.Input{Planned: planner.Plan(w.t.Context(), p)})
		}
	})
}

// carryOut is the controller's runner.
func (w *world) carryOut(outputs []controller.Output) {
	for _, o := range outputs {
		w.do(o, w.controller)
	}
	w.check()
}

// do carries out what a machine wants.
func (w *world) do(o controller.Output, m *controller.Machine) {
	switch {
	case o.Answer != nil:
		w.answers = append(w.answers, o.Answer.Answer)
		if hears := w.asked[o.Answer.To]; hears != nil {
			delete(w.asked, o.Answer.To)
			hears(o.Answer.Answer)
		}
	case o.Record != nil:
		if w.turned[o.Record.Spec.Name] {
			w.t.Fatalf("job %s was refused, and is %s", o.Record.Spec.Name, o.Record.State)
		}
		w.records[o.Record.Spec.Name] = again(w.t, *o.Record)
	case o.Tenants != nil:
		shares := again(w.t, *o.Tenants)
		w.tenants.stored = &shares
	case o.Graph != nil:
		w.graphs[o.Graph.Graph.Digest()] = o.Graph.Graph
		w.handed[o.Graph.Graph.Digest()] = o.Graph.Graph
		w.begins(o.Graph, m)
	case o.Layout != nil:
		l := again(w.t, *o.Layout.Layout)
		w.layouts[wire.LayoutObject(o.Layout.Job, o.Layout.ID, l.Plan.Epoch)] = &l
	case o.Result != nil:
		w.collect(o.Result)
	case o.Learnt != nil:
		l := again(w.t, o.Learnt.Wire)
		w.learnt = &l
	case o.Set != nil:
		set := again(w.t, *o.Set)
		w.set = &set
	case o.Orders != nil:
		orders := again(w.t, *o.Orders)
		w.orders[orders.Executor] = orders
		w.send(func() { w.order(orders) })
	case o.Device != nil:
		w.devices[o.Device.Name] = again(w.t, *o.Device)
	case o.Drop != nil && o.Drop.Settings != "":
		w.set = nil
	case o.Drop != nil && o.Drop.Device != "":
		delete(w.devices, o.Drop.Device)
	case o.Drop != nil:
		delete(w.records, o.Drop.Job)
		delete(w.graphs, o.Drop.Graph)
		if l := w.layouts[o.Drop.Object]; l != nil && w.records[l.Plan.Job].Executor == o.Drop.Executor {
			delete(w.layouts, o.Drop.Object)
			w.dropped[o.Drop.Object] = true
		}
	case o.Forget != "":
		delete(w.orders, o.Forget)
	case o.Launch != "":
		w.launch(w.own, o.Launch, o.Launch)
	case o.Kill != "":
		if p := w.processes[o.Kill]; p != nil {
			w.killed++
			p.end("it does not answer")
		}
	case o.Plan != nil:
		if w.tenants != nil {
			w.tenants.enter(o.Plan, m)
		}
		w.plan(o.Plan, m)
	case o.Event != nil:
		if w.events = append(w.events, *o.Event); o.Event.Kind == controller.Joined {
			at := w.siteOf(o.Event.Executor)
			at.taken += at.context() // nobody asks whether there is room
		}
		if came, _ := strings.CutSuffix(o.Event.Reason, " has come"); w.turned[strings.TrimPrefix(came, "job ")] {
			w.t.Fatalf("it was refused: %s", o.Event)
		}
		if w.tenants != nil && o.Event.Kind == controller.Preempted {
			w.tenants.giveWay(o.Event, m)
		}
	}
}

// collect keeps the result of a job for good.
func (w *world) collect(c *controller.Collection) {
	r, left := w.results[c.Key]
	if _, taken := w.results[c.Object]; c.Key != "" && !left && taken && w.leaders != nil {
		return // by a controller that died then
	}
	if c.Key != "" && !left {
		w.t.Fatalf("the result at %s, which an executor has told of, is not there", c.Key)
	}
	if c.Key == "" {
		r = *c.Heard
	}
	delete(w.results, c.Key)
	w.results[c.Object] = r
}

// again is a message as it comes out of the codec.
func again[T wire.Message](t *testing.T, m T) T {
	t.Helper()
	out, err := wire.DecodeAs[T](wire.Encode(m))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) order(o wire.Orders) {
	for _, key := range slices.Sorted(maps.Keys(w.processes)) {
		if p := w.processes[key]; p != nil && p.name == o.Executor && !p.cut {
			p.step(agent.Input{Orders: &o})
		}
	}
}

// launch starts an executor of a device; under another key than its name a second one with the same credentials. dead
// are lives of its name that its host knows to have ended.
func (w *world) launch(at *site, name, key string, dead ...string) {
	w.doubled[name] = w.doubled[name] || key != name
	p := w.process(at, name, key)
	host := ""
	if at.brings != nil {
		host = at.brings.Host + ", process " + p.life
	}
	p.host = executor.NewHost(p.device, p.observe)
	p.begin(agent.Process{Executor: name, Life: p.life, Device: p.device.Identity(), Host: host, Dead: dead,
		Brings: at.brings})
}

// process is a new one.
func (w *world) process(at *site, name, key string) *process {
	w.lives++
	p := &process{w: w, site: at, name: name, key: key, life: fmt.Sprint("life", w.lives), device: at.open(),
		opened: w.clock, lines: map[string]*line{},
		far:   w.apart && w.lives%3 == 2,
		hosts: map[string]graph.Bytes{}, loads: map[string]graph.Bytes{},
		arenas: map[string]graph.Bytes{}, losses: map[string][]float32{}, epochs: map[string]int64{}}
	w.processes[key] = p
	if d := inStep(p.device); d != nil {
		d.lines = func(job string) *line { return p.lines[job] }
	}
	return p
}

// begin has the process join.
func (p *process) begin(as agent.Process) {
	p.agent = agent.NewMachine(as)
	online := true
	p.step(agent.Input{Online: &online})
}

// step is the agent's runner.
func (p *process) step(in agent.Input) {
	w := p.w
	w.hurt[p.job] = w.hurt[p.job] || in.Drain != nil
	if h, ok := p.host.(*guestHost); ok && in.Tick {
		h.ask() // what was lost
	}
	outputs := p.agent.Step(w.clock, in)
	in.Spare(outputs)
	for _, o := range outputs {
		switch {
		case o.Prepare != nil:
			w.surely(func() { p.alive(agent.Input{Prepared: p.prepare(o.Prepare)}) })
		case o.Fetch != nil:
			w.surely(func() { p.alive(agent.Input{Fetched: p.fetch(o.Fetch)}) })
		case o.Meet != nil:
			p.meet(o.Meet)
		case o.Join != nil:
			p.lines[o.Join.Job].below = o.Join.Meeting.Key
		case o.Part != "":
			p.part(o.Part)
		case o.Open != nil:
			p.submit(o.Open)
		case o.Change != nil:
			p.given(o.Change.Job, o.Change.Proven)
			p.host.Change(o.Change.Job, o.Change.Proven)
		case o.Stop != "":
			p.host.Stop(o.Stop)
		case o.Remove != "":
			p.host.Remove(o.Remove)
		case o.Lend != nil:
			agent.Lend(p.host, o.Lend, p)
		case o.Weigh != nil:
			p.host.Weigh(o.Weigh.Job, o.Weigh.Weight)
		case o.Park != nil:
			p.host.Park(o.Park.Job, o.Park.Number, o.Park.At)
		case o.Resume != "":
			p.host.Resume(o.Resume)
		case o.Take != nil:
			p.host.Checkpoint(o.Take.Job, o.Take.At)
		case o.Unplanned != nil:
			p.host.(*guestHost).Unplanned(o.Unplanned.Job, o.Unplanned.Why)
		case o.Write != nil:
			losses := slices.Clone(p.losses[o.Write.Spec.Name])
			w.surely(func() { p.alive(agent.Input{Written: p.checkpoints().Write(o.Write, upTo(losses, o.Write))}) })
		case o.Discard != nil:
			if err := p.checkpoints().Discard(o.Discard); err != nil {
				w.t.Fatal(err)
			}
		case o.Keep != nil:
			p.keep(o.Keep)
		case o.Store != nil:
			w.results[o.Store.Key] = again(w.t, *o.Store.Result)
			w.surely(func() { p.alive(agent.Input{Stored: &agent.Stored{Ticket: o.Store.Ticket}}) })
		case o.Status != nil:
			if p.cut {
				continue
			}
			s := again(w.t, *o.Status)
			w.send(func() { w.step(controller.Input{Status: &s}) })
		case o.Report != nil:
			r := again(w.t, *o.Report)
			if w.reports = append(w.reports, r); p.cut {
				continue
			}
			w.send(func() { w.step(controller.Input{Report: &r}) })
		case o.Leave:
			p.left = true
		case o.Refused != "":
			p.left = true
			w.refused++
		}
	}
}

// alive steps the machine of a process that has not died.
func (p *process) alive(in agent.Input) {
	if p.w.processes[p.key] == p {
		p.step(in)
	}
}

func (p *process) prepare(o *agent.Prepare) *agent.Prepared {
	if !p.w.calm && p.w.rng.IntN(6) == 0 {
		return &agent.Prepared{Ticket: o.Ticket, Err: wire.ErrAway, Again: true}
	}
	t, err := task.Open(p.w.handed[o.Spec.Graph], o.Spec.Seed, o.Spec.Data)
	if t.Name = o.Spec.Name; err != nil {
		p.w.t.Fatal(err)
	}
	if o.Spec.Script {
		return &agent.Prepared{Ticket: o.Ticket, Graph: o.Spec.Graph, Task: t}
	}
	begin, notes, err := p.checkpoints().Start(o, &t)
	if begin != nil {
		p.w.resumed++
	}
	return &agent.Prepared{Ticket: o.Ticket, Task: t, Begin: begin, Notes: notes, Err: err}
}

// checkpoints is the folder of an executor. Some are on another host.
func (p *process) checkpoints() *agent.Checkpoints {
	dir, host := "checkpoints", "here"
	switch {
	case p.site.brings != nil:
		if host = p.site.brings.Host; p.w.apart {
			dir = host
		}
	case p.far:
		dir = "elsewhere"
	}
	return &agent.Checkpoints{Folder: checkpoint.Folder{Dir: dir, Disk: p.w.disk}, Host: host,
		Device: p.device.Identity(), NoData: strings.HasPrefix(p.device.Name(), "sim:")}
}

// upTo are the losses of the iterations of a checkpoint.
func upTo(losses []float32, w *agent.Write) []float32 {
	return losses[:min(len(losses), w.Snapshot.Iteration)]
}

func (p *process) fetch(o *agent.Fetch) *agent.Fetched {
	l := p.w.layouts[wire.LayoutObject(o.Job, o.ID, o.Epoch)]
	switch {
	case l == nil && !p.w.dropped[wire.LayoutObject(o.Job, o.ID, o.Epoch)]:
		p.w.t.Fatalf("job %s was told to train with layout %d, which is not stored", o.Job, o.Epoch)
	case l == nil: // what told it so was late
		r := p.w.records[o.Job]
		if first, _ := r.Epochs(); r.Spec.ID == o.ID && r.Executor == p.name && !r.State.Over() && o.Epoch >= first {
			p.w.tell()
			p.w.t.Fatalf("layout %d of job %s was dropped, and is wanted: %+v", o.Epoch, o.Job, r)
		}
		return &agent.Fetched{Ticket: o.Ticket, Epoch: o.Epoch, Err: wire.ErrNotFound, Again: true}
	case !p.w.calm && p.w.rng.IntN(6) == 0:
		return &agent.Fetched{Ticket: o.Ticket, Epoch: o.Epoch, Err: wire.ErrAway, Again: true}
	}
	fetched := o.Prove(l, p.device)
	if fetched.Err != nil {
		p.w.t.Fatalf("layout %d of job %s is refused: %v", o.Epoch, o.Job, fetched.Err)
	}
	return fetched
}

func (p *process) submit(o *agent.Open) {
	name := o.Spec.Name
	for _, other := range p.w.processes {
		held := p.w.records[name].Held
		givenUp := slices.ContainsFunc(held, func(h wire.Holding) bool { return h.Life == other.life })
		if _, trains := other.losses[name]; trains && other.name == p.name && other != p && !givenUp {
			p.w.t.Fatalf("two processes of executor %s train job %s", p.name, name)
		}
	}
	p.losses[name] = nil
	p.given(name, o.Proven)
	if l := p.lines[name]; l != nil {
		o.Task.Mean = l.mean
	}
	spec := executor.SpecOf(o.Task, o.Spec.Iterations, func(_ int, loss float32) {
		p.losses[name] = append(p.losses[name], loss)
	})
	spec.Every = o.Every
	if o.Begin != nil {
		spec.Begin, p.losses[name] = o.Begin.Iteration, slices.Clone(o.Begin.Losses)
	}
	p.host.Submit(spec, o.Proven)
}

func (p *process) keep(k *agent.Keep) {
	kept := k.Take(p.losses[k.Spec.Name])
	p.w.surely(func() { p.alive(agent.Input{Kept: kept}) })
}

// observe is told by the host.
func (p *process) observe(e executor.Event) {
	switch {
	case e.Applied != nil:
		if e.Applied.Epoch < p.epochs[e.Job] {
			p.w.t.Fatalf("job %s went back from epoch %d to %d", e.Job, p.epochs[e.Job], e.Applied.Epoch)
		}
		p.arenas[e.Job], p.epochs[e.Job] = e.Applied.Arena, e.Applied.Epoch
		p.hosts[e.Job] = p.loads[fmt.Sprint(e.Job, " ", e.Applied.Epoch)]
	case e.Home:
		p.arenas[e.Job] = 0
	case e.Refused != nil && p.job == "": // else it follows no plan any more
		p.w.t.Fatalf("job %s: %v", e.Job, e.Refused)
	case e.Removed:
		delete(p.arenas, e.Job)
		delete(p.hosts, e.Job)
		delete(p.epochs, e.Job)
	}
	p.w.check()
	p.events = append(p.events, e)
	p.w.surely(func() { // they are delayed, and keep their order: the runner has one queue of them
		e := p.events[0]
		p.events = p.events[1:]
		p.alive(agent.Input{Event: &e})
	})
}

// work lets a process's device go on for an instant.
func (p *process) work() {
	if p.stands {
		return
	}
	moved, err := p.host.Poll(context.Background())
	if err != nil {
		p.w.t.Fatalf("executor %s: %v", p.name, err)
	}
	if now := p.opened + p.device.Now(); !moved {
		p.opened += p.w.clock - now // it was idle until now
	} else if p.w.tenants != nil {
		p.w.clock = max(p.w.clock, now) // what devices do counts
	}
	if p.left {
		p.end("it has left")
	}
}

// end is the end of a process. Its memory is free when the controller hears of it, and not before: from itself, if it
// leaves, from whoever has launched it, or from the lock that it held.
func (p *process) end(why string) {
	if err := p.host.Close(); err != nil {
		p.w.t.Fatal(err)
	}
	p.w.hurt[p.job] = p.w.hurt[p.job] || !p.left
	if clear(p.arenas); p.left {
		p.step(agent.Input{Closed: true})
	}
	p.device.Close()
	for _, job := range slices.Sorted(maps.Keys(p.lines)) {
		p.part(job)
	}
	delete(p.w.processes, p.key)
	if p.outlived(func() { p.gone(why) }) {
		return
	}
	p.gone(why)
}

// gone tells that nothing of the process is left.
func (p *process) gone(why string) {
	if lease := p.site.lease; lease != nil {
		lease.died(p)
	}
	if p.key != p.name || p.site.brings != nil {
		p.w.ended[p.life] = p.name
		return
	}
	tell := func() {
		p.w.step(controller.Input{Gone: &controller.Gone{Executor: p.name, Lives: []string{p.life}, Why: why}})
	}
	if p.w.config.Watched || p.w.rng.IntN(2) == 0 {
		p.w.surely(tell)
	} else {
		p.w.unknown = append(p.w.unknown, tell)
	}
}

// check holds what must be true at any moment.
func (w *world) check() {
	w.t.Helper()
	for _, at := range w.sites {
		at.check()
		at.checkHost()
	}
	if w.lines != nil {
		w.checkSiblings()
	}
}

// restart kills the controller, and starts another with what is stored.
func (w *world) restart() {
	w.controller = w.restored()
	w.carryOut(w.controller.Resume(w.clock))
}

// restored is the machine of a controller that has read what is stored.
func (w *world) restored() *controller.Machine {
	s := controller.Stored{Graphs: w.graphs, Layouts: map[string][]*wire.Layout{}, Orders: maps.Clone(w.orders),
		Learnt: w.learnt, Settings: w.set,
		Profiles: w.own.profiles(),
		Placed:   map[string]map[graph.Digest]*planner.Profile{}}
	for _, name := range slices.Sorted(maps.Keys(w.devices)) {
		s.Devices = append(s.Devices, w.devices[name])
		s.Placed[name] = w.site(name).profiles()
	}
	for _, name := range slices.Sorted(maps.Keys(w.records)) {
		r := w.records[name]
		s.Records = append(s.Records, r)
		for epoch, last := r.Epochs(); epoch <= last; epoch++ {
			if l := w.layouts[wire.LayoutObject(name, r.Spec.ID, epoch)]; l != nil {
				s.Layouts[name] = append(s.Layouts[name], l)
			}
		}
	}
	if w.tenants != nil {
		s.Tenants = w.tenants.stored
	}
	c := w.config
	if c.NoDevice {
		s.Profiles = nil
	} else if w.set != nil && (w.set.Budget == c.Budget || w.leaders != nil) {
		c.Budget = 0 // it was set while a controller ran, and is found again
	}
	m, err := controller.Restore(c, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// submit submits a job with a random graph, or some together, which are taken all or none.
func (w *world) submit(iterations int) {
	n := 1
	if w.rng.IntN(4) == 0 {
		n += 1 + w.rng.IntN(2)
	}
	w.submitGraphs(w.graphsOf(n), iterations)
}

// graphsOf makes random graphs.
func (w *world) graphsOf(n int) []*graph.Graph {
	graphs := make([]*graph.Graph, n)
	for i := range graphs {
		graphs[i] = randgraph.New(w.rng, randgraph.Options{})
		if w.lines != nil && w.rng.IntN(2) == 0 {
			graphs[i] = w.replicated()
		}
	}
	return graphs
}

func (w *world) submitGraphs(graphs []*graph.Graph, iterations int) {
	var in controller.Input
	var names []string
	for _, g := range graphs {
		w.names++
		w.graphs[g.Digest()] = g
		spec := wire.Spec{Name: fmt.Sprint("job", w.names), Model: "random", Graph: g.Digest(), Seed: uint64(w.names),
			Iterations: iterations, Priority: w.rng.IntN(3), Restarts: w.rng.IntN(8), Keep: 1 + w.rng.IntN(3)}
		if w.rng.IntN(4) > 0 {
			spec.Checkpoint.Iterations = 1 + w.rng.IntN(5)
		}
		if len(w.sites) > 1 {
			w.choose(&spec, len(graphs) > 1)
		}
		for _, spec := range w.replicate(spec, g) {
			in.Submit = append(in.Submit, controller.Submission{Spec: spec, Graph: g})
			names = append(names, spec.Name)
		}
	}
	w.tenants.signs(&in)
	w.request(in, func(a wire.Answer) {
		for _, name := range names {
			if a.Error == "" {
				w.accepted[name] = true
			} else {
				w.turned[name] = true
			}
		}
	})
}

// request asks for something, and hears the answer, if there is one.
func (w *world) request(in controller.Input, hears func(wire.Answer)) {
	w.asks++
	in.From = w.asks
	w.asked[in.From] = hears
	w.step(in)
}

// ask asks for something.
func (w *world) ask() {
	q := &wire.Request{Job: fmt.Sprintf("job%d", 1+w.rng.IntN(w.names))}
	switch w.rng.IntN(6) {
	case 0:
		q.Verb, q.Place = wire.Park, wire.InMemory
	case 1:
		q.Verb, q.Place = wire.Park, wire.OnDisk
	case 2, 3:
		q.Verb = wire.Resume
	case 4:
		q.Verb, q.Priority = wire.SetWeight, 1+w.rng.IntN(5)
	case 5:
		q.Verb, q.Budget = wire.SetBudget, graph.Bytes(3_000+w.rng.IntN(40_000))
		if w.leaders == nil {
			w.config.Budget = q.Budget
		}
	}
	w.step(controller.Input{Request: q})
}

// pass lets time pass.
func (w *world) pass(ticks int) {
	for range ticks {
		w.clock += time.Duration(1+w.rng.IntN(4)) * time.Second
		w.step(controller.Input{Tick: &controller.Tick{}})
	}
}

// heal has messages reach a process again.
func (p *process) heal() {
	p.cut, p.stands = false, false
	p.step(agent.Input{Tick: true})
	if o, ok := p.w.orders[p.name]; ok {
		p.step(agent.Input{Orders: &o})
	}
}

// calmDown ends the mishaps: processes are heard again, somebody tells of those that have died, and one controller
// leads.
func (w *world) calmDown() {
	if w.calm {
		return
	}
	online := true
	for _, name := range slices.Sorted(maps.Keys(w.processes)) {
		w.processes[name].step(agent.Input{Online: &online})
	}
	w.calm = true
	for _, name := range slices.Sorted(maps.Keys(w.processes)) {
		w.processes[name].heal()
	}
	if w.leaders != nil {
		w.leaders.elect()
	}
	for _, tell := range w.unknown {
		tell()
	}
}

// settle goes on without mishaps until every job is over and every process has left. What is parked goes on, and an
// administrator forgets executors that were started by hand and never come back, and stops replicas of which no more
// than one fits.
func (w *world) settle() {
	w.calmDown()
	if b := w.controller.Budget(); b > 0 {
		w.config.Budget = max(b, 40_000)
		w.step(controller.Input{Request: &wire.Request{Verb: wire.SetBudget, Budget: w.config.Budget}})
	}
	for i := range 50_000 {
		if i%100 == 0 {
			for _, r := range w.controller.Records() {
				if r.State == wire.Parked || r.State == wire.Parking {
					w.step(controller.Input{Request: &wire.Request{Verb: wire.Resume, Job: r.Spec.Name}})
				}
				if r.Spec.Replica.Of > 0 && strings.HasPrefix(r.Why, "waits for a larger budget") {
					w.step(controller.Input{Request: &wire.Request{Verb: wire.Stop, Job: r.Spec.Name}})
				}
				w.forget(r.Held)
			}
			w.reopen()
		}
		for len(w.mail) > 0 {
			w.deliver()
		}
		w.checkContexts()
		names := slices.Sorted(maps.Keys(w.processes))
		left := func(r wire.Record) bool { return !r.State.Over() }
		stays := func(name string) bool { // a process that was started by hand does not leave by itself
			p := w.processes[name]
			return p.site.brings != nil && len(p.arenas)+len(p.hosts) == 0
		}
		if !slices.ContainsFunc(names, func(name string) bool { return !stays(name) }) &&
			!slices.ContainsFunc(w.controller.Records(), left) {
			return
		}
		w.clock += time.Second
		w.step(controller.Input{Tick: &controller.Tick{}})
		for _, name := range names {
			w.processes[name].step(agent.Input{Tick: true})
			for range 10 {
				if p := w.processes[name]; p != nil {
					p.work()
				}
			}
		}
	}
	w.tell()
	w.t.Fatalf("%d processes have not left, budget %s, host memory %s", len(w.processes), w.config.Budget,
		w.config.HostMemory)
}

// tell logs what jobs and processes have, and what has happened last.
func (w *world) tell() {
	w.t.Helper()
	for _, r := range w.controller.Records() {
		w.t.Logf("job %s is %s on %q: %s; incarnation %d at %s, parked %q, epochs %d and %d in force, claims %s and "+
			"%s, held %v", r.Spec.Name, r.State, r.On, r.Why, r.Incarnation, r.Executor, r.Park, r.Granted, r.Applied,
			r.Claim, r.Host, r.Held)
	}
	for _, key := range slices.Sorted(maps.Keys(w.processes)) {
		p := w.processes[key]
		w.t.Logf("process %s of executor %s, cut off: %v, has arenas %v in epochs %v, on the host %v", p.life, p.name,
			p.cut, p.arenas, p.epochs, p.hosts)
	}
	for _, e := range w.events[max(0, len(w.events)-30):] {
		w.t.Log(e)
	}
}

// forget has an administrator say that executors have ended that may have something.
func (w *world) forget(held []wire.Holding) {
	for _, h := range held {
		lives := slices.ContainsFunc(slices.Collect(maps.Values(w.processes)), func(p *process) bool {
			return p.name == h.Executor
		})
		if _, ended := w.ended[h.Life]; ended && !lives {
			w.step(controller.Input{Request: &wire.Request{Verb: wire.Forget, Executor: h.Executor}})
		}
	}
}

func (w *world) stop() {
	w.step(controller.Input{Request: &wire.Request{Verb: wire.Stop, Job: fmt.Sprintf("job%d", 1+w.rng.IntN(w.names))}})
}
