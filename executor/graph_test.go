package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/devicetest"
	"tensile/executor"
	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// A job changes between programs of two graphs while it trains: the bits are those of a run by one program. A program
// of a graph that keeps other storages on the host, and one that was not proven, are refused.
func TestChangeOfGraph(t *testing.T) {
	engines(t, func(t *testing.T, d *cpu.Device) { changeOfGraph(t, d) })
	t.Run("sim", func(t *testing.T) { changeOfGraph(t, openSim(t)) })
}

func changeOfGraph(t *testing.T, d device.Device) {
	tiny, other, zoo := devicetest.Tiny(), devicetest.Rewritten(), devicetest.Zoo()
	build := func(g *graph.Graph, seed uint64) proof.Proven {
		p := devicetest.KeepAll(g)
		if seed > 0 {
			p = devicetest.RandomPlan(rand.New(rand.NewPCG(seed, 0)), g)
		}
		p.Epoch = int64(seed)
		return devicetest.Build(t, d, g, p, compile.Options{})
	}
	want := trainTiny(t, d, build(tiny, 0))
	got := trainTiny(t, d, build(other, 1), build(zoo, 0), build(tiny, 2), proof.Proven{}, build(other, 3),
		build(other, 4))
	var refused []string
	for _, line := range got.log {
		if rest, ok := strings.CutPrefix(line, "tiny refused: "); ok {
			refused = append(refused, rest)
		}
	}
	if len(refused) != 2 || !strings.Contains(refused[0], `graph "zoo"`) ||
		refused[1] != "job tiny: its program was not proven" {
		t.Errorf("refused were %q", refused)
	}
	var applied []string
	for _, line := range got.log {
		if rest, ok := strings.CutPrefix(line, "tiny applied "); ok {
			applied = append(applied, rest)
		}
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, applied); diff != "" {
		t.Errorf("epochs applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.outputs, got.outputs); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.weights, got.weights); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

// outcome is all that training leaves behind, by names.
type outcome struct {
	log     []string
	outputs []string
	weights map[string][]float32
}

// trainTiny trains Tiny for 20 iterations, first by one program, and asks for another every third iteration.
func trainTiny(t *testing.T, d device.Device, programs ...proof.Proven) outcome {
	const iterations = 20
	g := devicetest.Tiny()
	out := outcome{weights: map[string][]float32{}}
	l := newHeard(d)
	defer closeHost(t, l.host)
	reports := 0
	next := func() {
		if reports++; reports%3 == 0 && reports/3 < len(programs) {
			l.host.Change("tiny", programs[reports/3])
		}
	}
	for i := range iterations {
		for epoch := range 5 {
			l.on[fmt.Sprintf("tiny iteration %d of epoch %d", i, epoch)] = next
		}
	}
	spec := executor.Spec{Graph: g, Iterations: iterations,
		Init: func(s graph.Storage, to []float32) {
			r := rand.New(rand.NewPCG(uint64(s.ID), 1))
			for i := range to {
				to[i] = r.Float32() - 0.5
			}
		},
		JobOptions: device.JobOptions{Name: "tiny", Input: func(iteration int, s graph.StorageID, to device.Memory) {
			for i, r := 0, rand.New(rand.NewPCG(uint64(iteration), uint64(s))); i < len(to.Float32()); i++ {
				if to.Float32()[i] = r.Float32(); g.Storages[s].Name == "labels" {
					to.Float32()[i] = float32(i % 3)
				}
			}
		},
			Output: func(iteration int, s graph.StorageID, from []float32) {
				out.outputs = append(out.outputs, fmt.Sprintf("%d %s %x", iteration, g.Storages[s].Name, from))
			}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.on[fmt.Sprintf("tiny ended after %d", iterations)] = func() {
		for s, content := range l.ends["tiny"].Weights {
			out.weights[g.Storages[s].Name] = slices.Clone(content)
		}
		cancel()
	}
	l.host.Submit(spec, programs[0])
	if err := l.host.Serve(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	out.log = l.log
	return out
}
