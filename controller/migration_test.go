package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tensile/controller/fleet"
	"tensile/controller/queue"
	"tensile/plan/program"
	"tensile/wire"
)

// movers is a lab whose executors do at once what they are told.
type movers struct {
	*lab
	said  map[string]int64 // number of each executor's newest status
	moves []Event
	sums  []float64 // of weighted slowdowns, when each of these moves was decided
}

// step tells the machine something, has all plans made that it wants, and executors follow their orders.
func (l *movers) step(in Input) {
	l.now += time.Millisecond
	for _, o := range l.machine.Step(l.now, in) {
		switch {
		case o.PlanRequest != nil:
			defer l.step(Input{PlanResult: l.plan(o.PlanRequest)})
		case o.Orders != nil:
			defer l.obey(o.Orders)
		case o.Event != nil && o.Event.Kind == Migrating && o.Event.Detail == "":
			l.moves, l.sums = append(l.moves, *o.Event), append(l.sums, l.sum())
		}
	}
}

// obey has an executor say that it does what it was told.
func (l *movers) obey(o *wire.Orders) {
	if o.Number < l.machine.executors[o.Executor].Orders.Number {
		return // it has heard newer ones
	}
	l.said[o.Executor]++
	s := &wire.Status{Executor: o.Executor, Life: o.Executor,
		Device: l.machine.domainByRecord(o.Executor).config.Device,
		Host:   "lab", Folder: "shared", Number: 1 + l.said[o.Executor], Orders: o.Number,
		Brings: l.machine.domainByRecord(o.Executor).registered}
	for _, a := range o.Jobs {
		j := l.machine.findJob(a.Spec.Name)
		js := wire.JobStatus{Name: a.Spec.Name, ID: a.Spec.ID, Incarnation: a.Incarnation, State: wire.Running,
			Epoch: a.Epoch, Iteration: j.record.Iteration}
		switch {
		case a.Stop:
			js.State = wire.Stopped
		case a.Park == wire.OnDisk:
			js.State = wire.Suspended
			js.Checkpoint = &wire.Checkpoint{Iteration: js.Iteration, File: "file", Host: "lab", Folder: "shared"}
		case a.Epoch == 0:
			js.State = wire.Waiting
		}
		s.Jobs = append(s.Jobs, js)
	}
	l.step(Input{Status: s})
}

// sum is the sum of weighted slowdowns of all jobs at devices.
func (l *movers) sum() (sum float64) {
	for _, j := range l.machine.jobs {
		if !j.isActive() {
			continue
		}
		sum += l.weight(j, nil) * j.plannedSlowdown() * float64(j.timeAlone()) / float64(j.fastestAlone())
	}
	return sum
}

// settle lets turns pass until no job moves any more, and holds that each move has lowered the sum.
func (l *movers) settle(what string) {
	l.t.Helper()
	first := len(l.moves)
	for was := -1; was < len(l.moves); {
		was = len(l.moves)
		if was-first > 2*len(l.machine.jobs) {
			l.t.Fatalf("%s: %d moves, the last is %v", what, was-first, l.moves[was-1])
		}
		for range 3 {
			l.now += time.Minute
			l.step(Input{Tick: &Tick{}})
		}
	}
	for i, sum := range append(l.sums[first:], l.sum())[min(1, len(l.sums)-first):] {
		if at := first + i; at < len(l.moves) {
			if e := l.moves[at]; sum >= l.sums[at] || e.Gain <= e.Transition {
				l.t.Errorf("%s: %v: the sum of slowdowns is %v and was %v", what, e, sum, l.sums[at])
			}
		}
	}
	for _, j := range l.machine.jobs {
		if s := j.record.State; s != wire.JobRunning && s != wire.JobQueued && !s.Over() ||
			s == wire.JobRunning && !j.domain.hasExecutor(j.record.Executor) {
			l.t.Fatalf("%s: job %s is %s on %q (%s)", what, j.record.Spec.Name, s, j.domain.recordName(),
				j.record.Reason)
		}
	}
}

