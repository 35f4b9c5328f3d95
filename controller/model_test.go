package controller

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/plan/program"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// world is a controller and model executors, with a network between them that loses, doubles and delays.
type world struct {
	t         *testing.T
	rng       *rand.Rand
	config    Config
	budget    graph.Bytes // at first
	machine   *Machine
	executors map[string]*fakeExecutor
	mail      []func() // messages on their way, in any order
	calm      bool     // nothing is lost or doubled, nobody crashes any more
	shared    bool     // jobs are of several tenants
	late      bool     // plans take their time, as messages do; otherwise they are made at once
	profile   func(*graph.Graph) (planner.Profile, error)
	clock     time.Duration
	planning  []func() // makes the requested plans, when the present step is done
	busy      bool     // plans are being made
	lives     int

	// What a bus stores.
	records map[string]wire.Record
	graphs  map[graph.Digest]*graph.Graph
	layouts map[string][]*wire.Layout
	orders  map[string]wire.Orders
	learnt  *wire.Learnt
	tenants *wire.Tenants
	devices map[string]wire.Device // that executors have brought

	recording bytes.Buffer
	recorder  *Recorder // of the machine that there is now; nil: none

	answers []wire.Answer
	asked   []*plans.ExplainRequest
	lines   []string
	events  []Event
	claims  graph.Bytes            // claims of all jobs after the step before
	had     map[string]graph.Bytes // claims of each device's jobs after it; nil: all train on the controller's own

	hostClaims graph.Bytes // claims of all jobs on the host after it
	slow       float64     // how much slower ops are than their profile
	peak       graph.Bytes

	disk map[int64]wire.Checkpoint // the newest per ID of a job
	lost map[string]bool           // processes that have ended without anybody's knowing, by life
}

// fakeExecutor does what an executor process is to do, without its network: it trains by counting.
type fakeExecutor struct {
	name   string
	life   string
	host   string
	since  int64
	broken string // why it cannot begin any job
	number int64
	orders wire.Orders
	jobs   []*fakeJob
	cut    bool // no message passes
	drain  bool // it was interrupted
	brings *wire.Device
}

type fakeJob struct {
	status wire.JobStatus
	order  wire.Assignment
	steps  int
	host   graph.Bytes // that it has there in Home, and under its plan
}

// profile gives each op a latency that depends on nothing but its number.
func profile(g *graph.Graph) (planner.Profile, error) {
	var p planner.Profile
	for op := range g.Ops {
		p.Latency = append(p.Latency, time.Duration(1+op%7)*10*time.Microsecond)
	}
	return p, nil
}

// signedProfile is profile with signatures, so that what is measured is learnt.
func signedProfile(g *graph.Graph) (planner.Profile, error) {
	p, err := profile(g)
	for op := range g.Ops {
		p.Signatures = append(p.Signatures, g.Signature(graph.OpID(op), ""))
	}
	return p, err
}

func newWorld(t *testing.T, seed uint64, budget graph.Bytes) *world {
	link := cost.Link{Rate: 100e6, Latency: time.Microsecond}
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 77)), executors: map[string]*fakeExecutor{},
		records: map[string]wire.Record{},
		graphs:  map[graph.Digest]*graph.Graph{}, layouts: map[string][]*wire.Layout{},
		orders: map[string]wire.Orders{},
		slow:   1, profile: profile, late: true, disk: map[int64]wire.Checkpoint{},
		devices: map[string]wire.Device{}, lost: map[string]bool{}}
	w.config = Config{Device: "model", Align: 64, Out: link, In: link, Budget: budget, Policy: "tensile",
		OneExecutor: seed%3 == 0, Limited: seed%2 == 0, KeepJobs: int(seed % 5), Preempt: seed%4 == 1,
		Watched: true}
	w.machine, w.budget = NewMachine(w.config), budget
	return w
}

// send puts a message on its way.
func (w *world) send(deliver func()) {
	if !w.calm && w.rng.IntN(8) == 0 {
		return
	}
	w.mail = append(w.mail, deliver)
	if !w.calm && w.rng.IntN(8) == 0 {
		w.mail = append(w.mail, deliver)
	}
}

