package simtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/executor/agent"
	"tensile/executor/reduce"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
	"tensile/models/nettest"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// line is a replica's place among its siblings: what reduce.Line is, without connections and goroutines.
type line struct {
	lines      map[string]*line // of all replicas, by key
	number, of int
	key        string             // by which the next replica finds it
	below      string             // that of the one before it; "": it is not known, or there is none
	come       map[reduction]bool // what it has come to
	closed     bool
	err        error // why it has no means any more
}

// reduction is an all-reduce of an iteration.
type reduction struct {
	iteration int
	op        graph.OpID
}

// siblings are the lines of all replicas, as far as they have found each other.
func (l *line) siblings() []*line {
	list := []*line{l}
	for at := l; at.number > 0 && l.lines[at.below] != nil; {
		at = l.lines[at.below]
		list = append(list, at)
	}
	for at := l; at != nil && at.number < l.of-1; {
		var next *line
		for _, key := range slices.Sorted(maps.Keys(l.lines)) {
			if o := l.lines[key]; o.number == at.number+1 && o.below == at.key {
				next = o
			}
		}
		if at = next; at != nil {
			list = append(list, at)
		}
	}
	return list
}

// over reports whether the wait for the others has ended: all have come, or one that has not has gone, which err says.
func (l *line) over(r reduction) bool {
	list := l.siblings()
	gone := slices.IndexFunc(list, func(o *line) bool { return !o.come[r] && (o.closed || o.err != nil) })
	switch {
	case l.err != nil:
		return true
	case gone >= 0:
		l.err = &reduce.LostError{Replica: list[gone].number, Err: errors.New("it has gone")}
		return true
	}
	return len(list) == l.of && !slices.ContainsFunc(list, func(o *line) bool { return !o.come[r] })
}

// mean is what the replica's task takes means by, when over has said that they are there, or will never be.
func (l *line) mean(context.Context, int, string, []float32) error { return l.err }

// steps is a device whose replicas wait in each all-reduce for the others: neither that nor what the job does later is
// told before.
type steps struct {
	*sim.Device
	lines func(job string) *line
	jobs  map[device.Job]*stepsJob // by the jobs of the device itself
	held  []device.Event
}

type stepsJob struct {
	device.PagedJob
	device *steps
	line   *line
	mean   func(context.Context, int, string, []float32)
}

// Close implements device.Job.
func (j *stepsJob) Close() error {
	j.device.held = slices.DeleteFunc(j.device.held, func(e device.Event) bool { return e.Job == device.Job(j) })
	return j.PagedJob.Close()
}

func keepStep(d device.Device) *steps {
	return &steps{Device: d.(*sim.Device), jobs: make(map[device.Job]*stepsJob)}
}

func (d *steps) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	inner, err := d.Device.Open(g, o)
	if err != nil {
		return nil, err
	}
	j := &stepsJob{PagedJob: inner.(device.PagedJob), device: d, mean: o.Mean}
	if o.Mean != nil {
		j.line = d.lines(o.Name)
	}
	d.jobs[inner] = j
	return j, nil
}

// Next implements device.Device.
func (d *steps) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	if ready := d.release(nil); len(ready) > 0 {
		return ready, nil
	}
	if _, more := d.NextTime(); !more && len(d.held) > 0 {
		return nil, nil // it waits for others
	}
	events, err := d.Device.Next(ctx, wake)
	return d.release(events), err
}

// release returns the events that may be told, of those that were held and of new ones.
func (d *steps) release(events []device.Event) (ready []device.Event) {
	for i := range events {
		events[i].Job = d.jobs[events[i].Job]
	}
	waits := make(map[device.Job]bool)
	var held []device.Event
	for _, e := range append(d.held, events...) {
		j := e.Job.(*stepsJob)
		if c := &e.Section.Commands[e.Index]; j.line != nil && c.Kind == program.Reduce && !waits[e.Job] {
			r := reduction{e.Iteration, c.Op}
			if j.line.come[r] = true; !j.line.over(r) {
				waits[e.Job] = true
			} else {
				j.mean(context.Background(), e.Iteration, "", nil)
			}
		}
		if waits[e.Job] {
			held = append(held, e)
		} else {
			ready = append(ready, e)
		}
	}
	d.held = held
	return ready
}

// inStep is the device beneath one that counts pages, if it keeps replicas in step.
func inStep(d device.Device) *steps {
	if counts, ok := d.(*pages); ok {
		d = counts.Pager
	}
	s, _ := d.(*steps)
	return s
}

// meet has a replica found by the next one.
func (p *process) meet(m *agent.Meet) {
	w := p.w
	r := m.Spec.Replica
	l := &line{lines: w.lines, number: r.Number, of: r.Of, key: fmt.Sprintf("key of line %06d", len(w.lines)),
		come: make(map[reduction]bool)}
	w.lines[l.key], p.lines[m.Spec.Name] = l, l
	met := &agent.Met{Ticket: m.Ticket}
	if r.Number < r.Of-1 {
		met.Meeting = &wire.Meeting{Address: "127.0.0.1:1", Key: l.key, Certificate: strings.Repeat("0", 64)}
	}
	w.surely(func() { p.alive(agent.Input{Met: met}) })
}

