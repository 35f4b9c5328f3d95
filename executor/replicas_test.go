package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/lease"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/executor/reduce"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/nettest"
	tasks "tensile/models/task"
	"tensile/plan/proof"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// mean is what a replica takes means by.
type mean = func(ctx context.Context, iteration int, name string, gradient []float32) error

// together is the slow, obvious way to take means over replicas in one process: all come, and the last one adds.
type together struct {
	mu       sync.Mutex
	come     sync.Cond
	replicas int
	given    map[string]map[int][]float32
	means    map[string][]float32
}

func newTogether(replicas int) *together {
	a := &together{replicas: replicas, given: map[string]map[int][]float32{}, means: map[string][]float32{}}
	a.come.L = &a.mu
	return a
}

func (a *together) mean(replica int) mean {
	return func(_ context.Context, iteration int, name string, gradient []float32) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		key := fmt.Sprint(iteration, " ", name)
		if a.given[key] == nil {
			a.given[key] = map[int][]float32{}
		}
		a.given[key][replica] = slices.Clone(gradient)
		if len(a.given[key]) == a.replicas {
			sum := slices.Clone(a.given[key][0])
			for r := 1; r < a.replicas; r++ {
				for i, v := range a.given[key][r] {
					sum[i] += v
				}
			}
			for i := range sum {
				sum[i] /= float32(a.replicas)
			}
			a.means[key] = sum
			a.come.Broadcast()
		}
		for a.means[key] == nil {
			a.come.Wait()
		}
		copy(gradient, a.means[key])
		return nil
	}
}

// outcomes are what replicas have learned.
type outcomes struct {
	losses  [][]float32
	weights []map[graph.StorageID][]float32
}