func (w *world) step(in Input) {
	w.clock += time.Millisecond
	outputs := w.machine.Step(w.clock, in)
	w.recorder.step(w.clock, in, outputs)
	w.carryOut(outputs)
}

// plannerOf is a planner of a device as a machine's configuration has it.
func plannerOf(c Config, profile func(*graph.Graph) (planner.Profile, error)) *plans.Worker {
	on := c.SharedDevice(planner.Device{Identity: c.Device, Align: c.Align, Out: c.Out, In: c.In, Page: c.Page,
		Profile: profile})
	return &plans.Worker{Settings: c.PlanSettings(), Device: on}
}

// plan answers a plan request of the present machine.
func (w *world) plan(p *plans.Request) {
	machine := w.machine
	do := func() {
		if w.machine == machine {
			c := machine.config
			if p.Device != nil {
				c = c.ForDevice(p.Device)
			} else if machine.ownDomain != nil {
				c = machine.ownDomain.config
			}
			w.step(Input{PlanResult: plannerOf(c, w.profile).Plan(w.t.Context(), p)})
		}
	}
	if w.late {
		w.mail = append(w.mail, do)
		return
	}
	w.planning = append(w.planning, do)
}

// planAll answers the plan requests of a world in which plans are made at once.
func (w *world) planAll() {
	if w.busy {
		return
	}
	w.busy = true
	for len(w.planning) > 0 {
		do := w.planning[0]
		w.planning = w.planning[1:]
		do()
	}
	w.busy = false
}

func (w *world) carryOut(outputs []Output) {
	for _, o := range outputs {
		switch {
		case o.Answer != nil:
			w.answers = append(w.answers, o.Answer.Answer)
		case o.Record != nil:
			w.records[o.Record.Spec.Name] = *o.Record
		case o.Graph != nil:
			w.graphs[o.Graph.Graph.Digest()] = o.Graph.Graph
		case o.Layout != nil:
			w.layouts[o.Layout.Job] = append(w.layouts[o.Layout.Job], o.Layout.Layout)
		case o.Device != nil:
			w.devices[o.Device.Name] = *o.Device
		case o.Drop != nil && o.Drop.Device != "":
			delete(w.devices, o.Drop.Device)
		case o.Learnt != nil:
			w.learnt = &o.Learnt.Wire
		case o.Tenants != nil:
			w.tenants = o.Tenants
		case o.Orders != nil:
			w.orders[o.Orders.Executor] = *o.Orders
			orders := *o.Orders
			w.send(func() { w.hear(orders) })
		case o.Drop != nil:
			delete(w.records, o.Drop.Job)
			delete(w.graphs, o.Drop.Graph)
			for job, layouts := range w.layouts {
				w.layouts[job] = slices.DeleteFunc(layouts, func(l *wire.Layout) bool {
					r := w.records[job]
					object := wire.LayoutObject(job, r.Spec.ID, l.Plan.Epoch)
					return r.Executor == o.Drop.Executor && object == o.Drop.Object
				})
			}
		case o.Launch != "":
			w.lives++
			w.executors[o.Launch] = &fakeExecutor{name: o.Launch, life: fmt.Sprint("life", w.lives)}
			w.tell(w.executors[o.Launch])
		case o.PlanRequest != nil:
			w.plan(o.PlanRequest)
		case o.Explain != nil:
			w.asked = append(w.asked, o.Explain)
		case o.Event != nil:
			w.lines, w.events = append(w.lines, o.Event.String()), append(w.events, *o.Event)
		}
	}
	w.check()
	w.planAll()
}

// tell sends an executor's status.
func (w *world) tell(x *fakeExecutor, dead ...string) {
	if x.cut {
		return
	}
	x.number++
	s := &wire.Status{Executor: x.name, Number: x.number, Life: x.life, Device: "model", Host: x.host, Since: x.since,
		Orders: x.orders.Number, Dead: dead, Brings: x.brings, Jobs: []wire.JobStatus{}}
	for _, j := range x.jobs {
		s.Jobs = append(s.Jobs, j.status)
	}
	w.send(func() { w.step(Input{Status: s}) })
}

