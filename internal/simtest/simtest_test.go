package simtest

import (
	"errors"
	"flag"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/controller"
	"tensile/device"
	"tensile/device/sim"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/wire"

	_ "tensile/scheduler/rivals"
)

// errInterrupted is why a process is to end.
var errInterrupted = errors.New("interrupted")

var (
	first = flag.Uint64("first", 0, "the first seed that TestEverythingTogether tries")
	// A soak of one way: -long=2000 -sharing zico.
	sharing = flag.String("sharing", "", "how its jobs share memory, such as none or waterwave; without, by seed")
	mix     = flag.String("mix", "", "what is in its worlds beside jobs and executors of one device: any of devices, "+
		"controllers, scripts, tenants, replicas, separated by commas, or none; without, by seed")
)

// openSim opens a device that is slow enough for copies to matter to small graphs.
func openSim(seed uint64) func() device.Device { return openSlow(seed, 1) }

// openSlow opens a device that is slower by a factor.
func openSlow(seed uint64, times int) func() device.Device {
	rate, latency := 1e9/float64(times), time.Duration(times)*time.Microsecond
	link := cost.Link{Rate: cost.BytesPerSecond(rate / 5), Latency: latency}
	facts := cost.Facts{Name: "test", Compute: cost.FLOPsPerSecond(rate), Bandwidth: cost.BytesPerSecond(rate),
		ComputeShare: 0.5, BandwidthShare: 0.5, Launch: latency, Out: link, In: link}
	return func() device.Device {
		return sim.New(facts, sim.Options{Noise: 0.05, Seed: seed, Page: 64 << (seed % 5)})
	}
}

// chaos lets something happen.
func (w *world) chaos() {
	if w.tenants != nil && w.rng.IntN(60) == 0 {
		w.tenants.change()
		return
	}
	if len(w.sites) > 1 && w.rng.IntN(100) == 0 {
		w.devicesChange()
		return
	}
	if w.leaders != nil {
		switch pick := w.rng.IntN(300); {
		case pick < 2:
			w.leaders.change()
			return
		case pick < 5 || pick < 30 && !w.leaders.leads():
			w.pass(1)
			return
		}
	}
	names := slices.Sorted(maps.Keys(w.processes))
	some := func() *process { return w.processes[names[w.rng.IntN(len(names))]] }
	switch pick := w.rng.IntN(1000); {
	case pick < 8:
		if w.names < 6 && (w.leaders == nil || w.leaders.leads()) {
			if w.scripts && w.rng.IntN(2) == 0 {
				w.submitScript()
			} else {
				w.submit(1 + w.rng.IntN(40))
			}
		}
	case pick < 9:
		if w.names > 0 {
			w.stop()
		}
	case pick < 11:
		if w.names > 0 {
			w.ask()
		}
	case pick < 12:
		w.pass(1 + w.rng.IntN(8))
	case pick < 13:
		if len(names) > 0 {
			p := some()
			if p.cut = !p.cut; !p.cut {
				p.heal()
			} else if w.rng.IntN(3) == 0 {
				w.goOn(25) // so long that it is given up
			}
		}
	case pick < 14:
		if len(names) > 0 {
			some().step(agent.Input{Drain: errInterrupted})
		}
	case pick < 15:
		w.disk.damage()
	case pick < 18:
		if len(names) > 0 && w.rng.IntN(3) == 0 {
			some().end("killed")
		}
	case pick < 19 && w.config.MemorySharing != wire.NoSharing && len(names) > 0:
		p := some()
		if p.stands = !p.stands; !p.stands {
			p.heal()
		} else if p.cut = true; w.rng.IntN(4) == 0 {
			w.goOn(25)
		}
	case pick < 21 && w.leaders == nil:
		if w.rng.IntN(3) == 0 {
			w.config.Budget = graph.Bytes(3_000 + w.rng.IntN(40_000))
		}
		w.restart()
	case pick < 22:
		if len(names) == 0 {
			break
		}
		if p := w.processes[names[0]]; p.job == "" && w.processes[names[0]+"/2"] == nil {
			w.launch(p.site, p.name, names[0]+"/2")
		}
	case pick < 60 && len(names) > 0:
		some().step(agent.Input{Tick: true})
	case pick < 70 && len(names) > 0:
		online := w.rng.IntN(3) > 0
		some().step(agent.Input{Online: &online})
	case pick < 600 && len(names) > 0:
		some().work()
	case len(w.mail) > 0:
		w.deliver()
	}
}

// mixed reports whether something is in the world of a seed, which has it in one world of n.
func mixed(what string, seed, of uint64) bool {
	if *mix == "" {
		h := fnv.New64()
		h.Write([]byte(what))
		return rand.New(rand.NewPCG(seed, h.Sum64())).Uint64N(of) == 0
	}
	return slices.Contains(strings.Split(*mix, ","), what)
}

