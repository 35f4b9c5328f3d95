package simtest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// plan has plans made, which come when they come, unless the controller has died meanwhile.
func (w *world) plan(p *plans.Request, m *controller.Machine) {
	c, at := w.config, w.own
	if p.Device != nil {
		c, at = c.ForDevice(p.Device), w.site(p.Device.Name)
	}
	w.surely(func() {
		planner := plans.Worker{Device: c.SharedDevice(at.planner()), Settings: c.PlanSettings()}
		switch {
		case w.leaders != nil:
			w.leaders.planned(m, func() *plans.Result { return planner.Plan(w.t.Context(), p) })
		case w.controller == m:
			w.step(controller.Input{PlanResult: planner.Plan(w.t.Context(), p)})
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
		name := wire.LayoutObject(o.Layout.Job, o.Layout.ID, l.Plan.Epoch)
		w.layouts[inBucket(o.Layout.Executor, name)] = &l
	case o.Result != nil:
		w.collect(o.Result)
	case o.Learnt != nil:
		l := again(w.t, o.Learnt.Wire)
		w.learnt = &l
	case o.Settings != nil:
		set := again(w.t, *o.Settings)
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
		if name := inBucket(o.Drop.Executor, o.Drop.Object); w.layouts[name] != nil {
			delete(w.layouts, name)
			w.dropped[name] = true
		}
	case o.Forget != "":
		delete(w.orders, o.Forget)
	case o.Launch != "":
		key := o.Launch
		for w.processes[key] != nil { // a leader before has launched it, and died before it had stored that
			key += "/2"
		}
		w.launch(w.own, o.Launch, key)
	case o.Kill != "":
		if p := w.processes[o.Kill]; p != nil {
			w.killed++
			p.end("it does not answer")
		}
	case o.PlanRequest != nil:
		if w.tenants != nil {
			w.tenants.enter(o.PlanRequest, m)
		}
		w.plan(o.PlanRequest, m)
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

// inBucket names an object of an executor's bucket: those of two may have one name.
func inBucket(executor, object string) string { return wire.Bucket(executor) + "/" + object }

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
		r = *c.FromReports
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
			if l := w.layouts[inBucket(r.Executor, wire.LayoutObject(name, r.Spec.ID, epoch))]; l != nil {
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
	m := controller.Restore(c, s)
	for _, r := range m.Records() {
		if strings.HasPrefix(r.Reason, "is held: ") {
			w.t.Fatalf("job %s %s", r.Spec.Name, r.Reason)
		}
	}
	return m
}
