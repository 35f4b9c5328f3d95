package executor_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/long"
	"tensile/models"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// varied returns networks with dropout, batch norm, Adam and momentum.
func varied(t *testing.T) []*task {
	t.Helper()
	all := []*task{newTask(t, "adam", "lenet", models.Config{Image: 16, Batch: 4}, 3)}
	if long.On() {
		all = append(all,
			newTask(t, "dropout", "alexnet", models.Config{Image: 67, Batch: 4, Thin: 16}, 4),
			newTask(t, "norm", "resnet:1,1,1,1", models.Config{Image: 32, Batch: 2, Thin: 8,
				Optimizer: autodiff.Momentum{}}, 6))
	}
	return all
}

// A job that begins with the state of another at a boundary goes on as that one would have, to the bit: its losses and
// its weights, under plans that keep everything, swap and recompute. Taking the state changes nothing of the job it is
// taken of.
func TestBeginFromSnapshot(t *testing.T) {
	t.Run("home", func(t *testing.T) {
		engines(t, func(t *testing.T, d *cpu.Device) { beginFromSnapshot(t, d, false) })
	})
	t.Run("aside", func(t *testing.T) {
		engines(t, func(t *testing.T, d *cpu.Device) { beginFromSnapshot(t, d, true) })
	})
}

func beginFromSnapshot(t *testing.T, d *cpu.Device, aside bool) {
	const iterations = 12
	for _, k := range varied(t) {
		k.aside = aside
		plain := k.vanilla(d, iterations)
		var swaps, recomputes bool
		for i, p := range k.demanding(d) {
			if has := len(p.Program().Snapshot.Commands) > 0; has != aside {
				t.Fatalf("job %s, plan %d has a snapshot section: %t", k.name, i, has)
			}
			swaps = swaps || len(p.Program().Plan.Moves) > len(k.inputs)+1
			recomputes = recomputes || len(p.Program().Plan.Steps) > len(k.g.Ops)
			watched := k.again()
			taken := watched.checkpointed(d, p, iterations)
			watched.same(plain)
			if len(taken) < 2 {
				t.Fatalf("job %s, plan %d: %d snapshots", k.name, i, len(taken))
			}
			if n := watched.transitions; aside != (n == 0) {
				t.Errorf("job %s, plan %d: %d ways through Home for %d snapshots", k.name, i, n, len(taken))
			}
			for _, s := range taken {
				k.resumed(d, p, s, iterations).continues(plain)
			}
		}
		if !swaps || !recomputes {
			t.Errorf("job %s: a plan swaps (%t), one recomputes (%t), want both", k.name, swaps, recomputes)
		}
	}
}

// demanding returns the plan that keeps everything, and tighter ones that swap and recompute.
func (k *task) demanding(d device.Device) []proof.Proven {
	k.t.Helper()
	live := k.plan(d, "none-live", 0)
	arena := live.Program().Arena
	all := []proof.Proven{k.plan(d, "none-all", 0), k.smallest(d, arena)}
	slow := k.again()
	slow.link = 50e6 // swaps take longer than what they would save
	return append(all, slow.plan(d, "tensile", arena*8/10))
}

// checkpointed trains the task and returns snapshots of it, one asked for after every third iteration.
func (k *task) checkpointed(d device.Device, p proof.Proven, iterations int) []*executor.Snapshot {
	k.t.Helper()
	w := &counted{Device: d, p: p.Program()}
	l := newHeard(w)
	defer closeHost(k.t, l.host)
	l.each = func(e executor.Event) {
		if r := e.Report; r != nil && r.Iteration%3 == 2 {
			l.host.Checkpoint(k.name, 0)
		}
	}
	l.host.Submit(k.spec(iterations), p)
	if err := run(k.t.Context(), l.host); err != nil {
		k.t.Fatal(err)
	}
	k.take(l.ends[k.name])
	k.transitions = w.prologues - 1
	for _, s := range l.snapshots {
		if s.Err != nil {
			k.t.Fatal(s.Err)
		}
	}
	return l.snapshots
}

// counted is a device of one job that counts the prologues.
type counted struct {
	device.Device
	p         *program.Program
	job       *countedJob
	prologues int
}

type countedJob struct {
	device.Job
	d *counted
}

func (d *counted) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	j, err := d.Device.Open(g, o)
	d.job = &countedJob{j, d}
	return d.job, err
}

