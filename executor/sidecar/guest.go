package sidecar

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/models/external"
	"tensile/plan/program"
)

// GuestInput is what a guest is told: at a time by its clock, and one of the other fields.
type GuestInput struct {
	// Now is the time by the guest's clock.
	Now time.Duration

	// Open is the job and its first program.
	Open *Open
	// Change is another program for the job.
	Change *program.Program
	// Stop has the script end.
	Stop bool
	// Park has the script rest; it numbers the request, see executor.Host.Park.
	Park int64
	// Resume has the script go on.
	Resume bool
	// Remove has the job forgotten when it has ended.
	Remove bool
	// Reason says why there is no plan for what the script does; "": there is one again, or it is being made.
	Reason *string
	// Message is what the script has said.
	Message external.Message
	// Closed says that the script has closed its end, or has said what cannot be read.
	Closed bool
	// Gone says that the process of the script has ended, and that all it said was heard, while its command goes on.
	Gone bool
	// Exited says that the command has ended, and that all it said was heard.
	Exited *Exit

	// Page comes before Open. It says that memory is under a lease, which counts it in pages of so many bytes.
	Page graph.Bytes
	// Lease is an answer of that lease.
	Lease *lease.Output
}

// Open is a job whose script is to be started, and its first program, which is for a claim.
type Open struct {
	// Job is the job's name.
	Job string
	// Program is the first program, which is for a claim.
	Program *program.Program
	// Weight is, under a lease, what the job is worth; 0: 1.
	Weight int
}

// Exit is how a command has ended. Said: it is a process, whose status is not seen, so that it has ended as it said.
type Exit struct {
	Err  error
	Said bool
}

// Guest is the conversation with a script that is a job of a controller, from which its plans come. What it was
// ordered and what it is doing may differ: after each input it takes the next step from the one to the other.
//
//	outside --start--> training --park--> leaving --parked--> resting --resume--> training
//
// A process that says hello before it has a job was started by others, and was told to rest when it was let in: its job
// begins while it is leaving or rests.
//
// Under a lease it asks for its memory before it starts or resumes, and it goes through resting to change its plan: it
// holds all of its arena for as long as it does not rest.
type Guest struct {
	conversation
	// job is the job's name.
	job string
	// weight is what it is worth at the lease.
	weight int
	// program is the newest program; nil: there is no job, or none any more.
	program *program.Program
	// given is the program that the script was sent last.
	given *program.Program
	// why is why there is no plan for its graph; "": there is one, or it is being made.
	why string
	// current is the number of the shape that is the job's graph; 0: the graph is a claim.
	current int
	// due says that the job is to be planned for by current, or by 0, once its first program is in force.
	due bool
	// again is how many iterations without a plan belonged to earlier graphs since one of them became the job's graph.
	again int
	// often is how many such iterations have an earlier graph become the job's. It rises each time.
	often int
	// now is the time of the newest input.
	now time.Duration
	// place is where the script is.
	place place
	// started says that the job has had its memory.
	started bool
	// plans is how many plans came into force.
	plans int
	// left is when the script was started or went on.
	left time.Duration

	// alone is what it claims since it follows no plan any more, in bytes; 0: it may follow one.
	alone graph.Bytes
	// epoch numbers the program that was acknowledged last.
	epoch int64
	// bytes is what the job has of the device by that program; 0: it rests.
	bytes graph.Bytes

	// stop and remove are ordered; told says that the script was told to stop. A job with remove is forgotten when it
	// has ended.
	stop, told, remove bool
	// park is the number of the order to rest, 0 while the script is to train; parked is the one that was answered.
	park, parked int64
	// counter numbers the messages park and resume to the script.
	counter int64
	// gone says that the process has ended, and its command has not.
	gone bool
	// exit is the end of a process that has ended before its job had its memory.
	exit *Exit

	// page is the lease's unit in bytes; 0: memory is not leased.
	page graph.Bytes
	// ask is the number of the newest Join.
	ask int64
	// joined is how many pages it has asked for since it last left the lease.
	joined int
	// granted says that they were granted.
	granted bool
	// drain says that the lease wants them back.
	drain bool
}

// Rest is what a process is told that is let in before it has a job: it rests until that has its memory.
var Rest = external.Park{Number: 1}

// place is where a script is.
type place int

const (
	outside place = iota // not started
	training
	leaving // it was told to rest
	resting
)

