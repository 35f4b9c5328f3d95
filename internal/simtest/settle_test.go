package simtest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"tensile/controller"
	"tensile/executor/agent"
	"tensile/wire"
)

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
// administrator forgets executors that were started by hand and never come back, and stops replicas that do not fit
// together, or for which there is work to find plans for one, and not for all, and jobs that wait for a larger budget
// of a device that is brought, or for the contexts of executors there: both stay as they are.
func (w *world) settle() {
	w.calmDown()
	if b := w.controller.Budget(); b > 0 {
		w.config.Budget = max(b, 40_000)
		w.step(controller.Input{Request: &wire.Request{Verb: wire.SetBudget, Budget: w.config.Budget}})
	}
	for i := range 50_000 {
		if i%100 == 0 {
			for _, r := range w.controller.Records() {
				if r.State == wire.JobParked || r.State == wire.JobParking {
					w.step(controller.Input{Request: &wire.Request{Verb: wire.Resume, Job: r.Spec.Name}})
				}
				noPlan := i > 1000 && strings.Contains(r.Reason, "no plan was found") // within so much work
				small := strings.HasPrefix(r.Reason, "waits for a larger budget")
				// of executors that were started by hand, and stay
				beside := strings.Contains(r.Reason, " contexts of ")
				if r.Spec.Replica.Of > 0 && (noPlan || small) || (small || beside) && r.On != "" && i > 1000 {
					w.step(controller.Input{Request: &wire.Request{Verb: wire.Stop, Job: r.Spec.Name}})
				}
				w.forget(r.Held, i > 0)
			}
			w.forgetContexts()
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
			if p := w.processes[name]; p != nil { // another may have killed it
				p.step(agent.Input{Tick: true})
			}
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
			"%s, held %v", r.Spec.Name, r.State, r.On, r.Reason, r.Incarnation, r.Executor, r.Park, r.Granted,
			r.Applied,
			r.Claim, r.Host, r.Held)
	}
	for _, d := range w.controller.Devices() {
		w.t.Logf("device %s: %s of %s used, %s of %s on the host, contexts of %s", cmp.Or(d.Name, "own"), d.Used,
			d.Budget, d.HostUsed, d.HostMemory, d.Context)
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

// forgetContexts has an administrator say that executors have ended that had no job, and may have their device open.
func (w *world) forgetContexts() {
	for _, of := range []map[string]string{w.ended, w.ghosts} {
		for _, life := range slices.Sorted(maps.Keys(of)) {
			if name := of[life]; w.siteOf(name).context() > 0 && !w.stillLives(name, false) {
				w.step(controller.Input{Request: &wire.Request{Verb: wire.Forget, Executor: name}})
			}
		}
	}
}

// forget has an administrator say that executors have ended that may have something. heard: everybody who lives is, so
// that one may be forgotten also where a process of its name goes on that is another one.
func (w *world) forget(held []wire.Holding, heard bool) {
	for _, h := range held {
		_, ended := w.ended[h.Life]
		_, ghost := w.ghosts[h.Life]
		if (ended || ghost && heard) && !w.stillLives(h.Executor, heard) {
			w.step(controller.Input{Request: &wire.Request{Verb: wire.Forget, Executor: h.Executor}})
		}
	}
}

// stillLives reports whether a process of a name lives. heard: those that the controller has heard of do not count,
// also if a leader before it has removed their orders when it was stopped.
func (w *world) stillLives(name string, heard bool) bool {
	_, ordered := w.orders[name]
	for _, p := range w.processes {
		if p.name == name && !(heard && (w.heard(p) || !ordered)) {
			return true
		}
	}
	return false
}