// hear has an executor take orders.
func (w *world) hear(o wire.Orders) {
	x := w.executors[o.Executor]
	if x == nil || x.cut || x.drain || o.Number <= x.orders.Number || o.Life != "" && o.Life != x.life {
		return
	}
	if o.Refused != nil && o.Refused.Life == x.life {
		delete(w.executors, x.name)
		return
	}
	x.orders = o
	x.jobs = slices.DeleteFunc(x.jobs, func(j *fakeJob) bool {
		return !slices.ContainsFunc(o.Jobs, func(o wire.Assignment) bool {
			return o.Spec.Name == j.status.Name && o.Incarnation == j.status.Incarnation
		})
	})
	for _, order := range o.Jobs {
		at := slices.IndexFunc(x.jobs, func(j *fakeJob) bool { return j.status.Name == order.Spec.Name })
		if at < 0 {
			at = len(x.jobs)
			x.jobs = append(x.jobs, w.begin(order))
		}
		x.jobs[at].order = order
	}
	w.tell(x)
}

// begin has an executor take up a job, at its newest checkpoint.
func (w *world) begin(order wire.Assignment) *fakeJob {
	s := wire.JobStatus{Name: order.Spec.Name, ID: order.Spec.ID, Incarnation: order.Incarnation, State: wire.Waiting}
	if c, ok := w.disk[s.ID]; ok {
		s.Iteration, s.Checkpoint = c.Iteration, &c
	} else if order.From > 0 {
		w.t.Fatalf("job %s is to begin at iteration %d, and there is no checkpoint", s.Name, order.From)
	}
	return &fakeJob{status: s}
}

// checkpoint writes one of a job.
func (w *world) checkpoint(j *fakeJob) {
	s := &j.status
	c := wire.Checkpoint{Iteration: s.Iteration, File: fmt.Sprint(s.Iteration), Host: "here"}
	if c.Iteration > w.disk[s.ID].Iteration {
		w.disk[s.ID] = c
	}
	s.Checkpoint = &c
}

// work has an executor do a bit of one of its jobs' iterations.
func (w *world) work(x *fakeExecutor) {
	over := !slices.ContainsFunc(x.jobs, func(j *fakeJob) bool { return !j.status.State.Over() })
	if x.drain && over || len(x.jobs) == 0 && x.orders.Leave {
		w.tell(x, x.life)
		w.end(x, "left")
		return
	}
	if len(x.jobs) == 0 {
		w.tell(x)
		return
	}
	j := x.jobs[w.rng.IntN(len(x.jobs))]
	s := &j.status
	switch {
	case s.State.Over():
	case x.broken != "":
		s.State, s.Error = wire.Failed, x.broken
	case j.order.Stop:
		s.State, s.Arena = wire.Stopped, 0
	case x.drain || j.order.Park == wire.OnDisk:
		w.checkpoint(j)
		s.State, s.Arena = wire.Suspended, 0
	case j.order.Park == wire.InMemory:
		s.State, s.Arena = wire.Resting, 0
		if g := w.graphs[j.order.Spec.Graph]; j.host > 0 && g != nil { // it may have been given up, and be forgotten
			_, j.host = program.HostSlots(g)
		}
	case j.order.Epoch > s.Epoch && w.givenUp(s): // the layout may be there no more
	case j.order.Epoch > s.Epoch || s.State == wire.Resting:
		l := w.layout(s.Name, j.order.Epoch)
		s.State, s.Epoch, s.Arena, j.steps = wire.Running, l.Plan.Epoch, l.Arena, len(l.Plan.Steps)
		_, j.host = program.SlotsOf(w.graphs[j.order.Spec.Graph], l.Plan)
		j.host += Snapshot(j.order.Spec.Checkpoint, w.graphs[j.order.Spec.Graph])
	case s.State == wire.Waiting:
	case s.Iteration == j.order.Spec.Iterations:
		s.State, s.Arena, s.Result = wire.Finished, 0, &wire.Result{}
	case w.rng.IntN(4) == 0 && j.order.Spec.Checkpoint.Iterations > 0:
		w.checkpoint(j)
	default:
		s.Iteration++
		w.report(x, j)
	}
	w.check()
	w.tell(x)
}