func (d *counted) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	events, err := d.Device.Next(ctx, wake)
	for i := range events {
		events[i].Job = d.job
	}
	return events, err
}

func (j *countedJob) Issue(s *program.Section, from, to, iteration int, drain bool) {
	if s == &j.d.p.Prologue && from == 0 {
		j.d.prologues++
	}
	j.Job.Issue(s, from, to, iteration, drain)
}

// resumed trains the task from a snapshot on, which is given back before its first iteration has ended.
func (k *task) resumed(d device.Device, p proof.Proven, s *executor.Snapshot, iterations int) *task {
	k.t.Helper()
	j := k.again()
	j.begin, j.state = s.Iteration, map[string][]float32{}
	for id, content := range s.Contents {
		j.state[k.g.Storages[id].Name] = slices.Clone(content)
	}
	s.Release()
	s.Release() // a second time nothing happens
	h := newHost(d, nil)
	defer closeHost(k.t, h.Host)
	h.Submit(j.spec(iterations), p)
	if err := run(k.t.Context(), h.Host); err != nil {
		k.t.Fatal(err)
	}
	j.take(h.ended[k.name])
	if n := h.ended[k.name].Iterations; n != iterations {
		k.t.Errorf("job %s ended after %d iterations, want %d", k.name, n, iterations)
	}
	return j
}

// continues compares the losses from where the task began, and all weights, with those of a plain run.
func (k *task) continues(plain *task) {
	k.t.Helper()
	rest := *plain
	rest.losses = plain.losses[min(k.begin, len(plain.losses)):]
	k.same(&rest)
}

// A parked job rests in Home with nothing of the device until it is resumed, and goes on by the program that came
// meanwhile. Its state can be taken while it rests. It loses no bit.
func TestPark(t *testing.T) {
	engines(t, func(t *testing.T, d *cpu.Device) { park(t, d, true) })
	t.Run("sim", func(t *testing.T) { park(t, openSim(t), false) })
}

func park(t *testing.T, d device.Device, data bool) {
	k, other := named(t, "guest"), named(t, "other")
	one, two := k.epoch(d, 1), k.epoch(d, 2)
	w := watch(t, d, 0)
	l := newHeard(w)
	defer closeHost(t, l.host)
	do := map[string]func(){
		"guest iteration 2 of epoch 1": func() { l.host.Park("guest", 1, 0) },
		"guest parked": func() {
			for _, j := range w.jobs {
				if j.name == "guest" && j.arena != 0 {
					t.Errorf("parked with an arena of %s", j.arena)
				}
			}
			l.host.Checkpoint("guest", 0)
			l.host.Change("guest", two)
			l.host.Submit(other.spec(3), one)
		},
		"other ended after 3":          func() { l.host.Resume("guest"); l.host.Resume("guest") },
		"guest iteration 7 of epoch 2": func() { l.host.Park("guest", 1, 0); l.host.Stop("guest") },
		"guest removed":                func() { l.host.Checkpoint("guest", 0) },
	}
	maps.Copy(l.on, do)
	for n := range 20 {
		l.on[fmt.Sprintf("guest ended after %d", n)] = func() {
			k.take(l.ends["guest"])
			l.host.Checkpoint("guest", 0)
			l.host.Remove("guest")
		}
	}
	l.host.Submit(k.spec(100), one)
	if err := run(t.Context(), l.host); err != nil {
		t.Fatal(err)
	}
	rested, n := l.snapshots[0].Iteration, l.ends["guest"].Iterations
	l.check(t, "guest", n, "applied 1", "home", "parked", fmt.Sprintf("snapshot of %d", rested), "applied 2", "home",
		fmt.Sprintf("ended after %d", n), "no snapshot: job guest has ended", "removed",
		"no snapshot: there is no job guest")
	if !data {
		return
	}
	plain := k.vanilla(d, n)
	k.same(plain)
	k.resumed(d, one, l.snapshots[0], n).continues(plain)
}

