package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/device/lease"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/wire"
)

// tenants are the users of a world, who have shares that change. What they get of devices is counted in time, so the
// world's clock goes on with its devices, which are slow: an iteration takes about a second.
type tenants struct {
	w      *world
	names  []string          // "" is an administrator
	stored *wire.Tenants     // nil: nobody has ever been given a share
	owners map[string]string // who has submitted a job, by its name
	gave   map[string]bool   // jobs that gave way to another tenant

	there map[string]map[string]bool // whose jobs trained at the last tick, by device

	gaveWay, cameBack int // jobs
}

const (
	slowly     = 100_000 // times as long as in other worlds all takes
	tenantTurn = 10 * time.Second
	mostBehind = 10 * tenantTurn // more is forgotten
)

// letTenantsShare has users of the world, whose devices are slower by a factor, get shares.
func (w *world) letTenantsShare(slow int) {
	w.config.Turn, w.slow = tenantTurn, time.Duration(slow)
	w.tenants = &tenants{w: w, names: []string{"", "ada", "bob", "cyd"}, owners: map[string]string{},
		gave: map[string]bool{}}
}

// some is one of the tenants.
func (ts *tenants) some() string { return ts.names[ts.w.rng.IntN(len(ts.names))] }

// signs says who submits a job; the message says that it is somebody else.
func (ts *tenants) signs(in *controller.Input) {
	if ts == nil {
		return
	}
	in.By = ts.some()
	for i := range in.Submit {
		in.Submit[i].Spec.Owner = ts.some()
		ts.owners[in.Submit[i].Spec.Name] = in.By
	}
}

// change has time pass, a tenant get another share or none any more, or somebody touch what may not be his.
func (ts *tenants) change() {
	w := ts.w
	switch pick := w.rng.IntN(24); {
	case pick < 2:
		ts.give(ts.names[1+w.rng.IntN(3)], w.rng.IntN(5))
	case pick < 3:
		by := ts.some()
		w.request(controller.Input{By: by, Request: &wire.Request{Verb: wire.SetShare, Tenant: "ada", Share: 1}},
			func(a wire.Answer) {
				if by != "" && a.Error == "" {
					w.t.Fatalf("%s, who is no administrator, has given a share", by)
				}
			})
	case pick < 4 && w.names > 0:
		ts.touch(ts.some(), fmt.Sprint("job", 1+w.rng.IntN(w.names)))
	default:
		w.pass(1)
		ts.check()
	}
}

// touch has somebody change the priority of a job.
func (ts *tenants) touch(by, job string) {
	w := ts.w
	w.request(controller.Input{By: by, Request: &wire.Request{Verb: wire.SetWeight, Job: job,
		Priority: 1 + w.rng.IntN(5)}}, func(a wire.Answer) {
		for _, r := range a.Jobs { // all replicas of a name
			if owner := ts.owners[r.Spec.Name]; by != "" && by != owner && a.Error == "" {
				w.t.Fatalf("%s has changed job %s of %q", by, r.Spec.Name, owner)
			}
		}
	})
}

// give gives a tenant a share; 0: it has none any more.
func (ts *tenants) give(name string, share int) {
	ts.w.step(controller.Input{Request: &wire.Request{Verb: wire.SetShare, Tenant: name, Share: share}})
}

// behind is what each tenant is owed by the device that owes it most.
func behind(m *controller.Machine) map[string]time.Duration {
	owed := make(map[string]time.Duration)
	for _, t := range m.Tenants() {
		owed[t.Name] = t.Behind
	}
	return owed
}

// check holds that accounts stay within their bounds, and that jobs belong to those who have submitted them.
func (ts *tenants) check() {
	w := ts.w
	w.t.Helper()
	for name, owed := range behind(w.controller) {
		if owed < -tenantTurn || owed > mostBehind {
			w.tell()
			w.t.Fatalf("tenant %q is owed %v, turns take %v", name, owed, tenantTurn)
		}
	}
	for _, r := range w.controller.Records() {
		if owner := ts.owners[r.Spec.Name]; r.Spec.Owner != owner {
			w.t.Fatalf("job %s was submitted by %q, and belongs to %q", r.Spec.Name, owner, r.Spec.Owner)
		}
	}
}

// owedOn is what a device owed each tenant when that was stored last, which was less than a turn ago.
func (ts *tenants) owedOn(on string) map[string]time.Duration {
	owed := make(map[string]time.Duration)
	for _, d := range ts.stored.Debts {
		if d.Device == on {
			owed[d.Tenant] = d.Debt
		}
	}
	return owed
}