// drawn is how the jobs of a seed share memory.
func drawn(seed uint64) wire.Sharing {
	switch *sharing {
	case "":
		return []wire.Sharing{wire.NoSharing, wire.Gates, wire.NoSharing, wire.Slices, wire.Gates, wire.Zico,
			wire.Waterwave}[seed/3%7]
	case "none":
		return wire.NoSharing
	}
	return wire.ParseSharing(*sharing)
}

// Arrivals, departures, crashes of executors and controllers, restarts with other budgets, credentials that are used
// twice, lost, doubled and late messages: no job is lost, no budget exceeded at any moment, but by what jobs had before
// it was smaller, and every layout that is told to be used is there and proven.
func TestEverythingTogether(t *testing.T) {
	phases := make(map[wire.JobState]int)
	happened := make(map[controller.EventKind]int)
	var plans, drifts, refused, shrunk, seconds, resumed, missed int
	var gated, drained, killed, moved, played, gaveWay, cameBack int
	var terms leadership
	tooFew := func(format string, args ...any) {
		if *mix == "" && *sharing == "" {
			t.Errorf(format, args...)
		}
	}
	seeds, seed := long.Rounds(7, 90), *first
	defer func() {
		if seed < *first+seeds { // it has failed, or panics
			t.Logf("this seed again: go test ./internal/simtest -run EverythingTogether -long=1 -first %d", seed)
		}
	}()
	for ; seed < *first+seeds; seed++ {
		slow := 1
		if mixed("tenants", seed, 8) {
			slow = slowly
		}
		open, third := openSlow(seed, slow), openThird(seed, slow)
		replicas := mixed("replicas", seed, 4)
		if replicas {
			alone, thirdAlone := open, third
			open = func() device.Device { return keepStep(alone()) }
			third = func(i int) func() device.Device {
				return func() device.Device { return keepStep(thirdAlone(i)()) }
			}
		}
		w := newWorld(t, seed, seed%2 == 0, open)
		if replicas {
			w.lines = make(map[string]*line)
		}
		w.config.Budget = graph.Bytes(12_000 + 500*(seed%40))
		w.config.Watched, w.config.Preempt = seed%3 > 0, seed%4 > 1
		w.apart = seed%5 == 0
		if seed%7 > 0 {
			w.config.Options.Pack = "greedy" // the machines are tried, not packing, which takes most time
		}
		w.config.GiveUp, w.config.Turn = time.Minute, 2*time.Second
		if seed%4 == 3 {
			w.config.Aging = 5 * time.Second
		}
		if seed%3 == 1 {
			w.config.HostMemory = graph.Bytes(70+10*(seed%20)) * 4096
		}
		if seed%5 < 2 {
			w.config.Context = graph.Bytes(100 + 50*(seed%8))
		}
		if mixed("devices", seed, 5) {
			w.config.Turn, w.config.MovePause, w.config.Horizon = time.Millisecond, time.Nanosecond, 1e6
			w.addSites(1+int(seed%3), seed%4 > 0, 20_000, third)
		}
		if slow > 1 {
			w.letTenantsShare(slow)
		}
		w.share(drawn(seed))
		w.scripts = mixed("scripts", seed, 4) && !w.config.NoDevice
		if mixed("controllers", seed, 4) {
			w.several(2 + int(seed%5/4))
		} else {
			w.restart()
		}
		for range 3000 {
			w.chaos()
		}
		w.calmDown()
		if w.tenants != nil {
			w.tenants.getTheirShares()
		}
		w.settle()
		w.kept()
		for _, r := range w.controller.Records() {
			phases[r.State]++
			plans += r.PlansMade
			if !r.State.Over() || r.Claim > 0 {
				t.Fatalf("seed %d: job %s is %s (%s) with %s", seed, r.Spec.Name, r.State, r.Reason, r.Claim)
			}
			if r.State == wire.JobFailed && !w.legitimate(r) {
				w.tell()
				t.Fatalf("seed %d: job %s failed after %d of %d restarts: %s", seed, r.Spec.Name, r.Restarts,
					r.Spec.Restarts, r.Reason)
			}
			if r.State == wire.JobFinished && r.Iteration != r.Spec.Iterations && !r.Spec.Script {
				t.Fatalf("seed %d: job %s finished after %d of %d iterations", seed, r.Spec.Name, r.Iteration,
					r.Spec.Iterations)
			}
		}
		resumed += w.resumed
		if w.config.MemorySharing.Gated() {
			for _, r := range w.reports {
				if r.Gate > 0 {
					gated++
				}
			}
			for _, at := range w.sites {
				drained += at.lease.drained
			}
		}
		killed += w.killed
		moved, played = moved+w.moved, played+w.played
		if ts := w.tenants; ts != nil {
			gaveWay, cameBack = gaveWay+ts.gaveWay, cameBack+ts.cameBack
		}
		if l := w.leaders; l != nil {
			terms.begun, terms.deposed = terms.begun+l.begun, terms.deposed+l.deposed
			terms.refused, terms.torn = terms.refused+l.refused, terms.torn+l.torn
		}
		for _, e := range w.events {
			happened[e.Kind]++
			if e.Kind == controller.Adopted && strings.HasPrefix(e.Reason, "the latencies of") {
				drifts++
			}
			if e.Kind == controller.Shrinking {
				shrunk++
			}
			if strings.HasPrefix(e.Reason, "waits for an executor that has its checkpoint") {
				missed++
			}
		}
		seconds += w.refused
		for _, a := range w.answers {
			if a.Error != "" {
				refused++
			}
		}
	}
	t.Logf("%v, %d began with a checkpoint, %d waited for it, %v", phases, resumed, missed, happened)
	for kind, few := range map[controller.EventKind]uint64{controller.Restarted: 1, controller.Rested: 4,
		controller.OutOfReach: 4, controller.ExecutorReturned: 4, controller.Preempted: 400} {
		if happened[kind] < int(seeds/few) {
			tooFew("%s only %d times", kind, happened[kind])
		}
	}
	if resumed < int(seeds)/4 {
		tooFew("only %d jobs began with a checkpoint", resumed)
	}
	t.Logf("%d iterations waited at gates, %d times the lease wanted a job in Home, %d executors that did not answer "+
		"were killed", gated, drained, killed)
	if seeds >= 20 && (gated < int(seeds) || drained < int(seeds)/20 || killed < int(seeds)/20) {
		tooFew("%d iterations waited at gates, %d times the lease wanted a job in Home, %d executors were killed",
			gated, drained, killed)
	}
	t.Logf("%d times executors brought a device, %d times one was given up, %d jobs went from one to another, "+
		"%d moves were decided",
		happened[controller.Opened], happened[controller.Closed], moved, happened[controller.Migrating])
	if seeds >= 20 && (happened[controller.Closed] < int(seeds)/50 || moved < int(seeds)/20) {
		tooFew("%d devices went, %d jobs went to another", happened[controller.Closed], moved)
	}
	t.Logf("%d iterations of scripts followed plans", played)
	if seeds >= 20 && played < int(seeds)/4 {
		tooFew("%d iterations of scripts followed plans", played)
	}
	t.Logf("%d jobs gave way to another tenant, %d times one was to come back", gaveWay, cameBack)
	if seeds >= 20 && min(gaveWay, cameBack) < int(seeds)/20 {
		tooFew("%d jobs gave way to another tenant, %d times one was to come back", gaveWay, cameBack)
	}
	t.Logf("%d terms of leaders of several controllers, %d were deposed, %d writes of such were refused, %d died "+
		"between two writes", terms.begun, terms.deposed, terms.refused, terms.torn)
	if seeds >= 20 && min(terms.deposed, terms.refused, terms.torn) < int(seeds)/50 {
		tooFew("few leaders were deposed, refused a write or died between two")
	}
	t.Logf("%v, %d plans, %d of them for drift, %d refused, %d times jobs shrank for a smaller budget, %d second "+
		"processes refused",
		phases, plans, drifts, refused, shrunk, seconds)
	if shrunk < int(seeds)/10 || seconds < int(seeds)/10 {
		tooFew("jobs shrank %d times for a smaller budget, %d second processes were refused", shrunk, seconds)
	}
	for _, p := range []wire.JobState{wire.JobFinished, wire.JobStopped, wire.JobFailed} {
		if phases[p] < int(seeds)/6 {
			tooFew("only %d jobs %s", phases[p], p)
		}
	}
	if plans < 2*int(seeds) {
		tooFew("%d plans", plans)
	}
}

