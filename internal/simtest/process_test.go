package simtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tensile/controller"
	"tensile/data/checkpoint"
	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/wire"
)

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
	has    map[string]bool  // jobs that its host was given, until it says that it has them no more
	failed map[string]bool  // jobs that its host has dropped, of which its agent may not have heard
	events []executor.Event // that the agent has not heard yet
	left   bool
	dead   bool
	stands bool // it does nothing, and hears nothing, for now

	asks    []lease.Input // on their way to the lease
	answers []lease.Output
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
	p.begin(agent.Process{Executor: name, Life: p.life, Device: p.device.Identity(), Host: host,
		Folder: p.checkpoints().FolderIdentity, Dead: dead, Brings: at.brings})
}

// process is a new one.
func (w *world) process(at *site, name, key string) *process {
	w.lives++
	p := &process{w: w, site: at, name: name, key: key, life: fmt.Sprint("life", w.lives), device: at.open(),
		opened: w.clock, lines: map[string]*line{},
		far:   w.apart && !w.calm && w.lives%3 == 2,
		hosts: map[string]graph.Bytes{}, loads: map[string]graph.Bytes{},
		arenas: map[string]graph.Bytes{}, losses: map[string][]float32{}, epochs: map[string]int64{},
		failed: map[string]bool{}, has: map[string]bool{}}
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
	t, err := task.Open(nil, p.w.handed[o.Spec.Graph], o.Spec.Seed, o.Spec.Data)
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
	return &agent.Checkpoints{Folder: checkpoint.Folder{Dir: dir, Disk: p.w.disk}, Host: host, FolderIdentity: dir,
		Device: p.device.Identity(), NoData: strings.HasPrefix(p.device.Name(), "sim:")}
}

// upTo are the losses of the iterations of a checkpoint.
func upTo(losses []float32, w *agent.Write) []float32 {
	return losses[:min(len(losses), w.Snapshot.Iteration)]
}

func (p *process) fetch(o *agent.Fetch) *agent.Fetched {
	name := inBucket(p.name, wire.LayoutObject(o.Job, o.ID, o.Epoch))
	l := p.w.layouts[name]
	switch {
	case l == nil && !p.w.dropped[name]:
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
		if other.has[name] && other.name == p.name && other != p && !givenUp {
			p.w.t.Fatalf("two processes of executor %s train job %s", p.name, name)
		}
	}
	p.losses[name], p.has[name] = nil, true
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
	case e.Home: // the host keeps nothing of a plan
		p.arenas[e.Job] = 0
		_, p.hosts[e.Job] = program.HostSlots(p.w.handed[p.w.records[e.Job].Spec.Graph])
	case e.Ended != nil && e.Ended.Err != nil:
		delete(p.arenas, e.Job)
		delete(p.hosts, e.Job)
		delete(p.has, e.Job)
		p.failed[e.Job] = true
	case e.Refused != nil && p.job == "" && !p.failed[e.Job]: // a script's job may follow no plan any more
		p.w.t.Fatalf("job %s: %v", e.Job, e.Refused)
	case e.Removed:
		delete(p.has, e.Job)
		delete(p.failed, e.Job)
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
	p.w.hurt[p.job] = p.w.hurt[p.job] || !p.left || why == "killed" // before it was heard that it had left
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
	p.w.ghosts[p.life] = p.name
	tell := func() {
		p.w.step(controller.Input{Ended: &controller.ExecutorEnd{Executor: p.name, Lives: []string{p.life}, Why: why}})
	}
	if p.w.config.Watched || p.w.rng.IntN(2) == 0 {
		p.w.surely(tell)
	} else {
		p.w.unknown = append(p.w.unknown, tell)
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
