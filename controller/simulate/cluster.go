package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/agent"
	"tensile/plan/program"
	"tensile/wire"
)

// heartbeat is the time between two ticks of all machines.
const heartbeat = 30 * time.Second

// maxSilence is how long an executor may be silent: none is ever lost here.
const maxSilence = 100 * heartbeat

// lab is the host of all devices, and their folder of checkpoints, so that each reads those of all.
const lab = "lab"

// cachedCommands is how many commands of plans are kept: about a gigabyte.
const cachedCommands = 5_000_000

// cluster is Tensile: the machine of a controller and those of its executors, one per device. Their messages arrive at
// once and their plans take no time.
type cluster struct {
	*world
	machine *controller.Machine
	config  controller.Config
	// processes are those of executors, by the name of their device.
	processes map[string]*process
	// mail delivers the messages that are on their way, oldest first.
	mail    []func() error
	layouts map[string]*wire.Layout
	plans   *plans.Cache
	// copies are the checkpoints that are being written or read.
	copies []checkpointCopy
	// checkpoints are those of jobs that migrate, by job.
	checkpoints map[string]*wire.Checkpoint
	// replanned counts the sets of plans that were adopted, moved the migrations.
	replanned int
	moved     int
}

// checkpointCopy is a checkpoint that is being written or read.
type checkpointCopy struct {
	endsAt   time.Duration
	whenDone func() error
}

// process is that of an executor.
type process struct {
	*cluster
	node  *node
	agent *agent.Machine
	lease *lease.Machine
}

func newCluster(w *world) (*cluster, error) {
	c := &cluster{world: w, processes: make(map[string]*process), layouts: make(map[string]*wire.Layout),
		checkpoints: make(map[string]*wire.Checkpoint), plans: plans.NewCache(cachedCommands)}
	c.config = controller.Config{NoDevice: true, MemorySharing: wire.Gates, Policy: "tensile", Silence: maxSilence,
		GiveUp: maxSilence, NoMoves: w.NoMoves}
	c.machine = controller.NewMachine(c.config)
	for _, n := range w.nodes {
		c.start(n)
	}
	return c, c.deliver()
}

// start has the executor of a device join.
func (c *cluster) start(n *node) {
	on := c.world.planner
	p := &process{cluster: c, node: n, lease: lease.NewMachine(lease.Options{})}
	p.agent = agent.NewMachine(agent.Process{Executor: n.name, Life: n.name, Device: on.Identity, Host: lab,
		Folder: lab, Brings: &wire.Device{Name: n.name, Model: on.Identity, Identity: on.Identity, Host: lab,
			Align: on.Align, Page: on.Page, Budget: c.Budget, Facts: c.Facts}})
	c.processes[n.name] = p
	online := true
	p.step(agent.Input{Online: &online})
}

func (c *cluster) counts() (replans, moves int) { return c.replanned, c.moved }

// clock is the time of machines, which is above 0.
func (c *cluster) clock() time.Duration { return time.Hour + c.now }

func (c *cluster) arrive(j *job) error {
	spec := wire.Spec{Name: j.name, Model: j.Model, Graph: j.kind.task.Graph.Digest(), Seed: 1,
		Iterations: j.Iterations,
		Checkpoint: wire.Interval{Iterations: j.Iterations}} // a checkpoint is taken only when the job migrates
	c.step(controller.Input{By: j.Tenant, From: 1,
		Submit: []controller.Submission{{Spec: spec, Graph: j.kind.task.Graph, At: c.clock()}}})
	return c.deliver()
}

func (c *cluster) tick() (time.Duration, error) {
	for _, n := range c.nodes {
		c.processes[n.name].step(agent.Input{Tick: true})
	}
	c.step(controller.Input{Tick: &controller.Tick{}})
	c.copies = slices.DeleteFunc(c.copies, func(k checkpointCopy) bool {
		if k.endsAt <= c.now {
			c.send(k.whenDone)
			return true
		}
		c.wake = min(c.wake, k.endsAt)
		return false
	})
	return c.now + heartbeat, c.deliver()
}

// copyCheckpoint does something when a checkpoint of a job has been written, or read.
func (c *cluster) copyCheckpoint(j *job, done func() error) {
	_, bytes := program.SnapshotSlots(j.kind.task.Graph)
	until := c.now + time.Duration(float64(bytes)/controller.CheckpointRate*float64(time.Second))
	c.copies = append(c.copies, checkpointCopy{until, done})
	c.wake = min(c.wake, until)
}

func (c *cluster) takeEvents(n *node, events []executor.Event) error {
	for i := range events {
		c.processes[n.name].step(agent.Input{Event: &events[i]})
	}
	return c.deliver()
}

// send puts a message on its way. Messages arrive in the order in which they were sent.
func (c *cluster) send(deliver func() error) { c.mail = append(c.mail, deliver) }

