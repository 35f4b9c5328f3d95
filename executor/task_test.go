package executor_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"tensile/data"
	"tensile/data/weights"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/policies"
)

// task is a network to train, and what training it brought forth.
type task struct {
	t      testing.TB
	name   string
	g      *graph.Graph
	seed   uint64
	inputs []graph.StorageID // images and labels
	set    *data.Dataset

	aside       bool                 // its programs have a snapshot section
	link        cost.BytesPerSecond  // that its plans are made for; 0: an a6000's
	begin       int                  // complete iterations it starts with
	state       map[string][]float32 // what these came to; nil: the first weights
	transitions int                  // ways through Home in between
	losses      []float32            // from begin on; written by the job's host lane
	reports     []*executor.Report
	weights     map[string][]float32
}

func newTask(t testing.TB, name, model string, c models.Config, seed uint64) *task {
	t.Helper()
	g, err := models.Build(model, c)
	if err != nil {
		t.Fatal(err)
	}
	k := &task{t: t, name: name, g: g, seed: seed}
	for _, s := range g.Storages {
		if s.Role == graph.Input {
			k.inputs = append(k.inputs, s.ID)
		}
	}
	images := g.Tensors[slices.IndexFunc(g.Tensors, func(x graph.Tensor) bool {
		return x.Storage == k.inputs[0]
	})].Shape
	k.set = data.Synthetic(images[1], images[2], images[3], 10, seed)
	return k
}

// again is the task before it was trained.
func (k *task) again() *task {
	return &task{t: k.t, name: k.name, g: k.g, seed: k.seed, inputs: k.inputs, set: k.set, aside: k.aside}
}

func (k *task) spec(iterations int) executor.Spec {
	images := make([]float32, k.g.Storages[k.inputs[0]].Bytes/graph.ElementBytes)
	labels := make([]float32, k.g.Storages[k.inputs[1]].Bytes/graph.ElementBytes)
	return executor.Spec{Graph: k.g, Begin: k.begin, Iterations: iterations,
		Init: func(s graph.Storage, to []float32) {
			if k.state == nil {
				weights.Initialise(s, k.seed, to)
			} else if copy(to, k.state[s.Name]) != len(to) {
				k.t.Errorf("job %s: the snapshot has %d elements of %s", k.name, len(k.state[s.Name]), s.Name)
			}
		},
		JobOptions: device.JobOptions{Name: k.name, Seed: k.seed, Input: func(iteration int, s graph.StorageID,
			to device.Memory) {
			k.set.Fill(iteration, images, labels)
			copy(to.Float32(), map[graph.StorageID][]float32{k.inputs[0]: images, k.inputs[1]: labels}[s])
		},
			Output: func(iteration int, _ graph.StorageID, from []float32) {
				if iteration != k.begin+len(k.losses) {
					k.t.Errorf("job %s: the loss of iteration %d came, want that of %d", k.name, iteration,
						k.begin+len(k.losses))
				}
				k.losses = append(k.losses, from[0])
			},
		}}
}

// take keeps what a job came to, before it is removed.
func (k *task) take(e *executor.Ended) {
	k.t.Helper()
	if e == nil || e.Err != nil {
		k.t.Fatalf("job %s has ended as %+v", k.name, e)
	}
	k.weights = map[string][]float32{}
	for s, content := range e.Weights {
		k.weights[k.g.Storages[s].Name] = slices.Clone(content)
	}
}

// host is a Host that a test lets go on, and what was heard of its jobs.
type host struct {
	*executor.Host
	ended   map[string]*executor.Ended
	refused []error // commands
}

func newHost(d device.Device, each func(*executor.Report)) *host {
	h := &host{ended: map[string]*executor.Ended{}}
	h.Host = executor.NewHost(d, func(e executor.Event) {
		switch {
		case e.Report != nil && each != nil:
			each(e.Report)
		case e.Ended != nil:
			h.ended[e.Job] = e.Ended
		case e.Refused != nil:
			h.refused = append(h.refused, e.Refused)
		}
	})
	return h
}

// run polls a host until no job has anything to do.
func run(ctx context.Context, h *executor.Host) error {
	for idle := 0; idle < 2; { // what is observed when nothing is in flight may lead to more
		busy, err := h.Poll(ctx)
		if err != nil {
			return err
		}
		if idle++; busy {
			idle = 0
		}
	}
	return nil
}

// same compares all losses and weights with those of a plain run, to the bit.
func (k *task) same(plain *task) {
	k.t.Helper()
	equal := func(what string, got, want []float32) {
		k.t.Helper()
		if len(got) != len(want) {
			k.t.Errorf("job %s: %d elements of %s, want %d", k.name, len(got), what, len(want))
			return
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				k.t.Errorf("job %s: %s[%d] is %v, want %v to the bit", k.name, what, i, got[i], want[i])
				return
			}
		}
	}
	equal("losses", k.losses, plain.losses)
	for _, s := range k.g.Storages {
		if s.Role.Persistent() {
			equal(s.Name, k.weights[s.Name], plain.weights[s.Name])
		}
	}
}

