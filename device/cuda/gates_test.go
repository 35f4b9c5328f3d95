package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// measured is a driver that keeps the most memory of the device that was used at any time.
type measured struct {
	*fakecuda.Driver
	most graph.Bytes
}

func (m *measured) CreateMemory(size graph.Bytes) (cuda.Memory, error) {
	memory, err := m.Driver.CreateMemory(size)
	m.most = max(m.most, m.Used())
	return memory, err
}

// trainAll has jobs train by their plans on a device, and returns what each leaves. Under a lease they share so many
// pages; 0: each has its arena.
func trainAll(t *testing.T, d *cuda.Device, g *graph.Graph, plans []proof.Proven, pages int) map[string]outcome {
	t.Helper()
	const iterations = 4
	trainers, all := map[string]*trainer{}, map[string]outcome{}
	h := executor.NewHost(d.Paging(), func(e executor.Event) {
		if e.Ended != nil && e.Ended.Err != nil {
			t.Errorf("%s: %v", e.Job, e.Ended.Err)
		}
	})
	if pages > 0 {
		h.Share(executor.Sharing{Lease: lease.NewMachine(lease.Options{Still: -1}), Every: smallPage})
		h.Capacity(graph.Bytes(pages)*smallPage, 1)
	}
	for i, p := range plans {
		r := &trainer{g: g, outputs: outcome{}}
		name := fmt.Sprint("job", i)
		trainers[name] = r
		h.Submit(executor.Spec{
			JobOptions: device.JobOptions{Name: name, Seed: 3, Input: r.input, Output: r.output},
			Graph:      g,
			Iterations: iterations,
			Init:       func(s graph.Storage, to []float32) { fill(to, uint64(s.ID)) },
		}, p)
	}
	for busy := true; busy; {
		var err error
		if busy, err = h.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for name, r := range trainers {
		all[name] = r.outputs
	}
	return all
}

// leastPages is how many pages are enough for jobs to share, and how many their arenas have.
func leastPages(t *testing.T, plans []proof.Proven) (least, arenas int) {
	t.Helper()
	spread := 0
	for _, p := range plans {
		divided, err := compile.ProveGroups(p, smallPage, smallPage)
		if err != nil {
			t.Fatal(err)
		}
		base, peak := divided.Groups().Base.Count(), divided.Groups().Peak()
		least, spread, arenas = least+base, max(spread, peak-base), arenas+peak
	}
	return least + spread, arenas
}

// Jobs that hold parts of their arenas under a lease, together no more than the least that will do, leave the bits of
// their runs alone, and the device has no more memory than that.
func TestGates(t *testing.T) {
	const jobs = 3
	g := devicetest.Zoo()
	seeds := long.Rounds(1, 2)
	for seed := range seeds {
		driver := &measured{Driver: fakecuda.New(fakecuda.Options{Seed: seed, Page: smallPage})}
		d := open(t, driver)
		var plans []proof.Proven
		for i := range uint64(jobs) {
			plans = append(plans, shuffled(t, d, g, 10*seed+i))
		}
		pages, sum := leastPages(t, plans)
		before := driver.Used()
		driver.most = 0
		gated := trainAll(t, d, g, plans, pages)
		words := graph.Bytes(jobs) * 256 // of the iterations
		if used := driver.most - before - words; used > graph.Bytes(pages)*smallPage || used <= 0 {
			t.Errorf("seed %d: %d bytes were used, the jobs may hold %d pages", seed, used, pages)
		}
		t.Logf("seed %d: %d pages are held, arenas have %d", seed, pages, sum)
		for name, want := range trainAll(t, d, g, plans, 0) {
			if len(want) == 0 || gated[name].differs(want) != "" {
				t.Errorf("seed %d, %s: other outputs under the lease: %s", seed, name, gated[name].differs(want))
			}
		}
		closed(t, d)
	}
}

// Plans whose steps join the streams run under gates: the steps wait for copies, so that the same plans take longer
// with joins, and their bits are those of a run with arenas.
func TestGatesJoin(t *testing.T) {
	g := devicetest.Zoo()
	var took [2]time.Duration
	for i, join := range []bool{false, true} {
		driver := fakecuda.New(fakecuda.Options{Seed: 5, Page: smallPage})
		d := open(t, driver)
		var plans []proof.Proven
		for seed := range uint64(2) {
			p := devicetest.RandomPlan(rand.New(rand.NewPCG(seed, 1)), g)
			for k := range p.Steps {
				p.Steps[k].Join = join
			}
			plans = append(plans, devicetest.Build(t, d, g, p, compile.Options{}))
		}
		pages, arenas := leastPages(t, plans)
		if pages >= arenas {
			t.Fatalf("%d pages of %d", pages, arenas)
		}
		began := driver.Now()
		gated := trainAll(t, d, g, plans, pages)
		took[i] = driver.Now() - began
		for name, want := range trainAll(t, d, g, plans, 0) {
			if len(want) == 0 || gated[name].differs(want) != "" {
				t.Errorf("%s, join %v: other outputs under the lease: %s", name, join, gated[name].differs(want))
			}
		}
		closed(t, d)
	}
	if took[1] <= took[0] {
		t.Errorf("%v with joins, %v without", took[1], took[0])
	}
}
