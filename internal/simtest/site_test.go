package simtest

import (
	"fmt"
	"maps"
	"slices"

	"tensile/controller"
	"tensile/controller/memory"
	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// site is a device and its host: what the executors there share.
type site struct {
	w         *world
	open      func() device.Device // for a new executor
	brings    *wire.Device         // by its executors; nil: it is the device of the controller's process
	described *planner.Device      // for plans; nil: not yet
	lease     *hostLease           // nil: jobs share no memory
	taken     graph.Bytes          // claims and contexts a moment ago, and those of executors that came since
	onHost    graph.Bytes          // what they claimed there
}

// on is the name of the device in records.
func (s *site) on() string {
	if s.brings == nil {
		return ""
	}
	return s.brings.Name
}

func (s *site) budget() graph.Bytes {
	if s.brings == nil {
		return s.w.controller.Budget()
	}
	return s.brings.Budget
}

func (s *site) hostMemory() graph.Bytes {
	if s.brings == nil {
		return s.w.config.HostMemory
	}
	return s.brings.HostMemory
}

func (s *site) context() graph.Bytes {
	if s.brings == nil {
		return s.w.config.Context
	}
	return s.brings.Context
}

// site is the device of a name in records.
func (w *world) site(on string) *site {
	return w.sites[slices.IndexFunc(w.sites, func(s *site) bool { return s.on() == on })]
}

// siteOf is the device of an executor.
func (w *world) siteOf(executor string) *site {
	if at := w.cameFrom[executor]; at != nil {
		return at
	}
	return w.own
}

// planner describes the device for plans.
func (s *site) planner() planner.Device {
	if s.described != nil {
		return *s.described
	}
	d := s.open()
	defer d.Close()
	facts := d.Facts()
	on := planner.Device{Identity: d.Identity(), Align: d.Align(), Out: facts.Out, In: facts.In,
		Sharing: facts.Sharing(), Profile: s.profile}
	if p, ok := d.(device.Pager); ok {
		on.Page = p.Page()
	}
	s.described = &on
	return on
}

func (s *site) profile(g *graph.Graph) (planner.Profile, error) {
	d := s.open()
	defer d.Close()
	facts := d.Facts()
	var p planner.Profile
	for op := range g.Ops {
		v := d.Variants(g, graph.OpID(op))[0]
		p.Latency = append(p.Latency, facts.Roofline(g.Cost(graph.OpID(op))))
		p.Variants = append(p.Variants, []scheduler.Variant{{Name: v.Name, Scratch: v.Scratch}})
		p.Signatures = append(p.Signatures, g.Signature(graph.OpID(op), v.Name))
	}
	return p, nil
}

// profiles are those of all graphs.
func (s *site) profiles() map[graph.Digest]*planner.Profile {
	all := make(map[graph.Digest]*planner.Profile)
	for digest, g := range s.w.graphs {
		if l, ok := s.w.recorded[digest]; ok {
			all[digest] = &planner.Profile{Latency: l}
			continue
		}
		p, err := s.profile(g)
		if err != nil {
			s.w.t.Fatal(err)
		}
		all[digest] = &p
	}
	return all
}

// addSites has executors bring so many devices of budgets around some bytes, some on one host; w.own is of the
// controller's process if that has one as well.
func (w *world) addSites(n int, own bool, around graph.Bytes, open func(i int) func() device.Device) {
	if w.config.NoDevice = !own; !own {
		w.sites = nil
	}
	for i := range n {
		s := &site{w: w, open: open(i)}
		on, d := s.planner(), s.open()
		budget := around/2 + graph.Bytes(w.rng.Int64N(int64(around)))
		if i == 2 {
			budget /= 8 // most jobs never fit there
		}
		name := fmt.Sprint("d", i)
		host := "d0"
		if w.rng.IntN(4) == 0 {
			host = name
		}
		s.brings = &wire.Device{Name: name, Model: d.Name(), Identity: on.Identity, Host: "host of " + host,
			Align: on.Align, Page: on.Page, Facts: d.Facts(),
			Budget:  budget,
			Context: graph.Bytes(w.rng.IntN(2) * 200)}
		d.Close()
		w.sites = append(w.sites, s)
	}
}

// openThird opens simulated devices of which every third is slower, and of another identity: what has begun on one of
// the others does not go on there.
func openThird(seed uint64, slow int) func(i int) func() device.Device {
	return func(i int) func() device.Device {
		if i%3 < 2 {
			return openSlow(seed, slow)
		}
		facts := openSlow(seed, slow)().Facts()
		facts.Name, facts.Compute, facts.Bandwidth = "slow", facts.Compute/2, facts.Bandwidth/2
		return func() device.Device {
			return sim.New(facts, sim.Options{Noise: 0.05, Seed: seed, Page: 64 << (seed % 5)})
		}
	}
}

// choose says on which devices a job may train. Those that are submitted together often name theirs.
func (w *world) choose(spec *wire.Spec, together bool) {
	pick := w.rng.IntN(8)
	if together && pick > 2 {
		pick = 0
	}
	switch pick {
	case 0:
		if at := w.sites[w.rng.IntN(len(w.sites))]; at.brings != nil {
			spec.Device = at.brings.Name
		}
	case 1, 2:
		spec.AnyDevice = true
	}
}

// bring starts an executor at a device, by hand: a new one, or one again that has ended there.
func (s *site) bring() {
	w := s.w
	for _, name := range slices.Sorted(maps.Keys(w.cameFrom)) {
		lives := slices.ContainsFunc(s.at(), func(key string) bool { return w.processes[key].name == name })
		if w.cameFrom[name] != s || lives || w.rng.IntN(2) == 0 {
			continue
		}
		var dead []string
		for _, life := range slices.Sorted(maps.Keys(w.ended)) {
			if w.ended[life] == name {
				dead = append(dead, life)
			}
		}
		w.launch(s, name, name, dead...)
		return
	}
	name := fmt.Sprint("hand", w.lives)
	w.cameFrom[name] = s
	w.launch(s, name, name)
}

// at are the processes that have the device open, by their keys.
func (s *site) at() (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(s.w.processes)) {
		if s.w.processes[key].site == s {
			keys = append(keys, key)
		}
	}
	return keys
}