// Step takes one input and returns what is to be done, in order.
func (g *Guest) Step(in GuestInput) []Output {
	g.out, g.now = nil, max(g.now, in.Now)
	var err error
	switch {
	case in.Page != 0:
		g.page = in.Page
	case in.Open != nil:
		g.openJob(in.Open)
	case in.Message != nil:
		if !g.over {
			err = g.handleMessage(in.Message)
		}
	case in.Closed:
		if !g.over {
			g.handleClosed()
		}
	case g.program == nil:
		if in.Exited != nil {
			g.exit = in.Exited
		}
		if in.Remove {
			g.emitEvent(executor.Event{Removed: true})
		}
	case in.Change != nil:
		g.program = in.Change
	case in.Stop:
		g.stop = true
	case in.Park != 0:
		g.park = in.Park
	case in.Resume:
		g.park = 0
	case in.Remove:
		g.stop, g.remove = true, true
	case in.Reason != nil:
		g.reportUnplanned(*in.Reason)
	case in.Lease != nil:
		g.handleLease(in.Lease)
	case in.Exited != nil:
		g.handleExit(g.endOf(in.Exited))
	case in.Gone:
		g.handleGone()
	}
	if err != nil {
		g.over = true
		g.emit(Output{Fail: err})
	}
	if g.program != nil {
		g.advance()
	}
	return g.out
}

// emitEvent tells of the job, once there is one.
func (g *Guest) emitEvent(e executor.Event) {
	if g.job == "" {
		return
	}
	e.Job = g.job
	g.emit(Output{Event: &e})
}

func (g *Guest) openJob(o *Open) {
	if g.job != "" {
		g.emit(Output{Event: &executor.Event{Job: o.Job, Refused: errors.New("a sidecar has one script")}})
		return
	}
	g.job, g.weight, g.program, g.often = o.Job, o.Weight, o.Program, 4
	if g.exit != nil {
		g.handleExit(g.endOf(g.exit))
	}
}

// advance takes the script as far as it can go now.
func (g *Guest) advance() {
	if g.gone {
		g.advanceGone()
		return
	}
	switch g.place {
	case outside, resting:
		switch {
		case g.stop && g.place == outside:
			g.handleExit(nil)
		case g.stop:
			g.tellStop()
		case g.park > 0:
			if g.parked != g.park {
				g.parked = g.park
				g.emitEvent(executor.Event{Parked: g.park})
			}
		case g.acquires():
			g.startOrResume()
		}
	case training:
		changes := g.program != g.given
		switch {
		case changes && g.coversPassive():
			g.given = g.program
			g.acknowledge(g.program)
		case g.device == nil || g.over: // it cannot be told anything
		case g.stop:
			g.tellStop()
		case g.park > 0 || g.drain || g.page > 0 && (changes || g.pages() > g.joined):
			g.place = leaving
			g.counter++
			g.emit(Output{Send: external.Park{Number: g.counter}})
		case changes:
			g.sendPlan()
		}
	case leaving:
		if g.stop {
			g.tellStop()
		}
	}
}

// advanceGone does for a process that has ended what it would do.
func (g *Guest) advanceGone() {
	switch {
	case g.park > 0 && g.parked == g.park:
	case g.park > 0:
		if g.parked = g.park; g.bytes > 0 {
			g.bytes = 0
			g.emitEvent(executor.Event{Home: true})
		}
		g.emitEvent(executor.Event{Parked: g.park})
	case g.program != g.given || g.bytes == 0:
		g.given = g.program
		g.acknowledge(g.program)
	}
}

// coversPassive reports whether the newest program is for what a script has that follows no plan any more. It is in
// force then: there is nothing that the script would have to do, or could be told if it has left.
func (g *Guest) coversPassive() bool {
	return g.alone > 0 && g.shapeOf(g.program) == nil && g.claimOf(g.program) >= g.alone &&
		(g.page == 0 || g.pages() <= g.joined)
}

// tellStop tells the script to end, once.
func (g *Guest) tellStop() {
	if !g.told && g.device != nil && !g.over {
		g.told = true
		g.emit(Output{Send: external.Stop{}})
	}
}

// startOrResume tells the script to begin or to go on.
func (g *Guest) startOrResume() {
	g.left = g.now
	before := g.place
	g.place = training
	if !g.started {
		g.started = true
		g.emit(Output{Start: true})
	}
	if before == outside {
		g.acknowledge(g.program)
		return
	}
	if g.program != g.given {
		g.sendPlan()
	}
	g.counter++
	g.emit(Output{Send: external.Resume{Number: g.counter}})
}

// sendPlan sends the script its newest program.
func (g *Guest) sendPlan() {
	p := g.program
	g.given = p
	s := sent{program: p}
	lines := external.Plan{Why: cmp.Or(g.summary.Passive, g.why)}
	if of := g.shapeOf(p); of != nil {
		lines = external.Compile(of.Graph, p.Plan)
		lines.Graph, lines.Bytes = of.Number, p.Arena+of.Held
		for _, step := range p.Plan.Steps {
			s.steps = append(s.steps, step.Op)
		}
	}
	lines.Limit = g.claimOf(p)
	g.send(lines, s)
}

