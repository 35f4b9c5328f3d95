package local

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tensile/controller"
	"tensile/data/weights"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler/planner"
)

// BenchmarkVanilla sets the vanilla run, all jobs at once on the cpu device, beside a bare loop over the same kernels,
// a goroutine per job: without lanes, waits, events and reports. Both train the same iterations alternately. The metric
// runner/bare is the ratio of the times from the end of each job's first iteration, in which a fresh arena gets its
// pages and the other job may still be on its way out of Home, to the end of its last one; of the job that takes
// longer.
func BenchmarkVanilla(b *testing.B) {
	for _, names := range [][]string{{"mlp", "lenet"}, {"mlp"}, {"resnet50", "vgg16"}} {
		b.Run(fmt.Sprintf("models=%v", names), func(b *testing.B) {
			s := task.Settings{Seed: 1, Batch: 32}
			if names[0] == "resnet50" {
				s = task.Settings{Seed: 1, Batch: 8, Image: 32}
			}
			w, err := task.Load(names, s)
			if err != nil {
				b.Fatal(err)
			}
			d, err := cpu.New(cpu.Options{})
			if err != nil {
				b.Fatal(err)
			}
			request := asked(b, w, d)
			request.Policy = "none-live"
			p, err := planner.Plan(b.Context(), request)
			if err != nil {
				b.Fatal(err)
			}
			const iterations = 5
			loops := bareLoops(b, w, p.Programs)
			var runner, bare time.Duration
			rounds := 0
			for b.Loop() {
				first := make([]time.Duration, len(w))
				o := Options{Config: controller.Config{Policy: request.Policy, NoReplan: true}, Iterations: iterations,
					Observe: func(it Iterated) {
						if it.Report.Iteration == 0 {
							first[it.Job] = it.Report.Wall
						}
					}}
				run, err := Train(b.Context(), d, on(d), w, o)
				if err != nil {
					b.Fatal(err)
				}
				var longest time.Duration
				for i, j := range run.Jobs {
					longest = max(longest, j.End-j.Begin-first[i])
				}
				runner += longest
				bare += together(loops, iterations)
				rounds++
			}
			b.ReportMetric(float64(runner)/float64(bare), "runner/bare")
			b.ReportMetric(float64(bare.Milliseconds())/float64(rounds*(iterations-1)), "bare-ms/iteration")
		})
	}
}

// together runs loops side by side and returns how long the longest took after its first iteration.
func together(loops []*bareLoop, iterations int) time.Duration {
	took := make([]time.Duration, len(loops))
	var all sync.WaitGroup
	for k, l := range loops {
		all.Go(func() {
			l.iteration(0)
			start := time.Now()
			for i := 1; i < iterations; i++ {
				l.iteration(i)
			}
			took[k] = time.Since(start)
		})
	}
	all.Wait()
	return slices.Max(took)
}

// bareLoop executes the kernels of a program's body one after the other over an arena of its own.
type bareLoop struct {
	task  task.Task
	calls []bareCall
	feed  func(iteration int, s graph.StorageID, to device.Memory)
}

type bareCall struct {
	load graph.StorageID // an input that is filled, or -1
	to   device.Memory
	kernel.Call[float32]
}

func bareLoops(b *testing.B, w []task.Task, programs []proof.Proven) []*bareLoop {
	engine := gemm.New(nil)
	var loops []*bareLoop
	for i, t := range w {
		loops = append(loops, newBareLoop(t, engine, programs[i].Program()))
	}
	return loops
}

func newBareLoop(t task.Task, engine *gemm.Engine, p *program.Program) *bareLoop {
	arena := device.NewMemory(p.Arena)
	bytes := func(a program.Address, size graph.Bytes) device.Memory { return arena[a.Offset : a.Offset+size] }
	at := func(a program.Address, size graph.Bytes) []float32 { return bytes(a, size).Float32() }
	l := &bareLoop{task: t, feed: t.Feeder(nil)}
	for _, c := range p.Prologue.Commands {
		weights.Initialise(t.Graph.Storages[c.Storage], t.Seed, at(c.Device, c.Bytes))
	}
	for _, c := range p.Body.Commands {
		switch c.Kind {
		case program.In:
			l.calls = append(l.calls, bareCall{load: c.Storage, to: bytes(c.Device, c.Bytes)})
		case program.Kernel:
			op := t.Graph.Ops[c.Op]
			call := kernel.Call[float32]{Kind: op.Kind, Attrs: op.Attrs, Seed: t.Seed, GEMM: engine,
				InShapes: t.Graph.Shapes(op.Inputs), OutShapes: t.Graph.Shapes(op.Outputs)}
			for i, a := range c.Inputs {
				call.In = append(call.In, at(a, t.Graph.Tensors[op.Inputs[i]].Bytes()))
			}
			for i, a := range c.Outputs {
				call.Out = append(call.Out, at(a, call.OutShapes[i].Bytes()))
			}
			if c.ScratchBytes > 0 {
				call.Scratch = at(c.Scratch, c.ScratchBytes)
			}
			l.calls = append(l.calls, bareCall{load: -1, Call: call})
		}
	}
	return l
}

func (l *bareLoop) iteration(i int) {
	for k := range l.calls {
		c := &l.calls[k]
		if c.load >= 0 {
			l.feed(i, c.load, c.to)
			continue
		}
		c.Iteration = i
		kernel.Run(&c.Call)
	}
}
