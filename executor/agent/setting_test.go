package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/controller/plans"
	"tensile/data"
	"tensile/data/checkpoint"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
	"tensile/wire"
)

const executorName = "x-1"

// setting is an executor, a device, and a bus between it and the test, which plays the controller.
type setting struct {
	given  int64              // ID of the youngest job
	ids    map[string][]int64 // of the jobs of a name
	t      *testing.T
	bus    *memory
	device *counted
	number int64
	ended  chan error
	cancel context.CancelCauseFunc

	interrupt chan struct{}
	folder    string          // of its checkpoints
	notices   strings.Builder // to be read when it has ended
}

// counted is a device that counts the places of jobs, and can break.
type counted struct {
	device.Device
	open   atomic.Int64
	closed chan struct{} // a place
	broken atomic.Bool
	jobs   map[device.Job]*countedJob
}

type countedJob struct {
	device.Job
	device *counted
}

var errBroken = errors.New("it is on fire")

func (d *counted) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	j, err := d.Device.Open(g, o)
	if err != nil {
		return nil, err
	}
	d.open.Add(1)
	d.jobs[j] = &countedJob{j, d}
	return d.jobs[j], nil
}

func (d *counted) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	if d.broken.Load() {
		return nil, errBroken
	}
	events, err := d.Device.Next(ctx, wake)
	for i := range events {
		events[i].Job = d.jobs[events[i].Job]
	}
	return events, err
}

func (j *countedJob) Close() error {
	j.device.open.Add(-1)
	j.device.closed <- struct{}{}
	return j.Job.Close()
}

func simulated(t *testing.T) device.Device {
	t.Helper()
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	return sim.New(facts, sim.Options{})
}

