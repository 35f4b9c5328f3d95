package executor_test

import (
	"context"
	"slices"
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph"
	"tensile/lease"
	"tensile/program"
)

// grantor is a lease in this process that checks that what was granted together is within the capacity.
type grantor struct {
	t        testing.TB
	machine  *lease.Machine
	capacity int
	grants   int
}

func (c *grantor) Step(in lease.Input) []lease.Output {
	out := c.machine.Step(in)
	for _, o := range out {
		switch o.Kind {
		case lease.Grant:
			c.grants++
		case lease.Refuse:
			c.t.Errorf("%+v: %v", in, o)
		}
	}
	return out
}

// least is the smallest capacity at which jobs can train together, in pages.
func least(t testing.TB, page, every graph.Bytes, all ...program.Proven) int {
	bases, spread := 0, 0
	for _, p := range all {
		d, err := p.Divide(page, every)
		if err != nil {
			t.Fatal(err)
		}
		bases += d.Groups().Base.Count()
		spread = max(spread, d.Groups().Peak()-d.Groups().Base.Count())
	}
	return bases + spread
}

const smallPage, smallEvery = 4096, 16 << 10

// Jobs that hold parts of their arenas, together no more than the capacity, train to the bits of their runs alone.
func TestGatesKeepBits(t *testing.T) {
	d := openEngine(t, cpu.Options{NoOpenBLAS: true, Page: smallPage})
	const iterations = 6
	tasks := small(t)
	w := watchPages(t, d)
	h := newHost(w, func(r *executor.Report) {
		if r.Gate < 0 || r.Stall < 0 || r.Gate+r.Stall > r.End-r.Begin {
			t.Errorf("job %s: iteration %d took %v, gate %v, stall %v", r.Job, r.Iteration, r.End-r.Begin, r.Gate, r.Stall)
		}
	})
	defer closeHost(t, h.Host)
	var plans []program.Proven
	for _, k := range tasks {
		plans = append(plans, k.plan(d, "none-live", 0))
	}
	w.capacity = least(t, smallPage, smallEvery, plans...)
	c := &grantor{t: t, machine: lease.NewMachine(lease.Options{Still: -1})}
	h.Share(executor.Sharing{Lease: c, Every: smallEvery})
	h.Capacity(graph.Bytes(w.capacity) * smallPage)
	for i, k := range tasks {
		h.Submit(k.spec(iterations), plans[i])
	}
	if err := run(context.Background(), h.Host); err != nil {
		t.Fatal(err)
	}
	for _, k := range tasks {
		k.take(h.ended[k.name])
		k.same(k.vanilla(d, iterations))
	}
	if c.grants < iterations*4 {
		t.Errorf("%d grants for %d iterations of %d jobs", c.grants, iterations, len(tasks))
	}
	t.Logf("capacity %d pages of %v", w.capacity, plans[0].Program().Arena/smallPage+plans[1].Program().Arena/smallPage)
}

// pagesWatch is a device that sees what jobs hold.
type pagesWatch struct {
	device.Pager
	t        testing.TB
	capacity int // pages that they may hold together
	jobs     []*pagesJob
	most     int
}

type pagesJob struct {
	device.PagedJob
	w    *pagesWatch
	held int
}

func watchPages(t testing.TB, d device.Pager) *pagesWatch { return &pagesWatch{Pager: d, t: t} }

func (w *pagesWatch) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	j, err := w.Pager.Open(g, o)
	if err != nil {
		return nil, err
	}
	w.jobs = append(w.jobs, &pagesJob{PagedJob: j.(device.PagedJob), w: w})
	return w.jobs[len(w.jobs)-1], nil
}

func (w *pagesWatch) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	events, err := w.Pager.Next(ctx, wake)
	for i := range events {
		at := slices.IndexFunc(w.jobs, func(j *pagesJob) bool { return j.PagedJob == events[i].Job })
		events[i].Job = w.jobs[at]
	}
	return events, err
}

func (j *pagesJob) Hold(pages program.Pages) error {
	j.held = pages.Count()
	sum := 0
	for _, other := range j.w.jobs {
		sum += other.held
	}
	if j.w.most = max(j.w.most, sum); sum > j.w.capacity {
		j.w.t.Errorf("%d pages are held, the capacity is %d", sum, j.w.capacity)
	}
	return j.PagedJob.Hold(pages)
}

func (j *pagesJob) Reserve(arena graph.Bytes) error {
	j.held = 0
	return j.PagedJob.Reserve(arena)
}