// vanilla trains the task alone under the plan that moves nothing.
func (k *task) vanilla(d device.Device, iterations int) *task {
	k.t.Helper()
	plain := k.again()
	h := newHost(d, nil)
	defer closeHost(k.t, h.Host)
	h.Submit(plain.spec(iterations), k.plan(d, "none-live", 0))
	if err := run(context.Background(), h.Host); err != nil {
		k.t.Fatal(err)
	}
	plain.take(h.ended[k.name])
	return plain
}

// plan schedules the task alone and proves the program. Dropped memory is poisoned, so that a use of it shows.
func (k *task) plan(d device.Device, policy string, budget graph.Bytes) proof.Proven {
	k.t.Helper()
	p, err := k.tryPlan(d, policy, budget)
	if err != nil {
		k.t.Fatalf("plan %s for %s under %s: %v", k.name, budget, policy, err)
	}
	return p
}

func (k *task) tryPlan(d device.Device, policy string, budget graph.Bytes) (proof.Proven, error) {
	facts, err := cost.Device("a6000") // not those of this machine, for the same plans everywhere
	if err != nil {
		return proof.Proven{}, err
	}
	if k.link > 0 {
		facts.Out.Rate, facts.In.Rate = k.link, k.link
	}
	result, err := policies.Schedule(scheduler.Request{Policy: policy, Jobs: []scheduler.Job{k.job(d, facts)},
		Budget: budget,
		Out:    facts.Out, In: facts.In, Align: d.Align()}, nil)
	if err != nil {
		return proof.Proven{}, err
	}
	scheduled := result.Jobs[0]
	return compile.Prove(k.g, scheduled.Plan, scheduled.Layout, compile.Options{Poison: policy != "none-live",
		Snapshot: k.aside, Durations: program.Durations{Out: facts.Out, In: facts.In, Host: facts.Host}})
}

func (k *task) job(d device.Device, facts cost.Facts) scheduler.Job {
	j := scheduler.Job{Name: k.name, Graph: k.g}
	for op := range k.g.Ops {
		j.Latency = append(j.Latency, facts.Roofline(k.g.Cost(graph.OpID(op))))
		j.Variants = append(j.Variants, []scheduler.Variant{{Scratch: d.Variants(k.g, graph.OpID(op))[0].Scratch}})
	}
	return j
}

// programs returns different plans of the task: the largest first, the smallest that there is last. Epochs rise.
func (k *task) programs(d device.Device) []proof.Proven {
	k.t.Helper()
	live := k.plan(d, "none-live", 0)
	all := []proof.Proven{k.plan(d, "none-all", 0), live}
	for _, percent := range []graph.Bytes{90, 70, 60} {
		all = append(all, k.plan(d, "tensile", live.Program().Arena*percent/100))
	}
	all = append(all, k.smallest(d, live.Program().Arena))
	for i, p := range all {
		p.Program().Plan.Epoch = int64(i + 1)
		if i > 0 && p.Program().Arena >= all[i-1].Program().Arena {
			k.t.Fatalf("plan %d of %s needs %s, the one before %s: no smaller", i, k.name, p.Program().Arena,
				all[i-1].Program().Arena)
		}
	}
	return all
}

// smallest returns the plan for the smallest budget, in steps of 2 % of a plain arena, for which there is one.
func (k *task) smallest(d device.Device, live graph.Bytes) proof.Proven {
	k.t.Helper()
	facts, err := cost.Device("a6000")
	if err != nil {
		k.t.Fatal(err)
	}
	for budget := scheduler.WorkingSetOf(k.job(d, facts), d.Align()).Bytes; budget < live; budget += live / 50 {
		if p, err := k.tryPlan(d, "tensile", budget); err == nil {
			return p
		}
	}
	k.t.Fatalf("no plan of %s below %s", k.name, live)
	return proof.Proven{}
}

// relabelled returns a copy of a program with another epoch, so that a plan can be used again later.
func (k *task) relabelled(p proof.Proven, epoch int64) proof.Proven {
	k.t.Helper()
	return p.Rename(p.Program().Plan.Job, epoch)
}

// engines runs a test on the cpu device with one thread, and at full length with three.
func engines(t *testing.T, test func(t *testing.T, d *cpu.Device)) {
	for _, threads := range long.Or([]int{1}, []int{1, 3}) {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			test(t, openEngine(t, cpu.Options{Threads: threads}))
		})
	}
}

func openCPU(t testing.TB) *cpu.Device { return openEngine(t, cpu.Options{}) }

func openEngine(t testing.TB, o cpu.Options) *cpu.Device {
	t.Helper()
	d, err := cpu.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func closeHost(t testing.TB, h *executor.Host) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