// replicas are the tasks of the replicas of a network in its small form.
func replicas(t *testing.T, model string, n int) []tasks.Task {
	t.Helper()
	g, err := nettest.Replicas(model, n)
	if err != nil {
		t.Fatal(err)
	}
	k, err := tasks.Open(nil, g, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	return tasks.Replicas([]tasks.Task{k})
}

// planned returns a program for each task: at a share of what the jobs need without a plan, or, at 0, without one.
func planned(t *testing.T, d device.Device, all []tasks.Task, percent int) []proof.Proven {
	t.Helper()
	r, err := planner.Describe(d, planner.Roofline(d.Facts())).FirstRequest(all)
	if err != nil {
		t.Fatal(err)
	}
	r.Policy = "none-live"
	p, err := planner.Plan(t.Context(), r)
	if err == nil && percent > 0 {
		r.Policy = "tensile"
		for _, j := range p.Jobs {
			r.Budget += j.Footprint.Peak * graph.Bytes(percent) / 100
		}
		p, err = planner.Plan(t.Context(), r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.Programs
}

// trainReplicas trains replicas on one device, each by its program and its way to take means. beside, unless it is nil,
// prepares the host.
func trainReplicas(t *testing.T, d device.Device, all []tasks.Task, programs []proof.Proven, iterations int,
	means func(replica int) mean, beside func(*executor.Host)) outcomes {
	t.Helper()
	o := outcomes{make([][]float32, len(all)), make([]map[graph.StorageID][]float32, len(all))}
	h := executor.NewHost(d, func(e executor.Event) {
		if e.Ended == nil {
			return
		}
		if e.Ended.Err != nil {
			t.Errorf("%s: %v", e.Job, e.Ended.Err)
		}
		r := slices.IndexFunc(all, func(k tasks.Task) bool { return k.Name == e.Job })
		if r < 0 {
			return
		}
		o.weights[r] = map[graph.StorageID][]float32{}
		for s, content := range e.Ended.Weights {
			o.weights[r][s] = slices.Clone(content)
		}
	})
	if beside != nil {
		beside(h)
	}
	for r, k := range all {
		k.Mean = means(r)
		h.Submit(executor.SpecOf(k, iterations, func(_ int, loss float32) { o.losses[r] = append(o.losses[r], loss) }),
			programs[r])
	}
	if err := run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return o
}

// connected returns a place in one line for each of some replicas.
func connected(t *testing.T, n int) []*reduce.Line {
	t.Helper()
	lines := make([]*reduce.Line, n)
	var before *wire.Meeting
	for r := range lines {
		line, meets, err := reduce.Open(netip.MustParseAddr("127.0.0.1"), reduce.Place{Number: r, Replicas: n})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(line.Close)
		if before != nil {
			line.Join(*before)
		}
		lines[r], before = line, meets
	}
	return lines
}

// Replicas train to the bits of means that are taken the obvious way, whatever the timing of their connections, also
// when each has a plan of its own, and when they share memory with jobs that wait for one another's. Their parameters
// stay equal; statistics of batch norm are each one's own.
func TestReplicas(t *testing.T) {
	const iterations = 3
	for _, test := range []struct {
		model string
		n     int
	}{{"lenet", 3}, {"resnet18", 2}} {
		t.Run(test.model, func(t *testing.T) {
			d := openEngine(t, cpu.Options{Page: smallPage})
			all := replicas(t, test.model, test.n)
			plain, tight := planned(t, d, all, 0), planned(t, d, all, 80)
			want := trainReplicas(t, d, all, plain, iterations, newTogether(test.n).mean, nil)
			for seed := range uint64(2) {
				programs := slices.Clone(tight)
				var beside func(*executor.Host)
				if seed > 0 {
					programs[0] = plain[0]
					beside = func(h *executor.Host) { besideReplicas(t, d, h, programs, iterations) }
				}
				lines := connected(t, test.n)
				got := trainReplicas(t, d, all, programs, iterations, func(r int) mean {
					random := rand.New(rand.NewPCG(seed, uint64(r)))
					return func(ctx context.Context, iteration int, name string, gradient []float32) error {
						for range random.IntN(500) {
							runtime.Gosched()
						}
						return lines[r].Mean(ctx, iteration, name, gradient)
					}
				}, beside)
				compareReplicas(t, all[0].Graph, got, want)
			}
		})
	}
}

// besideReplicas has a host share memory by gates: as little as will do for replicas, each with its arena for itself,
// and two jobs beside them. A replica asks for memory when it leaves Home, and then no more.
func besideReplicas(t *testing.T, d *cpu.Device, h *executor.Host, replicas []proof.Proven, iterations int) {
	capacity := 0
	for _, p := range replicas {
		capacity += int((p.Program().Arena + d.Page() - 1) / d.Page())
	}
	var plans []proof.Proven
	all := small(t)
	for _, k := range all {
		plans = append(plans, k.plan(d, "none-live", 0))
	}
	capacity += least(t, d.Page(), smallEvery, plans...)
	h.Share(executor.Sharing{Lease: &modest{t, lease.NewMachine(lease.Options{Still: -1})}, Every: smallEvery})
	h.Capacity(graph.Bytes(capacity)*d.Page(), 0)
	for i, k := range all {
		h.Submit(k.spec(iterations), plans[i])
	}
}

// modest is a lease that takes it for an error if a replica asks for a part of its memory.
type modest struct {
	t *testing.T
	*lease.Machine
}

func (m *modest) Step(in lease.Input) []lease.Output {
	replica := func(j lease.Job) bool { return strings.Contains(string(j), "@") }
	switch {
	case in.Join != nil && replica(in.Join.Job) && in.Join.Base < in.Join.Peak:
		m.t.Errorf("%s asks for %d of %d pages", in.Join.Job, in.Join.Base, in.Join.Peak)
	case in.Want != nil && replica(in.Want.Job):
		m.t.Errorf("%s asks for more", in.Want.Job)
	}
	return m.Machine.Step(in)
}

func compareReplicas(t *testing.T, g *graph.Graph, got, want outcomes) {
	t.Helper()
	statistics := false
	for r := range want.losses {
		if !slices.Equal(got.losses[r], want.losses[r]) {
			t.Errorf("replica %d: losses %v, want %v", r, got.losses[r], want.losses[r])
		}
		if r > 0 && slices.Equal(got.losses[r], got.losses[0]) {
			t.Errorf("replicas 0 and %d have the same losses %v: they learn from the same batches", r, got.losses[0])
		}
		for _, s := range g.Storages {
			if !s.Role.Persistent() {
				continue
			}
			if !slices.Equal(got.weights[r][s.ID], want.weights[r][s.ID]) {
				t.Errorf("replica %d: %s has other bits", r, s.Name)
			}
			same := slices.Equal(got.weights[r][s.ID], got.weights[0][s.ID])
			if s.Role == graph.Parameter && !same {
				t.Errorf("replicas 0 and %d differ in %s", r, s.Name)
			}
			statistics = statistics || !same
		}
	}
	normed := slices.ContainsFunc(g.Ops, func(op graph.Op) bool { return op.Kind == graph.BatchNormUpdate })
	if statistics != normed {
		t.Errorf("states that are no parameters differ: %v, want %v", statistics, normed)
	}
}

// A replica that has no mean ends with the reason, and so do the others.
func TestReplicaWithoutMean(t *testing.T) {
	const n = 2
	d := openCPU(t)
	all := replicas(t, "lenet", n)
	programs := planned(t, d, all, 0)
	broken := errors.New("no network")
	lines := connected(t, n)
	ended := make(map[string]error)
	h := executor.NewHost(d, func(e executor.Event) {
		if e.Ended != nil {
			ended[e.Job] = e.Ended.Err
		}
	})
	for r, k := range all {
		k.Mean = func(ctx context.Context, iteration int, name string, gradient []float32) error {
			if r == 1 && iteration == 2 {
				lines[r].Close()
				return broken
			}
			return lines[r].Mean(ctx, iteration, name, gradient)
		}
		h.Submit(executor.SpecOf(k, 100, func(int, float32) {}), programs[r])
	}
	if err := run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ended[all[1].Name]; !errors.Is(err, broken) {
		t.Errorf("%s ended with %v, want %v", all[1].Name, err, broken)
	}
	if err := ended[all[0].Name]; err == nil || !strings.Contains(err.Error(), "replica 0 of 2 cannot reduce ") {
		t.Errorf("%s ended with %v", all[0].Name, err)
	}
}

// A host can be closed while a replica waits for one that never comes. Without a way to others no replica is opened.
func TestReplicaAlone(t *testing.T) {
	d := openCPU(t)
	all := replicas(t, "lenet", 2)
	programs := planned(t, d, all, 0)
	ctx, cancel := context.WithCancel(t.Context())
	line, _, err := reduce.Open(netip.MustParseAddr("127.0.0.1"), reduce.Place{Number: 0, Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	waits := sync.OnceFunc(cancel)
	h := executor.NewHost(d, func(executor.Event) {})
	k := all[0]
	k.Mean = func(ctx context.Context, iteration int, name string, gradient []float32) error {
		waits()
		return line.Mean(ctx, iteration, name, gradient)
	}
	h.Submit(executor.SpecOf(k, 5, func(int, float32) {}), programs[0])
	if err := run(ctx, h); !errors.Is(err, context.Canceled) {
		t.Errorf("the host ends with %v, want %v", err, context.Canceled)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Open(k.Graph, device.JobOptions{Name: k.Name})
	if want := "its graph is of one of 2 replicas"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without the others: %v, want %q", err, want)
	}
}

// On a simulated device a replica takes as long as program.Time predicts, with all-reduces beside the kernels, and
// reports what was planned for these.
func TestReplicaSimulated(t *testing.T) {
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	d := sim.New(facts, sim.Options{})
	k := replicas(t, "resnet18", 4)[0]
	r, err := planner.Describe(d, planner.Roofline(facts)).FirstRequest([]tasks.Task{k})
	if err != nil {
		t.Fatal(err)
	}
	r.Policy = "none-live"
	p, err := planner.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var last *executor.Report
	h := executor.NewHost(d, func(e executor.Event) {
		if e.Report != nil {
			last = e.Report
		}
	})
	h.Submit(executor.SpecOf(k, 5, nil), p.Programs[0])
	if err := run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := last.End-last.Begin, p.Timing(0).Iteration; got != want {
		t.Errorf("an iteration takes %v, want %v", got, want)
	}
	if !slices.Equal(last.Steps, p.Jobs[0].Plan.Made) {
		t.Errorf("steps take %v, want %v", last.Steps, p.Jobs[0].Plan.Made)
	}
	if last.Stall <= 0 {
		t.Error("nothing waits for the network: the test shows nothing")
	}
}
