package simtest

import (
	"fmt"
	"math"
	"slices"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/wire"
	"tensile/wire/leader"
)

// candidate is the process of one of several controllers with one state. It stores what its machine wants one thing
// after the other, and may stand still, or die, before each.
type candidate struct {
	w       *world
	leader  *leader.Machine
	term    int64               // of which it writes; 0: of none
	machine *controller.Machine // nil: it stands by, or has not read yet what is stored
	inputs  []controller.Input  // not heard yet
	todo    []controller.Output // not carried out yet
	sent    bool                // the first of these has left it, whoever leads by now
	stands  bool                // it does nothing for now
}

// leadership is what several controllers share beside what a world has stored: the key, and the newest term that has
// written to each stream.
type leadership struct {
	w        *world
	all      []*candidate
	key      wire.Leadership
	revision uint64
	terms    map[string]int64
	ids      int
	newest   int64                    // term of a leader that has read what is stored
	ended    []controller.ExecutorEnd // processes, which each leader finds out

	begun, deposed, refused, torn int // terms, ends of terms, writes of leaders before, writers that died midway
}

// several has controllers stand by for one another.
func (w *world) several(n int) {
	w.leaders = &leadership{w: w, terms: map[string]int64{}}
	for range n {
		c := &candidate{w: w}
		w.leaders.all = append(w.leaders.all, c)
		c.start()
	}
	w.leaders.tick()
}

// leads reports whether one of the controllers takes requests.
func (l *leadership) leads() bool {
	return slices.ContainsFunc(l.all, func(c *candidate) bool { return c.machine != nil && c.certain() && !c.stands })
}

// start begins the process anew: what it had not stored is lost.
func (c *candidate) start() {
	l := c.w.leaders
	if len(c.todo) > 0 {
		l.torn++
	}
	l.ids++
	id := fmt.Sprint("controller", l.ids)
	*c = candidate{w: c.w, leader: leader.New(leader.Config{ID: id, Where: id, Lease: "lease"})}
}

// tick has every controller look whether it leads, or say that it does.
func (l *leadership) tick() {
	for _, c := range l.all {
		if !c.stands {
			c.lead(leader.Input{Tick: true})
			c.run()
		}
	}
}

// lead tells the machine that decides who leads something, and does what it wants. Requests and answers may be lost.
func (c *candidate) lead(in leader.Input) {
	l, w := c.w.leaders, c.w
	lost := func() bool { return !w.calm && w.rng.IntN(20) == 0 }
	for todo := []leader.Input{in}; len(todo) > 0; todo = todo[1:] {
		for _, o := range c.leader.Step(w.clock, todo[0]) {
			got := leader.Got{Err: wire.ErrAway}
			switch {
			case o.Lead != nil:
				c.begin(o.Lead.Term)
				continue
			case o.Lost != nil:
				c.stop()
				continue
			case lost():
			case o.Read && l.revision == 0:
				got = leader.Got{Err: wire.ErrNotFound}
			case o.Read:
				got = leader.Got{Holds: l.key, Revision: l.revision}
			case o.Set.Revision != l.revision:
				got = leader.Got{Err: wire.ErrConflict}
			default:
				l.revision++
				l.key = o.Set.Value
				got = leader.Got{Revision: l.revision}
			}
			if lost() {
				got = leader.Got{Err: wire.ErrAway}
			}
			todo = append(todo, leader.Input{Got: &got})
		}
	}
}

// begin has the controller lead: it takes the streams of what it reads, and some time later reads that.
func (c *candidate) begin(term int64) {
	l := c.w.leaders
	c.term = term
	for _, stream := range []string{"record", "orders", "device"} {
		if !c.may(stream) {
			c.lead(leader.Input{Deposed: true})
			return
		}
	}
	l.begun++
	c.w.surely(func() { c.read(term) })
}

// read has the controller begin a term with what is stored.
func (c *candidate) read(term int64) {
	l := c.w.leaders
	switch {
	case c.term != term || c.machine != nil:
		return
	case c.stands:
		c.w.surely(func() { c.read(term) })
		return
	}
	c.machine = c.w.restored()
	if term > l.newest { // else another leads by now, and this one does not know it yet
		l.newest, c.w.controller = term, c.machine
		clear(c.w.sidecars)            // it may give the name of one to that of another script
		for _, at := range c.w.sites { // what it counts with is what is stored
			at.taken, at.onHost = math.MaxInt64/2, math.MaxInt64/2
		}
	}
	c.do(c.machine.Resume(c.w.clock))
	for _, g := range l.ended {
		c.hear(controller.Input{Ended: &g})
	}
}

// stop ends the term: what was not stored by then is not.
func (c *candidate) stop() {
	if c.term > 0 {
		c.w.leaders.deposed++
	}
	c.term, c.machine, c.inputs, c.todo, c.sent = 0, nil, nil, nil, false
}

// certain reports whether the controller may ask for something, and answer.
func (c *candidate) certain() bool { return c.w.clock < c.leader.Until() }

// may has a stream take something of the controller's term, and reports whether it does.
func (c *candidate) may(stream string) bool {
	terms := c.w.leaders.terms
	if terms[stream] > c.term {
		c.w.leaders.refused++
		return false
	}
	terms[stream] = c.term
	return true
}

// hear tells the controller something, as soon as it has stored what came of all before.
func (c *candidate) hear(in controller.Input) {
	if c.machine != nil {
		c.inputs = append(c.inputs, in)
		c.run()
	}
}