// devicesChange has an executor bring its device, a host vanish with all that runs there, or a device be drained, or
// not any more.
func (w *world) devicesChange() {
	s := w.sites[w.rng.IntN(len(w.sites))]
	if s.brings == nil {
		return
	}
	switch pick := w.rng.IntN(8); {
	case pick < 4 && len(s.at()) < 2:
		s.bring()
	case pick < 5:
		for _, key := range s.at() {
			w.processes[key].end("its host is gone")
		}
	case pick < 8:
		w.drain(s, w.rng.IntN(2) == 0)
	}
}

func (w *world) drain(s *site, undo bool) {
	w.step(controller.Input{Request: &wire.Request{Verb: wire.Drain, Device: s.on(), Undo: undo}})
}

// reopen ends what is drained, and has an executor at every device that is brought.
func (w *world) reopen() {
	for _, s := range w.sites {
		if s.brings == nil {
			continue
		}
		if w.drain(s, true); len(s.at()) == 0 {
			s.bring()
		}
	}
}

// begins holds that a job gets an executor of the device that it is planned for, and none on one that is drained. What
// a leader that is deposed stores for executors they never learn of.
func (w *world) begins(d *controller.Delivery, m *controller.Machine) {
	if d.Executor == "" || m != w.controller {
		return
	}
	records := m.Records()
	at := w.siteOf(d.Executor)
	r := records[slices.IndexFunc(records, func(r wire.Record) bool { return r.Spec.Name == d.Job })]
	if w.devices[at.on()].Drained || r.On != at.on() {
		w.tell()
		w.t.Fatalf("job %s, planned for on device %q, begins at executor %s of device %q, drained: %v", d.Job, r.On,
			d.Executor, at.on(), w.devices[at.on()].Drained)
	}
	if before, ran := w.ranOn[d.Job]; ran && before != at {
		w.moved++
	}
	w.ranOn[d.Job] = at
}

// together is what jobs claim of the device by their records, and whether some cannot be reached, which count whole.
func (s *site) together(records []wire.Record) (claims graph.Bytes, unknown bool) {
	var sum memory.Sum
	for i := range records {
		if r := &records[i]; r.On == s.on() {
			sum = sum.Add(memory.ClaimOf(r))
			unknown = unknown || r.State == wire.JobUnknown
		}
		for _, h := range records[i].Held {
			if h.On == s.on() {
				sum = sum.Add(memory.Claim{Base: h.Bytes, Arena: h.Bytes})
				unknown = true
			}
		}
	}
	return sum.Bytes(), unknown
}

// contexts is what the controller counts of the device beside claims.
func (s *site) contexts(claims graph.Bytes) graph.Bytes {
	if s.brings == nil {
		return s.w.controller.Contexts().Sum()
	}
	for _, d := range s.w.controller.Devices() {
		if d.Name == s.on() {
			if d.Used < claims {
				s.w.tell()
				s.w.t.Fatalf("device %s has %s used, and jobs claim %s of it", d.Name, d.Used, claims)
			}
			return d.Used - claims
		}
	}
	return 0
}

// check holds that what jobs have of the device, and what they may have, is within its budget, or was granted before
// that was made smaller. The budget of a device that is brought stays as it is.
func (s *site) check() {
	w := s.w
	w.t.Helper()
	var arenas graph.Bytes
	for _, p := range w.processes {
		if h, ok := p.host.(*guestHost); p.site != s {
			continue
		} else if ok && h.script != nil {
			arenas += h.script.takes()
			continue
		}
		for _, a := range p.arenas {
			arenas += a
		}
	}
	for _, o := range w.orphans {
		if s == w.own {
			arenas += o.takes()
		}
	}
	records := w.controller.Records()
	for _, r := range records {
		if r.Spec.Script && s == w.own && r.Executor != "" && !w.sidecars[r.Executor] {
			w.sidecars[r.Executor] = true
			s.taken += s.context() // nobody asks whether there is room for its sidecar
		}
	}
	claims, unknown := s.together(records)
	others, _ := s.together(slices.DeleteFunc(records, func(r wire.Record) bool { return r.Spec.Script }))
	taken := claims + s.contexts(claims)
	others += taken - claims
	if s.lease != nil {
		if arenas = 0; unknown {
			s.taken = max(s.taken, others)
		}
	}
	// A script for which there is no plan may take more than there is: then nobody else takes more.
	budget := s.budget()
	if budget > 0 && (arenas > max(budget, claims) || taken > budget && others > s.taken ||
		s.brings != nil && arenas > budget) {
		w.tell()
		w.t.Fatalf("on device %q arenas of %s, claims of %s, with contexts %s; those of all but scripts %s and %s a "+
			"moment ago, the budget is %s", s.on(), arenas, claims, taken, others, s.taken, budget)
	}
	if arenas > claims {
		w.tell()
		w.t.Fatalf("on device %q jobs have %s and claim %s", s.on(), arenas, claims)
	}
	s.taken = others
}
