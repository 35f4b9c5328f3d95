package simtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tensile/controller"
	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/agent"
	"tensile/executor/sidecar"
	"tensile/graph"
	"tensile/models/external"
	"tensile/models/graphtest"
	"tensile/plan/proof"
	"tensile/wire"
)

// guestHost is the host of a joined script: what sidecar.Host is, without goroutines.
type guestHost struct {
	p      *process
	guest  sidecar.Guest
	script *script // nil: it was not started
	by     executor.Sharing
	told   []sidecar.GuestInput // on their way from the script
	asks   *external.Recorded   // the controller is to plan for it, and has not answered; nil: nothing is
}

// scriptDevice is what a script trains on: addresses are its own.
type scriptDevice struct{ device.Device }

func (scriptDevice) Name() string       { return "script" }
func (scriptDevice) Align() graph.Bytes { return 1 }

func (h *guestHost) tell(in sidecar.GuestInput) {
	w := h.p.w
	in.Now = w.clock
	for _, o := range h.guest.Step(in) {
		switch {
		case o.Fail != nil:
			w.tell()
			w.t.Fatalf("sidecar of job %s: %v", h.script.job, o.Fail)
		case o.Send != nil:
			h.script.lines = append(h.script.lines, sent(w, o.Send, external.Sidecar))
		case o.Start:
			h.script = newScript(h.p)
		case o.Event != nil:
			h.p.observe(*o.Event)
		case o.Record != nil:
			h.asks = o.Record
			h.ask()
		case o.Lease != nil:
			h.p.Step(*o.Lease)
		}
	}
}