// part closes the connections of a replica, if it has any.
func (p *process) part(job string) {
	if l := p.lines[job]; l != nil {
		l.closed = true
		delete(p.lines, job)
	}
}

// replicated is a small network of two or three replicas.
func (w *world) replicated() *graph.Graph {
	g, err := models.Build("mlp", models.Config{Image: 8, Batch: 2 + w.rng.IntN(3), Thin: 512})
	if err == nil {
		g, err = autodiff.Replicate(g, 2+w.rng.IntN(2))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// replicate is the spec of a job, or those of its replicas.
func (w *world) replicate(spec wire.Spec, g *graph.Graph) []wire.Spec {
	of := g.Replicas()
	if of < 2 {
		return []wire.Spec{spec}
	}
	all := make([]wire.Spec, of)
	for n := range all {
		all[n] = spec
		all[n].Name, all[n].Replica = fmt.Sprintf("%s@%d", spec.Name, n), wire.Replica{Number: n, Of: of}
	}
	return all
}

// checkSiblings holds that replicas have memory all or none, while they are to train, and rest after as many
// iterations.
func (w *world) checkSiblings() {
	w.t.Helper()
	groups := make(map[int64][]wire.Record)
	for _, r := range w.controller.Records() {
		if group := r.Spec.Replica.Group; r.Spec.Replica.Of > 0 && group > 0 {
			groups[group] = append(groups[group], r)
		}
	}
	for _, g := range groups {
		first := g[0]
		for _, r := range g {
			begins := r.State == wire.JobStarting || r.State == wire.JobRunning
			if begins && (first.State == wire.JobStarting || first.State == wire.JobRunning) &&
				(r.Claim > 0) != (first.Claim > 0) {
				w.tell()
				w.t.Fatalf("replicas %s and %s are to train and claim %s and %s", first.Spec.Name, r.Spec.Name,
					first.Claim, r.Claim)
			}
			if r.State == wire.JobParked && first.State == wire.JobParked && r.Iteration != first.Iteration {
				w.tell()
				w.t.Fatalf("replicas %s and %s are parked after %d and %d iterations", first.Spec.Name, r.Spec.Name,
					first.Iteration, r.Iteration)
			}
		}
	}
}

// Replicas on devices of their own, whose hosts go on in any order, are never more than an iteration apart and all
// end. Where one of them goes, the others end with an error that names it, and none trains on.
func TestReplicasKeepStep(t *testing.T) {
	const replicas, iterations = 3, 8
	g, err := nettest.Replicas("mlp", replicas)
	if err != nil {
		t.Fatal(err)
	}
	k, err := task.Open(nil, g, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 23))
		goes := seed%2 == 1 // replica 1, after two iterations
		lines := make(map[string]*line)
		done, ended := make([]int, replicas), make([]error, replicas)
		var hosts []*executor.Host
		for n := range replicas {
			d := keepStep(openSim(seed)())
			l := &line{lines: lines, number: n, of: replicas, key: fmt.Sprint("key", n), come: map[reduction]bool{}}
			if n > 0 {
				l.below = lines[fmt.Sprint("key", n-1)].key
			}
			lines[l.key] = l
			d.lines = func(string) *line { return l }
			k := k
			k.Name, k.Mean = fmt.Sprint("job@", n), l.mean
			r, err := planner.Describe(d, planner.Roofline(d.Facts())).FirstRequest([]task.Task{k})
			if err != nil {
				t.Fatal(err)
			}
			r.Policy = "none-live"
			p, err := planner.Plan(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			h := executor.NewHost(d, func(e executor.Event) {
				switch {
				case e.Report != nil:
					done[n] = e.Report.Iteration + 1
				case e.Ended != nil:
					ended[n] = cmp.Or(e.Ended.Err, errors.New("it has finished"))
				}
			})
			h.Submit(executor.SpecOf(k, iterations, nil), p.Programs[0])
			hosts = append(hosts, h)
		}
		for slices.Contains(ended, nil) {
			n := rng.IntN(replicas)
			if goes && n == 1 && done[1] >= 2 {
				lines["key1"].closed, ended[1] = true, errors.New("it has gone")
				continue
			}
			if _, err := hosts[n].Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if slices.Max(done)-slices.Min(done) > 1 {
				t.Fatalf("seed %d: replicas have done %v iterations", seed, done)
			}
		}
		for n, err := range ended {
			lost, ok := errors.AsType[*reduce.LostError](err)
			if goes && n != 1 && (!ok || lost.Replica != 1 && n == 2) || !goes && done[n] != iterations {
				t.Errorf("seed %d: replica %d has done %v and ends: %v", seed, n, done, err)
			}
		}
	}
}