// Jobs come and go on three devices, which are drained and come back. Each move lowers the sum of weighted slowdowns
// and gains more than it costs, there are no more than two for each job until something changes again, and no job is
// lost by one.
func TestMovesPay(t *testing.T) {
	var moves int
	for seed := range uint64(6) {
		l := &movers{lab: newLab(t, seed, 3), said: make(map[string]int64)}
		l.machine.config.Horizon = 1e5 // iterations take less than a millisecond
		for _, d := range l.machine.domains {
			d.config.Horizon, d.config.Budget = 1e5, 2500
		}
		for i := range 14 {
			what := fmt.Sprintf("seed %d, step %d", seed, i)
			running := slices.DeleteFunc(slices.Clone(l.machine.jobs), func(j *job) bool {
				return j.record.State.Over()
			})
			switch pick := l.rng.IntN(6); {
			case pick < 3 && len(running) > 3 || len(running) > 6:
				j := running[l.rng.IntN(len(running))]
				l.step(Input{Request: &wire.Request{Verb: wire.Stop, Job: j.record.Spec.Name}})
			case pick == 3 && i > 5:
				l.step(Input{Request: &wire.Request{Verb: wire.Drain, Device: fmt.Sprint("d", l.rng.IntN(3)),
					Undo: l.rng.IntN(3) > 0}})
			default:
				g := l.graphs[l.rng.IntN(len(l.graphs))]
				l.step(Input{By: []string{"ada", "bob"}[l.rng.IntN(2)], Submit: []Submission{{Graph: g,
					Spec: wire.Spec{Name: fmt.Sprint("job", i), Graph: g.Digest(), Iterations: 1e6,
						Priority: 1 + l.rng.IntN(3), AnyDevice: l.rng.IntN(2) == 0,
						Checkpoint: wire.Interval{Iterations: 100}}}}})
			}
			l.settle(what)
		}
		moves += len(l.moves)
		for _, e := range l.moves {
			t.Logf("seed %d: %v", seed, e)
		}
	}
	if moves < 5 {
		t.Errorf("only %d moves", moves)
	}
}

// A job moves to devices whose executors share its executor's folder of checkpoints, on whatever host, and to no other.
func TestMovesKeepToFolders(t *testing.T) {
	l := &movers{lab: newLab(t, 2, 4), said: make(map[string]int64)}
	g := l.graphs[0]
	l.step(Input{Submit: []Submission{{Graph: g, Spec: wire.Spec{Name: "one", Graph: g.Digest(), Iterations: 1e6,
		Priority: 1, AnyDevice: true, Checkpoint: wire.Interval{Iterations: 100}}}}})
	j := l.machine.findJob("one")
	if j == nil || j.record.State != wire.JobRunning {
		t.Fatal("it does not train")
	}
	hosts := make(map[string]bool)
	for _, d := range l.machine.domains {
		if d == j.domain {
			continue
		}
		hosts[d.registered.Host] = true
		x := l.machine.executors[d.config.Name]
		for folder, want := range map[string]bool{"shared": true, "another": false, "": false} {
			if x.Folder = folder; d.canTakeOver(j) != want {
				t.Errorf("folder %q on %s: the device serves: %v, want %v", folder, d.registered.Host, !want, want)
			}
		}
		x.Folder = "shared"
	}
	if len(hosts) != 2 {
		t.Errorf("tried on hosts %v, want two", hosts)
	}
	// Of unknown folders none is shared.
	for _, x := range l.machine.executors {
		x.Folder = ""
	}
	for _, d := range l.machine.domains {
		if d != j.domain && d.canTakeOver(j) {
			t.Errorf("%s takes a job although it is not known which folder either has", d.recordName())
		}
	}
}

// What keeps a job where it is, and a device from being the target of one.
func TestMovesAreKept(t *testing.T) {
	l := &movers{lab: newLab(t, 2, 2), said: make(map[string]int64)}
	g := l.graphs[0]
	l.step(Input{Submit: []Submission{{Graph: g, Spec: wire.Spec{Name: "one", Graph: g.Digest(), Iterations: 1e6,
		Priority: 1, AnyDevice: true, Checkpoint: wire.Interval{Iterations: 100}}}}})
	m := l.machine
	j := m.findJob("one")
	if j == nil || j.record.State != wire.JobRunning {
		t.Fatal("it does not train")
	}
	to := m.domains[0]
	if to == j.domain {
		to = m.domains[1]
	}
	x := m.executors[to.config.Name]
	m.now = j.trainingSince + j.domain.config.Turn
	for what, change := range map[string]func(){
		"nothing":                        func() {},
		"it trains for less than a turn": func() { m.now-- },
		"another plan is on its way":     func() { j.record.Epoch++ },
		"no iterations are left":         func() { j.record.Iteration = j.record.Spec.Iterations },
		"it asked for its device":        func() { j.record.Spec.Device = j.domain.config.Name },
		"it takes no checkpoints":        func() { j.record.Spec.Checkpoint = wire.Interval{} },
		"its checkpoint failed":          func() { j.pinned = true },
		"it could not begin there":       func() { j.failedAt = []string{x.Name} },
		"the executor leaves":            func() { x.State = fleet.Leaving },
		"the executor is silent":         func() { x.State = fleet.Silent },
		"the executor is gone":           func() { x.State = fleet.Gone },
		"the target is drained":          func() { to.registered.Drained = true },
		"the target is planned for":      func() { to.request = new(openRequest) },
		"a job is tried there":           func() { to.inSearch = true },
	} {
		now, job, executor, domain, brought := m.now, *j, *x, *to, *to.registered
		change()
		if got, want := m.canMigrateNow(j, to), what == "nothing"; got != want {
			t.Errorf("%s: the job may move: %v, want %v", what, got, want)
		}
		m.now, *j, *x, *to, *domain.registered = now, job, executor, domain, brought
	}
}