// A job that is given a program and resumed at once goes on by that, and not for a moment by the one before, whose
// arena may be another's by then; nor after it was to change to one that is refused.
func TestResumeWithChange(t *testing.T) {
	d := openSim(t)
	k := named(t, "guest")
	l := newHeard(d)
	defer closeHost(t, l.host)
	stays := "refused: job guest stays parked: its newest program was refused"
	number := int64(0)
	l.on["guest iteration 2 of epoch 1"] = func() { l.host.Park("guest", 1, 0) }
	l.on["guest iteration 5 of epoch 2"] = func() { l.host.Park("guest", 2, 0) }
	l.on["guest parked"] = func() {
		if number++; number == 1 {
			l.host.Change("guest", k.epoch(d, 2))
		} else {
			l.host.Change("guest", proof.Proven{})
		}
		l.host.Resume("guest")
	}
	l.on["guest "+stays] = func() {
		l.host.Change("guest", k.epoch(d, 3))
		l.host.Resume("guest")
	}
	l.host.Submit(k.spec(12), k.epoch(d, 1))
	if err := run(t.Context(), l.host); err != nil {
		t.Fatal(err)
	}
	l.check(t, "guest", 12, "applied 1", "home", "parked", "applied 2", "home", "parked",
		"refused: job guest: its program was not proven", stays, "applied 3", "home", "ended after 12")
}

// The state of a job is taken in Home before it can fail there, since no arena is taken back of it.
func TestSnapshotOfFailed(t *testing.T) {
	d := openCPU(t)
	k := named(t, "bad")
	scarce := &scarce{Device: d, jobs: map[device.Job]*scarceJob{}}
	l := newHeard(scarce)
	defer closeHost(t, l.host)
	l.on["bad iteration 2 of epoch 1"] = func() {
		scarce.gone, scarce.stuck = "bad", true
		l.host.Checkpoint("bad", 0)
		l.host.Park("bad", 1, 0)
	}
	l.host.Submit(k.spec(100), k.epoch(d, 1))
	if err := run(t.Context(), l.host); err != nil {
		t.Fatal(err)
	}
	l.check(t, "bad", len(k.losses), "applied 1", fmt.Sprintf("snapshot of %d", len(k.losses)), "failed: full")
	plain := k.again().vanilla(d, len(k.losses))
	plain.equals(l.snapshots[0])
}

// A job of which no snapshot can be made, for want of memory, trains on.
func TestNoMemoryForSnapshot(t *testing.T) {
	d := openCPU(t)
	k := named(t, "bad")
	scarce := &scarce{Device: d, jobs: map[device.Job]*scarceJob{}}
	l := newHeard(scarce)
	defer closeHost(t, l.host)
	l.on["bad iteration 2 of epoch 1"] = func() { scarce.gone = "bad"; l.host.Checkpoint("bad", 0) }
	l.on["bad iteration 5 of epoch 1"] = func() {
		scarce.gone = ""
		l.host.Checkpoint("bad", 0)
		l.host.Checkpoint("bad", 0)
	}
	l.host.Submit(k.spec(10), k.epoch(d, 1))
	if err := run(t.Context(), l.host); err != nil {
		t.Fatal(err)
	}
	l.check(t, "bad", 10, "applied 1", "no snapshot: full", fmt.Sprintf("snapshot of %d", l.snapshots[0].Iteration),
		"home", "ended after 10")
	k.take(l.ends["bad"])
	k.same(k.vanilla(d, 10))
}

// What the contents of a snapshot are does not follow the job, also when that has been closed.
func TestSnapshotStays(t *testing.T) {
	d := openCPU(t)
	k := lenet(t)
	taken := k.checkpointed(d, k.epoch(d, 1), 8) // the host is closed
	first, last := taken[0], taken[len(taken)-1]
	if first.Iteration >= last.Iteration {
		t.Fatalf("snapshots of %d and %d iterations", first.Iteration, last.Iteration)
	}
	plain := k.again()
	plain.vanilla(d, first.Iteration).equals(first)
	plain.vanilla(d, last.Iteration).equals(last)
}

// equals compares a snapshot with the weights of a task.
func (k *task) equals(s *executor.Snapshot) {
	k.t.Helper()
	want := 0
	for _, storage := range k.g.Storages {
		if !storage.Role.Persistent() {
			continue
		}
		want++
		if !slices.Equal(s.Contents[storage.ID], k.weights[storage.Name]) {
			k.t.Errorf("the snapshot of %d iterations has another %s than a run of as many", s.Iteration, storage.Name)
		}
	}
	if len(s.Contents) != want {
		k.t.Errorf("the snapshot has %d storages, want %d", len(s.Contents), want)
	}
}