func computing(t *testing.T) device.Device {
	t.Helper()
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// begin starts an executor.
func begin(t *testing.T, d device.Device) *setting {
	t.Helper()
	return beginIn(t, d, t.TempDir())
}

// beginIn starts an executor with a folder of checkpoints.
func beginIn(t *testing.T, d device.Device, folder string) *setting {
	t.Helper()
	s := &setting{t: t, ids: map[string][]int64{}, bus: newMemory(), device: &counted{Device: d,
		jobs:   map[device.Job]*countedJob{},
		closed: make(chan struct{}, 100)}, ended: make(chan error, 1), interrupt: make(chan struct{}), folder: folder}
	var ctx context.Context
	ctx, s.cancel = context.WithCancelCause(t.Context())
	go func() {
		s.ended <- agent.Run(ctx, agent.Options{Executor: executorName, Device: s.device,
			Host: agent.HostMaker(s.device),
			Bus:  s.bus, Heartbeat: time.Millisecond,
			Checkpoints: checkpoint.Folder{Dir: folder}, Interrupt: s.interrupt,
			Notice: slog.New(slog.NewTextHandler(&s.notices, nil))})
	}()
	return s
}

// end waits for the executor to end, and checks that it has left nothing behind.
func (s *setting) end() error {
	s.t.Helper()
	err := <-s.ended
	if n := s.device.open.Load(); n != 0 || !s.bus.stopped {
		s.t.Errorf("%d jobs are open on the device, no longer watching: %t", n, s.bus.stopped)
	}
	return err
}

// orders gives the executor its next orders.
func (s *setting) orders(leave bool, jobs ...wire.Assignment) {
	s.t.Helper()
	s.number++
	s.bus.order(s.t, wire.Encode(wire.Orders{Executor: executorName, Number: s.number, Jobs: jobs, Leave: leave}))
}

// leave has the executor forget all jobs and leave.
func (s *setting) leave() {
	s.t.Helper()
	s.orders(true)
	if err := s.end(); err != nil {
		s.t.Errorf("it left with error %v", err)
	}
	if s.bus.status.Orders != s.number || len(s.bus.status.Jobs) != 0 {
		s.t.Errorf("it left with status %+v", s.bus.status)
	}
}

// work is a job to be trained, and its plans.
type work struct {
	t    *testing.T
	d    device.Device
	spec wire.Spec
	g    *graph.Graph
}

// give puts a job's graph where the executor finds it.
func (s *setting) give(name string, iterations int) *work {
	s.t.Helper()
	g, err := models.Build("lenet", models.Config{Image: 12, Batch: 2})
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(g)
	if err != nil {
		s.t.Fatal(err)
	}
	s.bus.store(wire.GraphObject(g.Digest()), text)
	s.given++
	s.ids[name] = append(s.ids[name], s.given)
	return &work{s.t, s.device.Device, wire.Spec{Name: name, ID: s.given, Model: "lenet", Graph: g.Digest(), Seed: 5,
		Iterations: iterations}, g}
}

// plan plans a job alone within a share of what it needs, in percent.
func (w *work) plan(epoch int64, percent graph.Bytes) scheduler.Scheduled {
	w.t.Helper()
	facts, err := cost.Device("v100") // for the same plans on any machine
	if err != nil {
		w.t.Fatal(err)
	}
	j := scheduler.Job{Name: w.spec.Name, Epoch: epoch, Graph: w.g}
	for op := range w.g.Ops {
		j.Latency = append(j.Latency, facts.Roofline(w.g.Cost(graph.OpID(op))))
		j.Variants = append(j.Variants, []scheduler.Variant{{Scratch: w.d.Variants(w.g, graph.OpID(op))[0].Scratch}})
	}
	r := scheduler.Request{Policy: "none-live", Jobs: []scheduler.Job{j}, Out: facts.Out, In: facts.In,
		Align: w.d.Align()}
	result, err := policies.Schedule(r, nil)
	if err == nil && percent < 100 {
		r.Policy, r.Budget = "tensile", result.Jobs[0].Layout.Arena*percent/100
		result, err = policies.Schedule(r, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return result.Jobs[0]
}

func layout(p scheduler.Scheduled) wire.Layout {
	return wire.Layout{Plan: p.Plan, Offsets: p.Layout.Offsets, Scratch: p.Layout.Scratch, Arena: p.Layout.Arena}
}

// deliver puts a plan where the executor finds it.
func (s *setting) deliver(p scheduler.Scheduled) {
	for _, id := range s.ids[p.Plan.Job] {
		s.bus.store(wire.LayoutObject(p.Plan.Job, id, p.Plan.Epoch), wire.Encode(layout(p)))
	}
}

// alone trains a job by local.Train with this plan, on a device of its own.
func (w *work) alone(p scheduler.Scheduled, iterations int, set *data.Dataset) *local.JobRun {
	w.t.Helper()
	tasks := []task.Task{{Name: w.spec.Name, Model: w.spec.Model, Graph: w.g, Seed: w.spec.Seed, Data: set}}
	d := simulated(w.t)
	if _, ok := w.d.(*cpu.Device); ok {
		d = computing(w.t)
	}
	on := planner.Describe(d, planner.Roofline(d.Facts()))
	profile, err := on.Profile(w.g)
	if err != nil {
		w.t.Fatal(err)
	}
	only := func(_ context.Context, q *plans.Request) *plans.Result {
		l := layout(p)
		return &plans.Result{Ticket: q.Ticket, NewProfiles: map[int]planner.Profile{0: profile},
			Jobs: []plans.PlannedJob{{Layout: &plans.ProvenLayout{Wire: &l}}}}
	}
	run, err := local.Train(w.t.Context(), d, on, tasks, local.Options{Config: controller.Config{NoReplan: true},
		Iterations: iterations, Plan: only})
	if err != nil {
		w.t.Fatal(err)
	}
	return &run.Jobs[0]
}

// same checks that a job has come to what it comes to alone, to the bit.
func (w *work) same(got *wire.Result, want *local.JobRun) {
	w.t.Helper()
	w.sameAs(got, &wire.Result{Losses: want.Losses, Weights: want.Weights})
}

func (w *work) sameAs(got, want *wire.Result) {
	w.t.Helper()
	bits := func(losses []float32) (all []uint32) {
		for _, l := range losses {
			all = append(all, math.Float32bits(l))
		}
		return all
	}
	if diff := cmp.Diff(bits(want.Losses), bits(got.Losses)); diff != "" {
		w.t.Errorf("job %s: losses (-want +got):\n%s", w.spec.Name, diff)
	}
	if diff := cmp.Diff(want.Weights, got.Weights); diff != "" {
		w.t.Errorf("job %s: digests of the weights (-want +got):\n%s", w.spec.Name, diff)
	}
}