// reportUnplanned tells the script, if it can be told, and its owner why there is no plan for what it does.
func (g *Guest) reportUnplanned(why string) {
	if g.why = why; why == "" || g.summary.Passive != "" || g.device == nil || g.over {
		return
	}
	g.addNote("no plan for what was recorded: %s", why)
	if g.place == training {
		g.send(external.Plan{Why: reasonLine(why), Limit: g.claimOf(g.given)}, sent{program: g.given})
	}
}

// claimOf returns what the job has of the device with a program: its arena, what the script holds, and the reserve.
func (g *Guest) claimOf(p *program.Program) graph.Bytes {
	bytes := p.Arena
	if s := g.shapeOf(p); s != nil {
		bytes += s.Held + g.summary.Reserve
	}
	return bytes
}

// shapeOf returns the recorded iteration that a program is for; nil: it is for a claim.
func (g *Guest) shapeOf(p *program.Program) *shape {
	for _, s := range g.graphs {
		if s.digest == p.Plan.Graph {
			return s
		}
	}
	return nil
}

// acknowledge tells that a program is in force, and that nothing else has memory any more.
func (g *Guest) acknowledge(p *program.Program) {
	g.epoch, g.bytes = p.Plan.Epoch, g.claimOf(p)
	g.plans++
	g.emitEvent(executor.Event{Applied: &executor.Applied{Epoch: g.epoch, Arena: p.Arena}})
	g.reportPassive()
	if g.due {
		g.due = false
		g.recordGraph(g.current)
	}
}

// reportPassive tells why the script follows no plan any more, if that is so.
func (g *Guest) reportPassive() {
	if why := g.summary.Passive; why != "" {
		g.emitEvent(executor.Event{Refused: fmt.Errorf("no plan is followed any more: %s", why)})
	}
}

// handleMessage handles a message of the script.
func (g *Guest) handleMessage(message external.Message) error {
	if err := g.checkOrder(message); err != nil {
		return err
	}
	if _, ends := message.(external.End); g.place == resting && !ends {
		return errors.New("it trains, and is to rest")
	}
	switch s := message.(type) {
	case external.Hello:
		g.handleHello(&s)
		if g.place == outside {
			g.place, g.counter = leaving, Rest.Number
			break
		}
		g.sendPlan()
	case external.Recorded:
		if err := g.handleRecorded(&s); err != nil {
			return err
		}
		g.recordGraph(s.Number)
	case external.Applied:
		return g.takeAnswer(&s)
	case external.Iteration:
		return g.countIteration(&s)
	case external.Passive:
		if g.handlePassive(&s) {
			g.reportPassive()
			g.recordGraph(0)
		}
	case external.Parked:
		if g.place != leaving || s.Number != g.counter {
			return fmt.Errorf("it is parked by number %d, and was not told to", s.Number)
		}
		g.place, g.bytes = resting, 0
		g.release()
		g.emitEvent(executor.Event{Home: true})
	case external.End:
		g.handleEnd(&s)
	}
	return nil
}

// recordGraph has the job planned for by a graph that was recorded, or, by 0, as one that follows no plan: by what it
// had without one, or needs for any of its graphs.
func (g *Guest) recordGraph(number int) {
	g.current = number
	if g.due = g.plans == 0; g.due {
		return
	}
	if number > 0 {
		r := g.graphs[number-1].Recorded
		g.emit(Output{Record: &r})
		return
	}
	g.alone = max(1, g.summary.Unplanned, g.bytes)
	for _, s := range g.graphs {
		g.alone = max(g.alone, external.Need(s.Graph)+s.Held+g.summary.Reserve)
	}
	g.claim(min(g.alone, graph.MaxBytes))
}

// claim has the job planned for as one that has so much and follows no plan.
func (g *Guest) claim(bytes graph.Bytes) {
	g.alone = bytes
	all := external.Claim(bytes)
	g.emit(Output{Record: &external.Recorded{Graph: all, Latency: make([]time.Duration, len(all.Ops))}})
}

// handleGone gives back the memory of a process that has ended. Its job goes on with its command.
func (g *Guest) handleGone() {
	g.over, g.gone = true, true
	g.release()
	g.claim(1)
}

// endOf is the error with which a script has ended.
func (g *Guest) endOf(e *Exit) error {
	switch {
	case e.Err != nil || !e.Said:
		return e.Err
	case g.summary.Error != "":
		return errors.New(g.summary.Error)
	case !g.summary.Ended:
		return errors.New("it was killed, has crashed or has called os._exit")
	}
	return nil
}