// giveWay holds that jobs give way to another tenant that is owed something, or to their own. Where there are several
// devices what that of the job owes counts, which is known to a part of a turn.
func (ts *tenants) giveWay(e *controller.Event, m *controller.Machine) {
	owed := behind(m)
	of, to := ts.owners[e.Job], ts.owners[e.Reason]
	untied := e.Detail == "" && ts.w.config.HostMemory > 0 // they wait for each other's memory, whoever's they are
	if len(m.Tenants()) == 0 || untied || e.Detail == controller.ReasonParked || e.Detail == "" && of == to {
		return
	}
	more := owed[of] >= owed[to]
	if len(ts.w.sites) > 1 {
		on := ts.owedOn(ts.w.records[e.Job].On)
		more = on[of] >= on[to]+tenantTurn
	}
	ts.gave[e.Job] = true
	if ts.gaveWay++; of == to || owed[to] <= 0 || more {
		ts.w.tell()
		ts.w.t.Fatalf("job %s of %q gives way to %s of %q (%s); owed is %v", e.Job, of, e.Reason, to, e.Detail, owed)
	}
}

// enter holds that of the jobs that gave way to another tenant no two of one tenant come back at once, unless they are
// replicas of one job, and where there
// is one device, which has one account for each tenant, none as long as others are owed something.
func (ts *tenants) enter(p *plans.Request, m *controller.Machine) {
	w := ts.w
	if len(m.Tenants()) == 0 {
		return
	}
	on := ""
	if p.Device != nil {
		on = p.Device.Name
	}
	records := make(map[string]*wire.Record)
	for _, r := range m.Records() {
		records[r.Spec.Name] = &r
	}
	owed, back := behind(m), make(map[string]string)
	for _, c := range p.Jobs[p.Admitted:] {
		name := c.Spec.Name
		of := ts.owners[name]
		if r := records[name]; r == nil || !r.Preempted || !ts.gave[name] { // or it has left a device that is drained
			continue
		}
		together := func(a, b string) bool { // they are replicas of one job
			a, _, replica := strings.Cut(a, "@")
			b, _, _ = strings.Cut(b, "@")
			return replica && a == b
		}
		if ts.cameBack++; back[of] != "" && !together(back[of], name) && ts.other(of, on, m) {
			w.tell()
			w.t.Fatalf("jobs %s and %s of %q, which gave way, are to come back together", back[of], name, of)
		}
		back[of] = name
		for other, debt := range owed {
			helped := p.Admitted > 0 // where nothing trains those may come for whom others wait in vain
			if len(w.sites) == 1 && debt > 0 && owed[of] <= 0 && other != of && helped {
				w.tell()
				w.t.Fatalf("job %s of %q, which gave way, is to come back while %q is owed %v; owed is %v", name, of,
					other, debt, owed)
			}
		}
	}
}

// training are the tenants of jobs that train now, by their devices.
func training(m *controller.Machine) map[string]map[string]bool {
	of := make(map[string]map[string]bool)
	for _, r := range m.Records() {
		if r.State != wire.JobRunning {
			continue
		}
		if of[r.On] == nil {
			of[r.On] = make(map[string]bool)
		}
		of[r.On][r.Spec.Owner] = true
	}
	return of
}

// other reports whether another tenant has wanted a device since the last tick at least.
func (ts *tenants) other(than, on string, m *controller.Machine) bool {
	for name := range training(m)[on] {
		if name != than && ts.there[on][name] && ts.w.leaders == nil {
			return true
		}
	}
	return false
}

// alone is how long the iteration of a report takes alone.
func (ts *tenants) alone(at *site, r *wire.Report) (sum time.Duration) {
	p, err := at.profile(ts.w.graphs[ts.w.records[r.Job].Spec.Graph])
	if err != nil {
		ts.w.t.Fatal(err)
	}
	for _, took := range p.Latency {
		sum += took
	}
	return sum
}

// live are the tenants of jobs that are not over, of some jobs; nil: of all.
func (ts *tenants) live(of map[string]bool) map[string]bool {
	names := make(map[string]bool)
	for _, r := range ts.w.controller.Records() {
		if !r.State.Over() && (of == nil || of[r.Spec.Name]) && !strings.HasPrefix(r.Reason,
			"waits for a larger budget") {
			names[r.Spec.Owner] = true
		}
	}
	return names
}

