package local

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
	"tensile/wire"
)

// held is a device that counts what the jobs hold.
type held struct {
	device.Pager
	jobs  map[device.Job]*heldJob
	pages int // of all jobs
	most  int // at once
}

type heldJob struct {
	device.PagedJob
	device *held
	paged  bool // it holds pages
	pages  int
}

func (d *held) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	inner, err := d.Pager.Open(g, o)
	if err != nil {
		return nil, err
	}
	j := &heldJob{PagedJob: inner.(device.PagedJob), device: d}
	d.jobs[inner] = j
	return j, nil
}

func (d *held) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	events, err := d.Pager.Next(ctx, wake)
	for i := range events {
		events[i].Job = d.jobs[events[i].Job]
	}
	return events, err
}

func (j *heldJob) count(pages int) {
	d := j.device
	d.pages += pages - j.pages
	d.most, j.pages = max(d.most, d.pages), pages
}

func (j *heldJob) Hold(pages program.Pages) error {
	j.paged = true
	j.count(pages.Count())
	return j.PagedJob.Hold(pages)
}

// Reserve of a job that holds no pages takes all of the arena.
func (j *heldJob) Reserve(arena graph.Bytes) error {
	page := j.device.Page()
	if pages := int((arena + page - 1) / page); pages == 0 || !j.paged {
		j.count(pages)
	}
	return j.PagedJob.Reserve(arena)
}

// Jobs that share memory train within a budget in which their arenas would not fit beside each other, to the bits that
// they have alone.
func TestShareMemory(t *testing.T) {
	for _, name := range []string{"cpu", "sim"} {
		for _, sharing := range []wire.Sharing{wire.Gates, wire.Zico, wire.Waterwave, wire.Slices} {
			t.Run(name+" "+string(sharing), func(t *testing.T) {
				var inner device.Pager
				if name == "cpu" {
					d, err := cpu.New(cpu.Options{Page: 4 * graph.KiB})
					if err != nil {
						t.Fatal(err)
					}
					defer d.Close()
					inner = d
				} else {
					facts, err := cost.Device("v100")
					if err != nil {
						t.Fatal(err)
					}
					inner = sim.New(facts, sim.Options{Page: 4 * graph.KiB})
				}
				d := &held{Pager: inner, jobs: make(map[device.Job]*heldJob)}
				w, _ := setting(t, d)
				alone, err := Train(t.Context(), d, on(d), w, within(0, 4))
				if err != nil {
					t.Fatal(err)
				}
				d.most = 0
				o := within(tight*7/10, 4)
				o.MemorySharing = sharing
				var gates time.Duration
				o.Observe = func(it Iterated) { gates += it.Report.Gate }
				run, err := Train(t.Context(), d, on(d), w, o)
				if err != nil {
					t.Fatal(err)
				}
				var arenas graph.Bytes
				for i, j := range run.Jobs {
					arenas += j.Arena
					if diff := cmp.Diff(alone.Jobs[i].Weights, j.Weights); diff != "" {
						t.Errorf("job %d: weights (-alone +shared):\n%s", i, diff)
					}
					if diff := cmp.Diff(alone.Jobs[i].Losses, j.Losses); diff != "" {
						t.Errorf("job %d: losses (-alone +shared):\n%s", i, diff)
					}
					if j.Iterations != 4 {
						t.Errorf("job %d: %d iterations", i, j.Iterations)
					}
				}
				most := graph.Bytes(d.most) * inner.Page()
				t.Logf("%s of %s at most, arenas %s, gates %v", most, o.Budget, arenas, gates)
				if most == 0 || most > o.Budget || arenas <= o.Budget {
					t.Errorf("jobs held %s of %s, and their arenas are %s", most, o.Budget, arenas)
				}
			})
		}
	}
}