// sent is a message as it comes out of the codec.
func sent(w *world, m external.Message, from external.Side) external.Message {
	line, err := external.Encode(m)
	if err == nil {
		m, err = external.Decode(line[:len(line)-1], from)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// ask asks the controller to plan for what the script has recorded. It is asked again while there is no answer.
func (h *guestHost) ask() {
	w, r := h.p.w, h.asks
	if r == nil {
		return
	}
	digest := r.Graph.Digest()
	w.graphs[digest], w.recorded[digest] = r.Graph, r.Latency
	w.request(controller.Input{Request: &wire.Request{Verb: wire.SetGraph, Job: h.script.job, Graph: digest,
		Held: r.Held}, To: &controller.Submission{Spec: wire.Spec{Name: h.script.job, Graph: digest}, Graph: r.Graph,
		At: w.clock, Latency: r.Latency}}, func(wire.Answer) {
		if h.asks == r {
			h.asks = nil
		}
	})
}

func (h *guestHost) Submit(s executor.Spec, p proof.Proven) {
	h.tell(sidecar.GuestInput{Open: &sidecar.Open{Job: s.Name, Program: p.Program(), Weight: s.Weight}})
}
func (h *guestHost) Change(_ string, p proof.Proven) {
	h.tell(sidecar.GuestInput{Change: p.Program()})
}
func (h *guestHost) Stop(string)                        { h.tell(sidecar.GuestInput{Stop: true}) }
func (h *guestHost) Park(_ string, number int64, _ int) { h.tell(sidecar.GuestInput{Park: number}) }
func (h *guestHost) Resume(string)                      { h.tell(sidecar.GuestInput{Resume: true}) }
func (h *guestHost) Remove(string)                      { h.tell(sidecar.GuestInput{Remove: true}) }
func (h *guestHost) Unplanned(_, why string)            { h.tell(sidecar.GuestInput{Reason: &why}) }
func (h *guestHost) Weigh(string, int)                  {}
func (h *guestHost) Checkpoint(string, int)             {}
func (h *guestHost) Trace(string, int)                  {}
func (h *guestHost) Serve(context.Context) error        { return nil }
func (h *guestHost) Close() error                       { return nil }

func (h *guestHost) Share(s executor.Sharing) {
	if h.by = s; s.Lease != nil {
		h.tell(sidecar.GuestInput{Page: s.Page})
	}
}

func (h *guestHost) Capacity(size graph.Bytes, number int64) {
	h.p.Step(lease.Input{Capacity: &lease.Capacity{Pages: min(int(size/h.by.Page), lease.MaxPages), Number: number,
		Method: h.by.Method}})
}

func (h *guestHost) Answer(answers ...lease.Output) {
	for _, a := range answers {
		h.tell(sidecar.GuestInput{Lease: &a})
	}
}

// Poll lets the script go on for an iteration.
func (h *guestHost) Poll(context.Context) (bool, error) {
	if h.script != nil {
		h.script.turn()
	}
	return true, nil
}

// script is a program that trains with its own ops, by the plan that its sidecar gives it, in turns of an iteration
// each. It is a process of its own: where its sidecar dies it trains on. It has one shape of iteration or two; what its
// storages hold is a number that follows from the ops that have made it.
type script struct {
	w       *world
	sidecar *guestHost // nil: it has died
	job     string
	shapes  []*shape
	now     *shape
	told    int // shapes that were recorded
	lines   []external.Message
	joined  bool
	parked  bool
	counter int64
	done    int // iterations
	left    int
	plan    *external.Plan // the newest
	always  bool           // it follows no plan any more
	over    bool
	has     graph.Bytes // of the device, by the plan that it follows; 0: it follows none, and no limit holds
	before  graph.Bytes // that it had by the plan before, until an iteration has followed this one
}

// shape is one way in which a script iterates.
type shape struct {
	*graph.Graph
	number  int                        // as it was recorded; 0: it was not
	held    graph.Bytes                // beside its storages
	host    map[graph.StorageID]holds  // between two iterations: what is there
	device  map[graph.StorageID]holds  // what it has on the device
	plain   map[graph.StorageID]uint64 // what persistent storages hold in a run without plans
	follows int64                      // the plan by which device is as it is; 0: none
}

// holds is what a storage holds: a version, and that in a number.
type holds struct {
	version int
	value   uint64
}

func newScript(p *process) *script {
	w := p.w
	s := &script{w: w, sidecar: p.host.(*guestHost), job: p.job, left: 10 + w.rng.IntN(100)}
	for range 1 + w.rng.IntN(2) {
		g := graphtest.Script(w.rng)
		h := &shape{Graph: g, held: graph.Bytes(w.rng.IntN(300)), host: map[graph.StorageID]holds{},
			device: map[graph.StorageID]holds{}, plain: map[graph.StorageID]uint64{}}
		for id, storage := range g.Storages {
			if storage.Role.Persistent() {
				h.host[graph.StorageID(id)] = holds{value: uint64(id)}
				h.plain[graph.StorageID(id)] = uint64(id)
			}
		}
		s.shapes = append(s.shapes, h)
	}
	s.now = s.shapes[0]
	return s
}

// say says something to the sidecar, which hears it in order.
func (s *script) say(m external.Message) {
	s.tell(sidecar.GuestInput{Message: sent(s.w, m, external.Script)})
}

func (s *script) tell(in sidecar.GuestInput) {
	h := s.sidecar
	if h == nil {
		return
	}
	h.told = append(h.told, in)
	s.w.surely(func() {
		in := h.told[0]
		if h.told = h.told[1:]; s.w.processes[h.p.key] == h.p {
			h.tell(in)
		}
	})
}

// turn hears what the sidecar has said since the last iteration, and trains the next one.
func (s *script) turn() {
	if s.over {
		return
	}
	if !s.joined {
		s.joined = true
		s.say(external.Hello{PID: 1, Framework: "torch", Release: "1",
			Device: external.Device{Kind: "cpu", Name: "cpu"}})
	}
	for len(s.lines) > 0 && !s.over {
		line := s.lines[0]
		s.lines = s.lines[1:]
		s.hear(line)
	}
	switch {
	case s.over || s.parked:
		return
	case s.left == 0:
		s.end(external.End{Iteration: s.done})
		return
	case !s.w.calm && s.w.rng.IntN(200) == 0:
		s.w.hurt[s.job] = true
		s.exit(errors.New("signal: killed"))
		return
	case !s.w.calm && s.w.rng.IntN(200) == 0 && !s.always:
		s.always, s.has, s.before = true, 0, 0
		s.say(external.Passive{Iteration: s.done, Why: "compiled", Always: true})
	case s.w.rng.IntN(20) == 0:
		s.now = s.shapes[s.w.rng.IntN(len(s.shapes))]
	}
	s.iterate()
}

func (s *script) hear(m external.Message) {
	switch m := m.(type) {
	case external.Plan:
		if s.plan = &m; s.always {
			s.plan = &external.Plan{Number: m.Number}
		}
		s.take()
		s.say(external.Applied{Plan: m.Number, Iteration: s.done, Reserved: m.Bytes})
	case external.Park:
		s.parked, s.counter, s.has, s.before = true, m.Number, 0, 0
		s.goHome()
		s.say(external.Parked{Number: m.Number, Iteration: s.done})
	case external.Resume:
		s.parked, s.counter = false, m.Number
		s.take()
	case external.Stop:
		s.goHome()
		s.end(external.End{Iteration: s.done, Stopped: true})
	}
}

// take has the script have by now what the newest plan takes.
func (s *script) take() {
	if s.plan == nil || s.parked {
		return
	}
	s.before, s.has = max(s.before, s.has), s.plan.Bytes
	s.w.check()
}

// takes is what the script has of the device.
func (s *script) takes() graph.Bytes { return max(s.has, s.before) }

// goHome has nothing on the device.
func (s *script) goHome() {
	for _, h := range s.shapes {
		for id, v := range h.device {
			h.host[id] = v
		}
		clear(h.device)
		h.follows = 0
	}
}

func (s *script) end(e external.End) {
	s.say(e)
	s.exit(nil)
}

// exit ends the process.
func (s *script) exit(err error) {
	s.over, s.has, s.before = true, 0, 0
	s.tell(sidecar.GuestInput{Closed: true})
	s.tell(sidecar.GuestInput{Exited: &sidecar.Exit{Err: err}})
}

// iterate trains an iteration, by the newest plan if that is for it.
func (s *script) iterate() {
	h, plan := s.now, s.plan
	if plan != nil && (plan.Graph == 0 || plan.Graph != h.number) {
		plan = nil
	}
	said := external.Iteration{Iteration: s.done + 1, Graph: h.number,
		Wall: s.w.slow * time.Microsecond * time.Duration(len(h.Ops)), Touched: external.Need(h.Graph) + h.held}
	if plan == nil {
		s.goHome()
		maps.Copy(h.device, h.host)
	} else {
		said.Plan, said.Reserved = plan.Number, plan.Bytes+graph.Bytes(s.w.rng.IntN(100)/99*64)
		if h.follows != plan.Number {
			s.goHome()
			for _, id := range plan.Entry {
				h.device[id] = h.host[id]
			}
			h.follows = plan.Number
		}
	}
	x := play{script: s, shape: h, plan: plan}
	x.iteration()
	if s.done, s.left = s.done+1, s.left-1; plan != nil {
		said.Touched, s.before = x.most+h.held, 0
		for range x.steps {
			said.Steps = append(said.Steps, s.w.slow*time.Microsecond)
		}
		if said.Touched > plan.Bytes {
			s.w.t.Fatalf("job %s had %s on the device under plan %d of %s", s.job, said.Touched, plan.Number,
				plan.Bytes)
		}
		s.w.played++
	}
	s.say(said)
	if h.number == 0 && !s.always {
		s.told++
		h.number = s.told
		r := external.Recorded{Number: h.number, Graph: h.Graph, Held: h.held}
		for range h.Ops {
			r.Latency = append(r.Latency, s.w.slow*time.Microsecond)
		}
		s.say(r)
	}
}

// play is an iteration of a script.
type play struct {
	*script
	*shape
	plan   *external.Plan // nil: none
	needed map[graph.StorageID]graph.OpID
	steps  int
	most   graph.Bytes
}

// iteration runs the ops in their order, with what the plan has done between them. Storages go where the script lets
// them go, unless an op that is run again is to find them. It holds that what persists is what it is without a plan.
func (x *play) iteration() {
	x.needed = make(map[graph.StorageID]graph.OpID)
	var boundaries []external.Boundary
	if x.plan != nil {
		boundaries = x.plan.Boundaries
	}
	for _, b := range boundaries {
		for _, a := range b.Do {
			if a.Do != external.Again {
				x.needed[*a.Storage] = b.Before
				continue
			}
			for _, s := range x.Touches(*a.Op) {
				x.needed[s] = b.Before
			}
		}
	}
	last := x.LastTouches()
	for op := graph.OpID(0); ; op++ {
		for i, storage := range x.Storages {
			id := graph.StorageID(i)
			if gone := max(last[i]+1, storage.Until); !storage.Role.Persistent() && gone == op &&
				(x.needed[id] < gone || x.needed[id] == 0) {
				delete(x.device, id)
			}
		}
		if len(boundaries) > 0 && boundaries[0].Before == op {
			for _, a := range boundaries[0].Do {
				x.do(a)
			}
			boundaries = boundaries[1:]
		}
		if int(op) == len(x.Ops) {
			break
		}
		x.run(op, nil, false)
	}
	x.finish()
}

// run runs an op on what it finds on the device.
func (x *play) run(op graph.OpID, outputs []int, again bool) {
	value := uint64(op)*7919 + uint64(x.done)
	for _, r := range x.Reads(op) {
		v, ok := x.device[r.Storage]
		if !ok || v.version != r.Number {
			x.w.t.Fatalf("job %s: op %d reads version %d of %s, and there is %d, %v", x.job, op, r.Number,
				x.Storages[r.Storage].Name, v.version, ok)
		}
		value = mixed64(value, v.value)
	}
	for i, o := range x.Writes(op) {
		if len(outputs) == 0 || slices.Contains(outputs, i) {
			x.device[o.Storage] = holds{o.Number, mixed64(value, uint64(i))}
		}
	}
	takes := x.Scratch(op, again)
	for id := range x.device {
		takes += x.Storages[id].Bytes
	}
	x.most = max(x.most, takes)
	x.steps++
}

func mixed64(a, b uint64) uint64 {
	a = (a ^ b) * 0x9e3779b97f4a7c15
	return a ^ a>>29
}

func (x *play) do(a external.Action) {
	if a.Do == external.Again {
		x.run(*a.Op, a.Outputs, true)
		return
	}
	v, there := x.device[*a.Storage]
	copied, away := x.host[*a.Storage]
	switch {
	case a.Do == external.Out && there:
		x.host[*a.Storage] = v
	case a.Do == external.Drop && there:
		delete(x.device, *a.Storage)
	case a.Do == external.In && away && !there:
		x.device[*a.Storage] = copied
	default:
		x.w.t.Fatalf("job %s: %s of %s: on the device %v, on the host %v", x.job, a.Do, x.Storages[*a.Storage].Name,
			there, away)
	}
}

// finish compares what persists with a run without plans.
func (x *play) finish() {
	plain := maps.Clone(x.plain)
	for op := range x.Ops {
		value := uint64(op)*7919 + uint64(x.done)
		for _, r := range x.Reads(graph.OpID(op)) {
			value = mixed64(value, plain[r.Storage])
		}
		for i, o := range x.Writes(graph.OpID(op)) {
			plain[o.Storage] = mixed64(value, uint64(i))
		}
	}
	versions := x.LastVersions()
	for id := range x.plain {
		x.plain[id] = plain[id]
		for _, where := range []map[graph.StorageID]holds{x.device, x.host} {
			if v, ok := where[id]; ok && v.version == versions[id] {
				where[id] = holds{value: v.value}
			} else {
				delete(where, id)
			}
		}
		on, there := x.device[id]
		off, away := x.host[id]
		if !there && !away || there && on.value != plain[id] || away && off.value != plain[id] {
			x.w.t.Fatalf("job %s: %s ends iteration %d with %v on the device, %v on the host, want %d", x.job,
				x.Storages[id].Name, x.done, on, off, plain[id])
		}
	}
	for id := range x.device {
		if !x.Storages[id].Role.Persistent() {
			delete(x.device, id)
		}
	}
	for id := range x.host {
		if !x.Storages[id].Role.Persistent() {
			delete(x.host, id)
		}
	}
}

// submitScript submits a script, whose sidecar is started when it hears that the job is taken.
func (w *world) submitScript() {
	w.names++
	name := fmt.Sprint("job", w.names)
	g := external.Claim(graph.Bytes(2_000 + w.rng.IntN(8_000)))
	w.graphs[g.Digest()], w.recorded[g.Digest()] = g, make([]time.Duration, len(g.Ops))
	in := controller.Input{Submit: []controller.Submission{{Spec: wire.Spec{Name: name, Model: "train.py",
		Graph: g.Digest(), Priority: 1 + w.rng.IntN(3), Script: true}, Graph: g, At: w.clock,
		Latency: make([]time.Duration, len(g.Ops))}}}
	w.tenants.signs(&in)
	w.request(in, func(a wire.Answer) {
		if a.Error == "" {
			w.accepted[name] = true
			w.join(a.Jobs[0].Executor, name)
		}
	})
}

// join starts the sidecar of a script.
func (w *world) join(executor, job string) {
	p := w.process(w.own, executor, executor)
	p.job, p.device = job, scriptDevice{p.device}
	p.host = &guestHost{p: p}
	p.begin(agent.Process{Executor: executor, Life: p.life, Device: p.device.Identity(), Alone: time.Minute})
}

// outlived reports whether a script trains on when its sidecar has ended: what it has stays its own, and the lock that
// shows it. Then ended is called when it has.
func (p *process) outlived(ended func()) bool {
	h, ok := p.host.(*guestHost)
	if !ok || h.script == nil || h.script.over {
		return false
	}
	s, w := h.script, p.w
	s.sidecar, p.dead, w.hurt[s.job] = nil, true, true
	w.orphans = append(w.orphans, s)
	var on func()
	on = func() {
		if s.parked { // it goes on, as link.py does, with what nobody counts with any more: that is not checked
			s.parked, s.plan = false, nil
		}
		if s.turn(); !s.over {
			w.surely(on)
			return
		}
		w.orphans = slices.DeleteFunc(w.orphans, func(o *script) bool { return o == s })
		ended()
	}
	w.surely(on)
	return true
}