// hear tells those that lead, or believe to, something. A request is answered by one that is certain to lead, or by
// nobody.
func (l *leadership) hear(in controller.Input) {
	if in.Ended != nil {
		l.ended = append(l.ended, *in.Ended)
	}
	if in.Tick != nil {
		l.tick()
	}
	l.one()
	for _, c := range l.all {
		if asks := in.Request != nil || in.Submit != nil; !asks || c.certain() && !c.stands {
			c.hear(in)
		}
	}
	l.w.check()
}

// one holds that no two are certain to lead at the same time.
func (l *leadership) one() {
	sure := slices.DeleteFunc(slices.Clone(l.all), func(c *candidate) bool { return !c.certain() })
	if len(sure) > 1 {
		l.w.t.Fatalf("at %v both the leaders of term %d and %d are certain to lead", l.w.clock, sure[0].term,
			sure[1].term)
	}
}

// planned gives the controller that has asked for plans what was made, if it leads still.
func (l *leadership) planned(m *controller.Machine, plan func() *plans.Result) {
	for _, c := range l.all {
		if c.machine == m && m != nil {
			c.hear(controller.Input{PlanResult: plan()})
		}
	}
	l.w.check()
}

// midway reports whether the newest leader has not told, or stored, all that it has decided, or died before it had:
// nobody knows yet who has joined.
func (l *leadership) midway() bool {
	return !slices.ContainsFunc(l.all, func(c *candidate) bool {
		return c.machine == l.w.controller && len(c.todo) == 0
	})
}

// run does what there is to do.
func (c *candidate) run() {
	for !c.stands && (len(c.todo) > 0 || len(c.inputs) > 0) && c.machine != nil {
		if len(c.todo) == 0 {
			in := c.inputs[0]
			c.inputs = c.inputs[1:]
			c.do(c.machine.Step(c.w.clock, in))
			continue
		}
		if !c.sent && !c.certain() && streamOf(&c.todo[0]) != "" {
			return // another may lead by now
		}
		if pick := c.w.rng.IntN(1000); !c.w.calm && pick == 0 {
			c.start()
			return
		} else if !c.w.calm && pick < 8 && !c.sent {
			c.stands, c.sent = true, pick < 7 && !removes(&c.todo[0])
			return
		}
		o := c.todo[0]
		c.sent = false
		if stream := streamOf(&o); stream != "" && !c.may(stream) {
			c.lead(leader.Input{Deposed: true})
			return
		}
		c.todo = c.todo[1:]
		c.w.do(o, c.machine)
	}
}

// do has outputs of the machine carried out.
func (c *candidate) do(outputs []controller.Output) {
	c.todo = append(c.todo, outputs...)
	c.run()
}

// streamOf is where an output is stored; "": nowhere.
func streamOf(o *controller.Output) string {
	switch {
	case o.Record != nil, o.Drop != nil && o.Drop.Job != "":
		return "record"
	case o.Orders != nil, o.Forget != "":
		return "orders"
	case o.Device != nil, o.Drop != nil && o.Drop.Device != "":
		return "device"
	case o.Graph != nil:
		return "graphs of " + o.Graph.Executor
	case o.Layout != nil:
		return "layouts of " + o.Layout.Executor
	case o.Drop != nil && o.Drop.Executor != "":
		return "layouts of " + o.Drop.Executor
	case o.Result != nil, o.Learnt != nil, o.Settings != nil, o.Tenants != nil, o.Drop != nil:
		return "others"
	}
	return ""
}

// removes reports whether an output asks for what no stream refuses: a leader looks before each.
func removes(o *controller.Output) bool { return o.Drop != nil || o.Forget != "" || o.Result != nil }

// change has a controller stand still or go on, die, or resign.
func (l *leadership) change() {
	c := l.all[l.w.rng.IntN(len(l.all))]
	for _, o := range l.all {
		if o.stands && o.term > 0 && o.term < l.newest { // it does not know yet that another leads
			o.goOn(true)
			return
		}
	}
	switch pick := l.w.rng.IntN(6); {
	case pick < 3:
		c.goOn(c.stands)
	case pick < 4:
		c.start()
	case pick < 5:
		for _, c := range l.all { // all of them
			c.start()
		}
	default:
		c.resign()
	}
}

// goOn has the controller stand still, or not any more.
func (c *candidate) goOn(on bool) {
	if c.stands = !on; on {
		c.run()
	}
}

// resign ends the process in peace: another leads at once.
func (c *candidate) resign() {
	if !c.stands {
		c.lead(leader.Input{Resign: true})
		c.start()
	}
}

// elect waits until one of the controllers leads, without mishaps.
func (l *leadership) elect() {
	for _, c := range l.all {
		c.goOn(true)
	}
	for range 100 {
		l.w.pass(1)
		for len(l.w.mail) > 0 {
			l.w.deliver()
		}
	}
	if !l.leads() {
		l.w.tell()
		l.w.t.Fatalf("nobody leads: the key has %+v, terms %v", l.key, l.terms)
	}
}

// kept holds that no job was lost of which somebody was told that it is taken.
func (w *world) kept() {
	for name := range w.accepted {
		if _, ok := w.records[name]; !ok {
			w.tell()
			w.t.Fatalf("job %s was taken, and nothing is known of it", name)
		}
	}
}
