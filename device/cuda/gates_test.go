package cuda_test

import (
	"fmt"
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/devicetest"
	"tensile/executor"
	"tensile/graph"
	"tensile/internal/fakecuda"
	"tensile/lease"
	"tensile/program"
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

// Jobs that hold parts of their arenas under a lease, together no more than the least that will do, leave the bits of
// their runs alone, and the device has no more memory than that.
func TestGates(t *testing.T) {
	const jobs, iterations = 3, 4
	g := devicetest.Zoo()
	seeds := uint64(2)
	if testing.Short() || raceEnabled {
		seeds = 1
	}
	for seed := range seeds {
		driver := &measured{Driver: fakecuda.New(fakecuda.Options{Seed: seed, Page: smallPage})}
		d := open(t, driver)
		var plans []program.Proven
		bases, spread, sum := 0, 0, 0
		for i := range uint64(jobs) {
			p := shuffled(t, d, g, 10*seed+i)
			divided, err := p.Divide(smallPage, smallPage)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, p)
			base, peak := divided.Groups().Base.Count(), divided.Groups().Peak()
			bases, spread, sum = bases+base, max(spread, peak-base), sum+peak
		}
		train := func(shared bool) map[string]outcome {
			trainers, all := map[string]*trainer{}, map[string]outcome{}
			h := executor.NewHost(d.Paging(), func(e executor.Event) {
				if e.Ended != nil && e.Ended.Err != nil {
					t.Errorf("seed %d, %s: %v", seed, e.Job, e.Ended.Err)
				}
			})
			if shared {
				h.Share(executor.Sharing{Lease: lease.NewMachine(lease.Options{Still: -1}), Every: smallPage})
				h.Capacity(graph.Bytes(bases+spread)*smallPage, 1)
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
					t.Fatalf("seed %d: %v", seed, err)
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
		before := driver.Used()
		driver.most = 0
		gated := train(true)
		words := graph.Bytes(jobs) * 256 // of the iterations
		if used := driver.most - before - words; used > graph.Bytes(bases+spread)*smallPage || used <= 0 {
			t.Errorf("seed %d: %d bytes were used, the jobs may hold %d pages", seed, used, bases+spread)
		}
		t.Logf("seed %d: %d pages are held, arenas have %d", seed, bases+spread, sum)
		for name, want := range train(false) {
			if len(want) == 0 || gated[name].differs(want) != "" {
				t.Errorf("seed %d, %s: other outputs under the lease: %s", seed, name, gated[name].differs(want))
			}
		}
		closed(t, d)
	}
}