// givenUp reports whether the controller has ended an incarnation of a job, or another is newer.
func (w *world) givenUp(s *wire.JobStatus) bool {
	r := w.records[s.Name]
	return r.Spec.ID != s.ID || r.Incarnation != s.Incarnation || r.State.Over()
}

func (w *world) report(x *fakeExecutor, j *fakeJob) {
	if x.cut || w.givenUp(&j.status) {
		return
	}
	r := &wire.Report{Executor: x.name, Job: j.status.Name, Incarnation: j.status.Incarnation, Epoch: j.status.Epoch,
		Iteration: j.status.Iteration - 1}
	p, _ := profile(w.graphs[j.order.Spec.Graph])
	for _, step := range w.layout(j.status.Name, j.status.Epoch).Plan.Steps {
		noise := 0.98 + 0.04*w.rng.Float64()
		r.Steps = append(r.Steps, time.Duration(float64(p.Latency[step.Op])*w.slow*noise))
	}
	w.send(func() { w.step(Input{Report: r}) })
}

func (w *world) layout(job string, epoch int64) *wire.Layout {
	for _, l := range w.layouts[job] {
		if l.Plan.Epoch == epoch {
			return l
		}
	}
	w.t.Fatalf("job %s was told to train with layout %d, which was not stored", job, epoch)
	return nil
}

// end is the end of a process.
func (w *world) end(x *fakeExecutor, why string) {
	delete(w.executors, x.name)
	w.mail = append(w.mail, func() { w.step(Input{Ended: &ExecutorEnd{Executor: x.name, Why: why}}) })
}

// check holds what must be true at any moment.
func (w *world) check() {
	w.t.Helper()
	if w.had != nil {
		w.checkDevices()
		return
	}
	var arenas, hosts graph.Bytes
	for _, x := range w.executors {
		for _, j := range x.jobs {
			if arenas += j.status.Arena; !j.status.State.Over() {
				hosts += j.host
			}
		}
	}
	w.checkHost(hosts)
	if w.config.sharesMemory() {
		// a lease sees to arenas; what is out of reach counts whole
		if arenas = 0; w.machine.ownDomain.reservedBytes() > 0 {
			w.claims = max(w.claims, w.machine.ownDomain.totalClaims().Bytes())
		}
	}
	claims, budget := w.machine.ownDomain.totalClaims().Bytes(), w.config.Budget
	if w.peak = max(w.peak, arenas); budget > 0 && (arenas > max(budget, claims) || claims > max(budget, w.claims)) {
		for _, e := range w.events[max(0, len(w.events)-12):] {
			w.t.Log(e)
		}
		for _, r := range w.machine.Records() {
			for _, l := range w.machine.findJob(r.Spec.Name).layouts {
				w.t.Logf("%s %d %v %v %v", r.Spec.Name, l.Epoch(), l.Wire.Arena, l.granted, l.delivered)
			}
		}
		w.t.Fatalf("arenas of %s, claims of %s and %s a moment ago, the budget is %s", arenas, claims, w.claims, budget)
	}
	w.claims = claims
	w.checkLink()
}

// checkHost holds that jobs have no more on the host than they may, by what they claim and by what executors have.
func (w *world) checkHost(hosts graph.Bytes) {
	w.t.Helper()
	claims, budget := w.machine.ownDomain.totalHostClaims(), w.config.HostMemory
	if budget > 0 && (hosts > max(budget, claims) || claims > max(budget, w.hostClaims)) {
		for _, e := range w.events[max(0, len(w.events)-12):] {
			w.t.Log(e)
		}
		w.t.Fatalf("%s on the host, claims of %s and %s a moment ago, the budget is %s", hosts, claims,
			w.hostClaims, budget)
	}
	w.hostClaims = claims
}