// A job that goes on from a checkpoint is tried where that is found, and on others only if it is known of none.
func TestAllowedFindCheckpoints(t *testing.T) {
	l := newLab(t, 2, 4)
	j := &job{record: wire.Record{State: wire.JobQueued, Spec: wire.Spec{Name: "one", AnyDevice: true},
		Checkpoint: &wire.Checkpoint{Iteration: 1, Host: "h1", Folder: "mine"}}}
	allowed := func(want ...string) {
		t.Helper()
		var got []string
		for _, d := range l.machine.allowedDevices(j) {
			got = append(got, d.config.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	allowed("d0", "d1", "d2", "d3")
	l.machine.executors["d2"].Folder = "mine"
	allowed("d2")
	l.machine.executors["d0"].Folder = "mine"
	allowed("d0", "d2")
	l.machine.executors["d2"].State = fleet.Silent
	allowed("d0")
	l.machine.executors["d0"].Folder = "shared"
	allowed("d0", "d1", "d3")
	j.record.Checkpoint.Folder = ""
	l.machine.executors["d3"].Folder = ""
	allowed("d0", "d1", "d3")
	j.record.Checkpoint.Folder, j.failedAt = "shared", []string{"d1"}
	allowed("d0")
}

// What a checkpoint takes is what the newest has taken, before there is one what its bytes take at CheckpointRate.
func TestCheckpointsTake(t *testing.T) {
	l := newLab(t, 2, 1)
	j := &job{graph: l.graphs[0]}
	_, bytes := program.SnapshotSlots(j.graph)
	want := time.Duration(float64(bytes) / CheckpointRate * float64(time.Second))
	for _, c := range []*wire.Checkpoint{nil, {}} {
		if j.record.Checkpoint = c; j.checkpointTime() != want {
			t.Errorf("with %+v got %v, want %v", c, j.checkpointTime(), want)
		}
	}
	if j.record.Checkpoint.Took = time.Minute; j.checkpointTime() != time.Minute {
		t.Errorf("got %v, want a minute", j.checkpointTime())
	}
}

// A job does not move to a device on which it would be held for what another tenant is owed there; and where that is so
// when it has left its own, it waits for any.
func TestMovesKeepToDebts(t *testing.T) {
	l := &movers{lab: newLab(t, 2, 3), said: make(map[string]int64)}
	g := l.graphs[0]
	l.step(Input{By: "bob", Submit: []Submission{{Graph: g, Spec: wire.Spec{Name: "one", Graph: g.Digest(),
		Iterations: 1e6, Priority: 1, AnyDevice: true, Checkpoint: wire.Interval{Iterations: 100}}}}})
	j := l.machine.findJob("one")
	if j == nil || j.record.State != wire.JobRunning {
		t.Fatal("it does not train")
	}
	for _, d := range l.machine.domains {
		if d == j.domain {
			continue
		}
		for _, owed := range []bool{false, true} {
			d.ledger.Accounts = map[string]*queue.Account{"ada": {Debt: 2 * time.Minute, InRepayment: owed}}
			if d.canTakeOver(j) == owed {
				t.Errorf("ada is owed something on %s: %v, and it takes bob's job: %v", d.recordName(), owed, !owed)
			}
		}
		d.ledger.Accounts = nil
	}
	from, to := j.domain, l.machine.domains[0]
	if to == from {
		to = l.machine.domains[1]
	}
	l.machine.vacateDevice(j)
	j.record.Target = to.recordName()
	to.ledger.Accounts = map[string]*queue.Account{"ada": {Debt: 2 * time.Minute, InRepayment: true}}
	l.machine.detachJob(j)
	l.machine.recordParked(j)
	if j.record.State != wire.JobQueued || j.deviceChosen || j.domain == to || j.record.Preempted ||
		j.record.Target != "" {
		t.Errorf("job one is %s on %s (%s)", j.record.State, j.domain.recordName(), j.record.Reason)
	}
}