func (c *cluster) deliver() error {
	for len(c.mail) > 0 {
		next := c.mail[0]
		c.mail = c.mail[1:]
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}

// step steps the controller's machine and carries out what it wants, as its runner would.
func (c *cluster) step(in controller.Input) {
	for _, o := range c.machine.Step(c.clock(), in) {
		switch {
		case o.Answer != nil && o.Answer.Error != "":
			c.send(func() error { return errors.New(o.Answer.Error) })
		case o.Record != nil && o.Record.State == wire.JobFailed:
			c.send(func() error { return fmt.Errorf("job %s has failed: %s", o.Record.Spec.Name, o.Record.Reason) })
		case o.Layout != nil:
			l := o.Layout.Layout
			c.layouts[wire.LayoutObject(o.Layout.Job, o.Layout.ID, l.Plan.Epoch)] = l
		case o.Drop != nil:
			delete(c.layouts, o.Drop.Object)
		case o.Orders != nil:
			c.send(func() error {
				if p := c.processes[o.Orders.Executor]; p != nil {
					p.step(agent.Input{Orders: o.Orders})
				}
				return nil
			})
		case o.PlanRequest != nil:
			c.send(func() error {
				c.step(controller.Input{PlanResult: c.makePlans(o.PlanRequest)})
				return context.Cause(c.ctx)
			})
		case o.Event != nil && o.Event.Kind == controller.Adopted:
			c.replanned++
		case o.Event != nil && o.Event.Kind == controller.Migrating:
			c.moved++
		}
	}
}

// makePlans answers a plan request.
func (c *cluster) makePlans(p *plans.Request) *plans.Result {
	config := c.config.ForDevice(p.Device)
	planner := plans.Worker{Device: config.SharedDevice(c.world.planner), Settings: config.PlanSettings(),
		Cache: c.plans}
	return planner.Plan(c.ctx, p)
}

// tellHost has the host of the process's device do something, and lets the device go on.
func (p *process) tellHost(do func(*executor.Host)) {
	p.send(func() error { return p.node.tell(p.now, do) })
}

// stepLater steps the process when the messages that are on their way have arrived.
func (p *process) stepLater(in func() agent.Input) {
	p.send(func() error {
		p.step(in())
		return nil
	})
}

// step steps the agent's machine and carries out what it wants, as its runner would.
func (p *process) step(in agent.Input) {
	outputs := p.agent.Step(p.clock(), in)
	in.Spare(outputs)
	for _, o := range outputs {
		switch {
		case o.Prepare != nil:
			j := p.find(o.Prepare.Spec.Name)
			prepared := &agent.Prepared{Ticket: o.Prepare.Ticket, Task: j.kind.task}
			prepared.Task.Name = j.name
			in := func() agent.Input { return agent.Input{Prepared: prepared} }
			if c := p.checkpoints[j.name]; c != nil {
				prepared.Begin = &agent.Begin{Iteration: c.Iteration, File: c.File, Checkpoint: c}
				p.copyCheckpoint(j, func() error { p.step(in()); return nil })
			} else {
				p.stepLater(in)
			}
		case o.Fetch != nil:
			p.stepLater(func() agent.Input { return agent.Input{Fetched: p.fetchLayout(o.Fetch)} })
		case o.Open != nil:
			spec := executor.SpecOf(o.Open.Task, o.Open.Spec.Iterations, nil)
			if o.Open.Begin != nil {
				spec.Begin = o.Open.Begin.Iteration
			}
			p.tellHost(func(h *executor.Host) {
				p.node.add(spec)
				h.Submit(spec, o.Open.Proven)
			})
		case o.Change != nil:
			p.tellHost(func(h *executor.Host) { h.Change(o.Change.Job, o.Change.Proven) })
		case o.Stop != "":
			p.tellHost(func(h *executor.Host) { h.Stop(o.Stop) })
		case o.Remove != "":
			p.tellHost(func(h *executor.Host) { h.Remove(o.Remove) })
		case o.Lend != nil:
			p.tellHost(func(h *executor.Host) { agent.ShareMemory(h, o.Lend, p.lease) })
		case o.Weigh != nil:
			p.tellHost(func(h *executor.Host) { h.Weigh(o.Weigh.Job, o.Weigh.Weight) })
		case o.Park != nil:
			p.tellHost(func(h *executor.Host) { h.Park(o.Park.Job, o.Park.Number, o.Park.At) })
		case o.Resume != "":
			p.tellHost(func(h *executor.Host) { h.Resume(o.Resume) })
		case o.Take != nil:
			p.tellHost(func(h *executor.Host) { h.Checkpoint(o.Take.Job, o.Take.At) })
		case o.Write != nil:
			p.writeCheckpoint(o.Write)
		case o.Keep != nil:
			kept := o.Keep.Take(nil)
			p.stepLater(func() agent.Input { return agent.Input{Kept: kept} })
		case o.Store != nil:
			p.stepLater(func() agent.Input { return agent.Input{Stored: &agent.Stored{Ticket: o.Store.Ticket}} })
		case o.Status != nil:
			p.send(func() error { p.cluster.step(controller.Input{Status: o.Status}); return nil })
		case o.Report != nil:
			p.send(func() error { p.cluster.step(controller.Input{Report: o.Report}); return nil })
		}
	}
}

// writeCheckpoint takes as long as a checkpoint does.
func (p *process) writeCheckpoint(w *agent.Write) {
	p.copyCheckpoint(p.find(w.Spec.Name), func() error {
		w.Snapshot.Release()
		c := &wire.Checkpoint{Iteration: w.Snapshot.Iteration, File: w.Spec.Name, Host: lab, Folder: lab}
		p.checkpoints[w.Spec.Name] = c
		p.step(agent.Input{Written: &agent.Written{Ticket: w.Ticket, Checkpoint: c}})
		return nil
	})
}

func (p *process) fetchLayout(o *agent.Fetch) *agent.Fetched {
	l := p.layouts[wire.LayoutObject(o.Job, o.ID, o.Epoch)]
	if l == nil {
		return &agent.Fetched{Ticket: o.Ticket, Epoch: o.Epoch, Err: wire.ErrNotFound, Again: true}
	}
	return o.Prove(l, p.node.device)
}