// checkLink holds that executors copy no faster together than the link does, one with a job at all.
func (w *world) checkLink() {
	w.t.Helper()
	if slices.ContainsFunc(w.events, func(e Event) bool { return e.Kind == OutOfReach }) {
		return // an executor that cannot be reached goes on with what it had
	}
	var sum wire.Rates
	for name, x := range w.machine.executors {
		if x.IsGone() {
			continue
		}
		link := x.Orders.Link
		sum.Out, sum.In = sum.Out+link.Out, sum.In+link.In
		for _, o := range x.Orders.Jobs {
			if o.Epoch > 0 && (link.Out > 0) != w.config.Limited {
				w.t.Fatalf("executor %s trains %s and may copy at %v", name, o.Spec.Name, link)
			}
		}
	}
	if most := w.config.Out.Rate * (1 + 1e-9); sum.Out > most || sum.In > most {
		for _, e := range w.events[max(0, len(w.events)-14):] {
			w.t.Log(e)
		}
		for name, x := range w.machine.executors {
			w.t.Logf("%s %+v gone %v silent %v", name, x.Orders, x.IsGone(), x.IsSilent())
		}
		for _, r := range w.machine.Records() {
			w.t.Logf("%s %s %s %v", r.Spec.Name, r.State, r.Executor, r.Link)
		}
		w.t.Fatalf("executors may copy at %v together, the link does at %v", sum, w.config.Out.Rate)
	}
}

// deliver brings one message.
func (w *world) deliver() {
	at := w.rng.IntN(len(w.mail))
	message := w.mail[at]
	w.mail = slices.Delete(w.mail, at, at+1)
	message()
}

// restart kills the controller and starts another from what is stored.
func (w *world) restart() {
	s := w.stored()
	for _, r := range w.records {
		s.Records = append(s.Records, r)
	}
	slices.SortFunc(s.Records, func(a, b wire.Record) int { return int(a.Order - b.Order) })
	w.machine = Restore(w.config, s)
	allWhole(w.t, w.machine)
	if w.recorder != nil {
		w.replay()
		w.record(s)
	}
	outputs := w.machine.Resume(w.clock)
	w.recorder.resume(w.clock, outputs)
	w.carryOut(outputs)
}

// record begins a recording of a machine that was made from what was stored.
func (w *world) record(s Stored) {
	w.recording.Reset()
	w.recorder = NewRecorder(&w.recording, func(err error) { w.t.Error(err) })
	w.recorder.begin(w.config, s)
}

// replay wants another machine to do what the one did that was recorded.
func (w *world) replay() {
	w.t.Helper()
	if _, err := Replay(&w.recording); err != nil {
		w.t.Fatal(err)
	}
}

// stored is what the bus has, but for records.
func (w *world) stored() Stored {
	s := Stored{Graphs: w.graphs, Layouts: w.layouts, Orders: w.orders, Learnt: w.learnt, Tenants: w.tenants,
		Profiles: map[graph.Digest]*planner.Profile{}}
	for digest, g := range w.graphs {
		p, err := w.profile(g)
		if err != nil {
			w.t.Fatal(err)
		}
		s.Profiles[digest] = &p
	}
	s.Placed = map[string]map[graph.Digest]*planner.Profile{}
	for _, name := range slices.Sorted(maps.Keys(w.devices)) {
		s.Devices = append(s.Devices, w.devices[name])
		s.Placed[name] = s.Profiles
	}
	return s
}

// submit submits a job with a random graph and priority.
func (w *world) submit(name string, iterations int) *graph.Graph {
	return w.submitAs(name, iterations, w.rng.IntN(3))
}

func (w *world) submitAs(name string, iterations, priority int) *graph.Graph {
	g := graphtest.New(w.rng, graphtest.Options{})
	w.submitGraph(name, iterations, priority, g)
	return g
}

func (w *world) submitGraph(name string, iterations, priority int, g *graph.Graph) {
	w.graphs[g.Digest()] = g
	by := ""
	if w.shared {
		by = fmt.Sprint("tenant", w.rng.IntN(3))
	}
	w.step(Input{By: by, Submit: []Submission{{Spec: wire.Spec{Name: name, Model: "random", Graph: g.Digest(),
		Iterations: iterations, Priority: priority, Restarts: w.restarts(), Checkpoint: wire.Interval{
			Iterations: w.rng.IntN(2)}}, Graph: g}}})
}

// restarts is how often a job may go on; not at all in a world without mishaps.
func (w *world) restarts() int {
	if w.calm {
		return 0
	}
	return w.rng.IntN(2) * w.rng.IntN(4)
}