// getTheirShares has two or three tenants want a device for a while in which nothing goes wrong, with jobs that do not
// end, and holds that each gets its share of what the device does, but for a few turns.
func (ts *tenants) getTheirShares() {
	const window, forgiven = 30 * tenantTurn, 6 * tenantTurn
	w := ts.w
	at := w.sites[0]
	if at.brings == nil {
		w.config.Budget = graph.Bytes(5_000 + w.rng.IntN(9_000))
		w.step(controller.Input{Request: &wire.Request{Verb: wire.SetBudget, Budget: w.config.Budget}})
	}
	for _, name := range ts.names[1:] {
		ts.give(name, 0)
	}
	shares := make(map[string]int)
	endless := make(map[string]bool)
	for _, name := range ts.names[1 : 3+w.rng.IntN(2)] {
		shares[name] = 1 + w.rng.IntN(3)
		ts.give(name, shares[name])
		for range 1 + w.rng.IntN(2) {
			g := w.graphsOf(1)[0]
			w.names++
			w.graphs[g.Digest()] = g
			spec := wire.Spec{Name: fmt.Sprint("job", w.names), Model: "random", Graph: g.Digest(), Device: at.name(),
				Iterations: 1 << 20, Restarts: 100, Priority: 1 + w.rng.IntN(3),
				Checkpoint: wire.Interval{Iterations: 50}}
			ts.owners[spec.Name], endless[spec.Name] = name, true
			w.step(controller.Input{By: name, Submit: []controller.Submission{{Spec: spec, Graph: g}}})
		}
	}
	w.goOnFor(10 * tenantTurn) // what is left of the mishaps is found out
	wants := ts.live(endless)
	due, got := make(map[string]time.Duration), make(map[string]time.Duration)
	all, before := time.Duration(0), len(w.events)
	for begin := w.clock; w.clock < begin+window; {
		const step = 2 * tenantTurn // over which the product estimates what a device does
		sum, did, from := 0, time.Duration(0), len(w.reports)
		for name := range ts.live(nil) {
			sum += max(1, shares[name])
		}
		w.goOnFor(step)
		for i := range w.reports[from:] {
			if r := &w.reports[from+i]; w.records[r.Job].On == at.on() { // of what came before, too
				alone := ts.alone(at, r)
				got[ts.owners[r.Job]] += alone
				did += alone
			}
		}
		all += did
		for name := range wants {
			due[name] += min(step, did) * time.Duration(shares[name]) / time.Duration(sum)
		}
	}
	live := ts.live(endless)
	maps.DeleteFunc(wants, func(name string, _ bool) bool { return !live[name] })
	for _, e := range w.events[before:] { // plans are found now and then, within the simulation's work of planning
		if strings.HasPrefix(e.Reason, "waits for a larger budget") {
			delete(wants, ts.owners[e.Job])
		}
	}
	if len(wants) > 0 && all == 0 {
		w.tell()
		w.t.Fatalf("device %q has done nothing in %v, and tenants %v want it", at.on(), window, wants)
	}
	for name := range wants {
		if got[name] < due[name]-forgiven {
			w.tell()
			w.t.Fatalf("tenant %s, of shares %v, is due %v in %v, and got %v; all got %v", name, shares, due[name],
				window, got[name], got)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(endless)) {
		w.step(controller.Input{Request: &wire.Request{Verb: wire.Stop, Job: name}})
	}
}

// name is what people call the device.
func (s *site) name() string {
	if s.brings == nil {
		return s.w.config.Name
	}
	return s.brings.Name
}

// goOnFor lets so much time pass in which all devices go on, everybody is heard, and those that have ended are
// forgotten.
func (w *world) goOnFor(long time.Duration) {
	w.reopen()
	begin := w.clock
	for until := begin + long; w.clock < until; {
		for _, r := range w.controller.Records() {
			w.forget(r.Held, w.clock > begin)
		}
		w.forgetContexts()
		w.goThrough(tenantTurn / 10)
	}
}

// goThrough lets so much time pass in which all devices go on and everybody is heard.
func (w *world) goThrough(long time.Duration) {
	until := w.clock + long
	w.step(controller.Input{Tick: &controller.Tick{}})
	for _, at := range w.sites {
		if at.lease != nil {
			at.lease.step(lease.Input{})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.processes)) {
		if p := w.processes[name]; p != nil { // another may have killed it
			p.step(agent.Input{Tick: true})
		}
	}
	for idle := 0; idle < 3; idle++ { // a host may only have been woken
		for len(w.mail) > 0 {
			w.deliver()
		}
		for _, name := range slices.Sorted(maps.Keys(w.processes)) {
			p := w.processes[name]
			if p == nil {
				continue
			}
			if before := p.opened + p.device.Now(); before < until {
				if p.work(); p.opened+p.device.Now() > before || len(w.mail) > 0 {
					idle = 0
				}
			}
		}
	}
	w.clock = max(w.clock, until)
}