// takeAnswer handles the answer to a plan. A plan that takes less than the one before is in force when an iteration has
// followed it: until then what was above it may still be there.
func (g *Guest) takeAnswer(a *external.Applied) error {
	s, err := g.handleApplied(a)
	switch {
	case err != nil:
		return err
	case s == nil && g.bytes > 0: // else it waits for another
		g.emitEvent(executor.Event{Refused: fmt.Errorf("the script refuses plan %d: %s", a.Plan, a.Error)})
	case s != nil && s.program == g.given && (g.bytes == 0 ||
		s.program.Plan.Epoch > g.epoch && (s.graph == 0 || g.claimOf(s.program) >= g.bytes)):
		g.acknowledge(s.program)
	}
	return nil
}

// countIteration handles what an iteration took.
func (g *Guest) countIteration(i *external.Iteration) error {
	s, err := g.handleIteration(i)
	if err != nil {
		return err
	}
	switch {
	case g.bytes == 0 && g.place == training: // it has gone on, and follows none
		g.acknowledge(g.given)
	case s != nil && s.program == g.given && s.program.Plan.Epoch > g.epoch:
		g.acknowledge(s.program)
	}
	if g.left == 0 { // it trained before the job was told to begin
		g.left = max(0, g.now-i.Wall)
	}
	r := &executor.Report{Job: g.job, Epoch: g.epoch, Iteration: i.Iteration - 1, Left: g.left,
		Begin: max(g.left, g.now-i.Wall), End: g.now, Stall: i.Stall, Touched: i.Touched,
		Script: &executor.Script{Plan: g.summary.Plan, Reserve: g.summary.Reserve, Loss: i.Loss,
			Hooks: g.hooks}}
	if s != nil && s.program.Plan.Epoch == g.epoch {
		r.Steps = i.Steps
	}
	g.emitEvent(executor.Event{Report: r})
	g.replanEarlier(i)
	return nil
}

// replanEarlier has the job planned for by an earlier graph again, when some iterations of it had no plan. Where graphs
// come in turn, the job has the plan of the largest before long, beside which the script keeps those of the others.
func (g *Guest) replanEarlier(i *external.Iteration) {
	if i.Graph == 0 || i.Graph == g.current || i.Plan > 0 || g.summary.Passive != "" {
		return
	}
	if g.again++; g.again >= g.often {
		g.again, g.often = 0, min(2*g.often, 1<<20)
		g.recordGraph(i.Graph)
	}
}

// handleExit ends the job: its command has ended, or was never started.
func (g *Guest) handleExit(err error) {
	if err != nil {
		err = fmt.Errorf("the script has ended: %w", err)
	}
	g.place, g.program, g.over = outside, nil, true
	g.release()
	g.emitEvent(executor.Event{Ended: &executor.Ended{Err: err, Iterations: g.summary.Iterations, Plans: g.plans,
		Touched: max(g.summary.Touched, g.summary.Unplanned)}})
	if g.remove {
		g.emitEvent(executor.Event{Removed: true})
	}
}

// pages is what the job takes of the device, as the lease counts it.
func (g *Guest) pages() int { return int((g.claimOf(g.program) + g.page - 1) / g.page) }

// acquires reports whether the job has the memory that it needs; where it is leased it asks for it first.
func (g *Guest) acquires() bool {
	if g.page > 0 && g.joined == 0 {
		g.ask++
		g.joined = g.pages()
		g.emit(Output{Lease: &lease.Input{Join: &lease.Join{Job: lease.Job(g.job), Ask: g.ask, Base: g.joined,
			Peak: g.joined, Weight: g.weight}}})
	}
	return g.page == 0 || g.granted
}

// release gives back what the lease has granted.
func (g *Guest) release() {
	if g.joined > 0 {
		g.emit(Output{Lease: &lease.Input{Leave: &lease.Leave{Job: lease.Job(g.job)}}})
	}
	g.joined, g.granted, g.drain = 0, false, false
}

// handleLease handles an answer of the lease.
func (g *Guest) handleLease(a *lease.Output) {
	switch {
	case a.Kind == lease.Grant:
		g.granted = g.granted || a.Ask == g.ask && g.joined > 0
	case a.Kind == lease.Drain && g.granted:
		g.drain = true
	case a.Kind == lease.Drain:
		g.release()
	case g.place == outside:
		g.joined = 0 // what the lease has under this name is not this job
		g.handleExit(fmt.Errorf("the lease of the device's memory refuses it: %s", a.Why))
	default:
		g.addNote("the lease of the device's memory refuses it: %s", a.Why)
	}
}