// legitimate reports whether a job had to fail: it never fits, went on as often as it may, or a replica of it, whose
// record may be the only one that a controller had stored when it was killed; takes no checkpoints and its executor was
// interrupted, or has its newest checkpoint where no executor comes back; or it is a replica of which
// nobody has heard that it is taken, and not all were stored; or it is a script that died, or whose sidecar did, could
// not be heard, or has left while its last words were lost.
func (w *world) legitimate(r wire.Record) bool {
	if r.Spec.Script {
		why := func(text string) bool { return strings.Contains(r.Reason, text) }
		return w.hurt[r.Spec.Name] || why("cannot run here") || why("is given up") || why("it has left") ||
			why(errInterrupted.Error())
	}
	restarts := r.Restarts
	for _, o := range w.controller.Records() {
		if of, _, ok := strings.Cut(r.Spec.Name, "@"); ok && strings.HasPrefix(o.Spec.Name, of+"@") {
			restarts = max(restarts, o.Restarts)
		}
	}
	return strings.Contains(r.Reason, "cannot run here") || restarts >= r.Spec.Restarts ||
		r.Spec.Checkpoint == wire.Interval{} && strings.Contains(r.Reason, errInterrupted.Error()) ||
		w.apart && strings.Contains(r.Reason, "no executor has its checkpoint") ||
		!w.accepted[r.Spec.Name] && strings.Contains(r.Reason, "the controller was killed when it had stored ")
}
