package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/lease"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/plan/randtest"
)

// grantor is a lease in this process that checks that what is given back to it is free on the device already.
type grantor struct {
	t       testing.TB
	machine *lease.Machine
	watch   *pagesWatch
	grants  int
	joins   []lease.Join
	told    []lease.Capacity
}

func (c *grantor) Step(in lease.Input) []lease.Output {
	switch {
	case in.Join != nil:
		c.joins = append(c.joins, *in.Join)
	case in.Capacity != nil:
		c.told = append(c.told, *in.Capacity)
	case in.Passed != nil:
		if held, _ := c.watch.has(string(in.Passed.Job)); held > in.Passed.Hold {
			c.t.Errorf("job %s says that it holds %d pages, and holds %d", in.Passed.Job, in.Passed.Hold, held)
		}
	case in.Leave != nil:
		if held, arena := c.watch.has(string(in.Leave.Job)); held > 0 || arena > 0 {
			c.t.Errorf("job %s leaves with %d pages and an arena of %s", in.Leave.Job, held, arena)
		}
	}
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

func (c *grantor) Wake() (time.Duration, bool) { return c.machine.Wake() }

// least is the smallest capacity at which jobs can train together, in pages.
func least(t testing.TB, page, every graph.Bytes, all ...proof.Proven) int {
	bases, spread := 0, 0
	for _, p := range all {
		d, err := compile.ProveGroups(p, page, every)
		if err != nil {
			t.Fatal(err)
		}
		bases += d.Groups().Base.Count()
		spread = max(spread, d.Groups().Peak()-d.Groups().Base.Count())
	}
	return bases + spread
}

const smallPage, smallEvery = 4096, 16 << 10

// gated returns a host whose jobs share so many pages of a device by gates.
func gated(t testing.TB, w *pagesWatch, every graph.Bytes, capacity int,
	each func(*executor.Report)) (*host, *grantor) {
	h := newHost(w, func(r *executor.Report) {
		if r.Gate < 0 || r.Stall < 0 || r.Gate+r.Stall > r.End-r.Begin {
			t.Errorf("job %s: iteration %d took %v, gate %v, stall %v", r.Job, r.Iteration, r.End-r.Begin, r.Gate,
				r.Stall)
		}
		if each != nil {
			each(r)
		}
	})
	c := &grantor{t: t, machine: lease.NewMachine(lease.Options{Still: -1}), watch: w}
	h.Share(executor.Sharing{Lease: c, Every: every})
	w.capacity = capacity
	h.Capacity(graph.Bytes(capacity)*w.Page(), 0)
	return h, c
}

// Jobs that hold parts of their arenas, together no more than the least that will do, train to the bits of their runs
// alone.
func TestGatesKeepBits(t *testing.T) {
	for _, threads := range long.Or([]int{1}, []int{1, 3}) {
		const iterations = 6
		d := openEngine(t, cpu.Options{Threads: threads, Page: smallPage})
		tasks := small(t)
		var plans []proof.Proven
		for _, k := range tasks {
			plans = append(plans, k.plan(d, "none-live", 0))
		}
		h, c := gated(t, watchPages(t, d), smallEvery, least(t, d.Page(), smallEvery, plans...), nil)
		defer closeHost(t, h.Host)
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
	}
}

// strict is a lease that refuses what one job says: to join, or later.
type strict struct {
	executor.Lease
	job  lease.Job
	when func(lease.Input) bool
}

func (r *strict) Step(in lease.Input) []lease.Output {
	if r.when(in) {
		return []lease.Output{{Kind: lease.Refuse, Job: r.job, Why: "its lock file cannot be made"}}
	}
	return r.Lease.Step(in)
}

// A job that the lease refuses ends, with what the lease says. The others go on to the bits of their runs alone.
func TestGatesRefused(t *testing.T) {
	const iterations = 3
	bad := lease.Job(small(t)[0].name)
	for what, when := range map[string]func(lease.Input) bool{
		"to join": func(in lease.Input) bool { return in.Join != nil && in.Join.Job == bad },
		"a group": func(in lease.Input) bool {
			return in.Want != nil && in.Want.Job == bad && !in.Want.First
		},
	} {
		d := openEngine(t, cpu.Options{Page: smallPage})
		tasks := small(t)
		var plans []proof.Proven
		for _, k := range tasks {
			plans = append(plans, k.plan(d, "none-live", 0))
		}
		w := watchPages(t, d)
		h, c := gated(t, w, smallEvery, least(t, d.Page(), smallEvery, plans...), nil)
		h.Share(executor.Sharing{Lease: &strict{c, bad, when}, Every: smallEvery})
		h.Capacity(graph.Bytes(w.capacity)*d.Page(), 0)
		for i, k := range tasks {
			h.Submit(k.spec(iterations), plans[i])
		}
		if err := run(context.Background(), h.Host); err != nil {
			t.Fatal(err)
		}
		want := "job " + string(bad) + ": the lease of the device's memory refuses it: its lock file cannot be made"
		if e := h.ended[string(bad)]; e == nil || e.Err == nil || e.Err.Error() != want {
			t.Errorf("refused %s: job %s has ended as %+v, want %q", what, bad, e, want)
		}
		for _, k := range tasks[1:] {
			k.take(h.ended[k.name])
			k.same(k.vanilla(d, iterations))
		}
		closeHost(t, h.Host)
	}
}

// Jobs under random plans and a random capacity, which changes, change their plans, take checkpoints, park and are
// stopped at random times. None hangs, none loses a bit, and together they never hold more than the capacity.
func TestGatesAtRandom(t *testing.T) {
	seeds := long.Rounds(3, 12)
	d := openEngine(t, cpu.Options{Page: smallPage})
	plain := map[int]*task{}
	g := newTask(t, "plain", "lenet", models.Config{Image: 12, Batch: 2}, 5)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		const iterations = 7
		var tasks []*task
		var all []proof.Proven
		programs := map[string][]proof.Proven{}
		for i := range 2 + r.IntN(3) {
			k := g.again()
			k.name = fmt.Sprint("job", i)
			tasks = append(tasks, k)
			for epoch := range 3 {
				p := k.random(r, d, int64(epoch+1))
				programs[k.name], all = append(programs[k.name], p), append(all, p)
			}
		}
		every := graph.Bytes(1+r.IntN(16)) * smallPage
		sum := 0
		for _, p := range all {
			sum += int(p.Program().Arena/smallPage) / 3
		}
		capacity := leastOf(t, smallPage, every, programs) + r.IntN(2)*r.IntN(sum)
		stopped := r.IntN(2) == 0
		var h *host
		w, number := watchPages(t, d), int64(9)
		h, _ = gated(t, w, every, capacity, func(rep *executor.Report) {
			switch name := fmt.Sprint("job", r.IntN(len(tasks))); r.IntN(12) {
			case 0:
				h.Change(name, programs[name][r.IntN(3)])
			case 1:
				h.Checkpoint(name, 0)
			case 2:
				h.Park(name, int64(rep.Iteration+1), 0)
				h.Resume(name)
			case 4:
				number++
				pages := capacity + r.IntN(sum)
				w.capacity = max(w.capacity, pages) // what was granted stays
				h.Capacity(graph.Bytes(pages)*smallPage, number)
			case 3:
				if stopped && rep.Iteration > 2 {
					h.Stop("job0")
				}
			}
		})
		for _, k := range tasks {
			h.Submit(k.spec(iterations), programs[k.name][0])
		}
		if err := run(context.Background(), h.Host); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, k := range tasks {
			k.take(h.ended[k.name])
			n := h.ended[k.name].Iterations
			if want := iterations; n != want && !(stopped && k.name == "job0") {
				t.Errorf("seed %d: job %s has trained %d iterations, want %d", seed, k.name, n, want)
			}
			if plain[n] == nil {
				plain[n] = g.vanilla(d, n)
			}
			k.same(plain[n])
		}
		closeHost(t, h.Host)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// random returns a program of a random plan.
func (k *task) random(r *rand.Rand, d device.Device, epoch int64) proof.Proven {
	k.t.Helper()
	var scratch []graph.Bytes
	for op := range k.g.Ops {
		scratch = append(scratch, d.Variants(k.g, graph.OpID(op))[0].Scratch)
	}
	p := randtest.New(r, k.g, scratch)
	p.Epoch = epoch
	l, err := compile.Place(k.g, p, d.Align())
	if err != nil {
		k.t.Fatal(err)
	}
	proven, err := compile.Prove(k.g, p, l, compile.Options{Poison: r.IntN(2) == 0, Snapshot: r.IntN(2) == 0})
	if err != nil {
		k.t.Fatal(err)
	}
	return proven
}

// leastOf is the smallest capacity at which jobs can train together, each by any of its programs.
func leastOf(t testing.TB, page, every graph.Bytes, programs map[string][]proof.Proven) int {
	bases, spread := 0, 0
	for _, all := range programs {
		base := 0
		for _, p := range all {
			d, err := compile.ProveGroups(p, page, every)
			if err != nil {
				t.Fatal(err)
			}
			base = max(base, d.Groups().Base.Count())
			spread = max(spread, d.Groups().Peak()-d.Groups().Base.Count())
		}
		bases += base
	}
	return bases + spread
}

// A job that fails amid an iteration leaves its pages to the others, as does one that is stopped.
func TestGatesAfterFailure(t *testing.T) {
	const iterations = 8
	d := openEngine(t, cpu.Options{Page: smallPage})
	tasks := []*task{named(t, "fails"), named(t, "removed"), named(t, "stays")}
	p := tasks[0].plan(d, "none-live", 0)
	w := watchPages(t, d)
	var h *host
	h, _ = gated(t, w, smallEvery, least(t, smallPage, smallEvery, p, p, p), func(r *executor.Report) {
		switch {
		case r.Job == "fails" && r.Iteration == 2:
			w.jobs[0].fails = 3
		case r.Job == "removed" && r.Iteration == 3:
			h.Remove(r.Job)
		}
	})
	defer closeHost(t, h.Host)
	for _, k := range tasks {
		h.Submit(k.spec(iterations), p)
	}
	if err := run(context.Background(), h.Host); err != nil {
		t.Fatal(err)
	}
	if err := h.ended["fails"].Err; !errors.Is(err, errFull) {
		t.Errorf("the job that has no memory ended with %v, want %v", err, errFull)
	}
	if n := h.ended["removed"].Iterations; n < 4 || n > 6 {
		t.Errorf("the job that was removed after 4 iterations has trained %d", n)
	}
	tasks[2].take(h.ended["stays"])
	tasks[2].same(tasks[2].vanilla(d, iterations))
	for _, j := range w.jobs {
		if j.held != 0 {
			t.Errorf("%d pages are held in the end", j.held)
		}
	}
}

// A job whose loader does not return holds up another one only until the lease has noticed, which nothing that ends on
// the device tells of: the host wakes it. When the loader returns the job goes on.
func TestGatesBesideOneThatStandsStill(t *testing.T) {
	const iterations = 6
	d := openEngine(t, cpu.Options{Page: smallPage})
	stands, goes := named(t, "stands"), named(t, "goes")
	p := goes.plan(d, "none-live", 0)
	divided, err := compile.ProveGroups(p, smallPage, smallEvery)
	if err != nil {
		t.Fatal(err)
	}
	returns := make(chan struct{})
	var h *host
	h, c := gated(t, watchPages(t, d), smallEvery, 2*divided.Groups().Peak()-1, func(r *executor.Report) {
		if r.Job == goes.name && r.Iteration == iterations-1 {
			close(returns)
		}
	})
	c.machine = lease.NewMachine(lease.Options{Still: time.Millisecond})
	defer closeHost(t, h.Host)
	spec := stands.spec(iterations)
	input := spec.Input
	spec.Input = func(iteration int, s graph.StorageID, to device.Memory) {
		if iteration == 2 {
			<-returns
		}
		input(iteration, s, to)
	}
	h.Submit(spec, p)
	h.Submit(goes.spec(iterations), p)
	if err := run(t.Context(), h.Host); err != nil {
		t.Fatal(err)
	}
	for _, k := range []*task{stands, goes} {
		k.take(h.ended[k.name])
		k.same(k.vanilla(d, iterations))
	}
}

// With all the memory that it may want a job under gates takes not a nanosecond longer, be it that it swaps.
func TestGatesTakeNoTime(t *testing.T) {
	k := newTask(t, "resnet", "resnet:1,1,1,1", models.Config{Image: 64, Batch: 8}, 6)
	trained := func(percent graph.Bytes, every graph.Bytes) (ends []time.Duration, grants int) {
		d := openSim(t).(*sim.Device)
		live := k.plan(d, "none-live", 0)
		p := live
		if percent < 100 {
			p = k.plan(d, "tensile", live.Program().Arena*percent/100)
		}
		each := func(r *executor.Report) { ends = append(ends, r.End) }
		h, c := newHost(d, each), &grantor{}
		if every > 0 {
			h, c = gated(t, watchPages(t, d), every, int(p.Program().Arena/d.Page())+1, each)
		}
		defer closeHost(t, h.Host)
		h.Submit(k.again().spec(5), p)
		if err := run(t.Context(), h.Host); err != nil {
			t.Fatal(err)
		}
		return ends, c.grants
	}
	for _, percent := range []graph.Bytes{100, 70} {
		want, _ := trained(percent, 0)
		got, grants := trained(percent, 2*graph.MiB)
		if !slices.Equal(got, want) || grants < 40 {
			t.Errorf("at %d %%: iterations end at %v in %d groups, want %v", percent, got, grants, want)
		}
	}
}

// A lease hears of whole pages, by the number of the capacity, and what a job is worth when it leaves Home.
func TestLeaseHears(t *testing.T) {
	d := openSim(t)
	k, p := lenet(t), lenet(t).plan(d, "none-live", 0)
	w := watchPages(t, d.(device.Pager))
	w.capacity = int(p.Program().Arena/w.Page()) + 1
	var h *host
	h, c := gated(t, w, 0, w.capacity, func(r *executor.Report) {
		if r.Iteration == 1 {
			h.Weigh(r.Job, 5)
			h.Change(r.Job, k.plan(d, "none-live", 0))
		}
	})
	defer closeHost(t, h.Host)
	h.Capacity(graph.Bytes(w.capacity+1)*w.Page()-1, 3)
	s := k.spec(6)
	s.Weight = 2
	h.Submit(s, p)
	if err := run(t.Context(), h.Host); err != nil {
		t.Fatal(err)
	}
	if want := []lease.Capacity{{Pages: w.capacity}, {Pages: w.capacity, Number: 3}}; !slices.Equal(c.told, want) {
		t.Errorf("the lease was told %v, want %v", c.told, want)
	}
	var weights []int
	for _, j := range c.joins {
		weights = append(weights, j.Weight)
	}
	if want := []int{2, 5}; !slices.Equal(weights, want) {
		t.Errorf("the job joined with weights %v, want %v", weights, want)
	}
}

// Jobs whose arenas fit one at a time take turns, of whole iterations from Home to Home.
func TestTurns(t *testing.T) {
	const iterations = 9
	d := openSim(t)
	k, p := lenet(t), lenet(t).plan(d, "none-live", 0)
	w := watchPages(t, d.(device.Pager))
	w.capacity = int(p.Program().Arena/w.Page()) + 1
	var order []string
	alone := time.Duration(0)
	h := newHost(w, func(r *executor.Report) {
		order = append(order, r.Job)
		alone = max(alone, r.End-r.Begin)
	})
	defer closeHost(t, h.Host)
	c := &grantor{t: t, machine: lease.NewMachine(lease.Options{Still: 100 * time.Microsecond}), watch: w}
	h.Share(executor.Sharing{Lease: c, Turns: true})
	h.Capacity(graph.Bytes(w.capacity)*w.Page(), 0)
	for _, name := range []string{"a", "b", "c"} {
		s := k.spec(iterations)
		s.Name = name
		h.Submit(s, p)
	}
	if err := run(t.Context(), h.Host); err != nil {
		t.Fatal(err)
	}
	turns := len(slices.Compact(slices.Clone(order)))
	if len(order) != 3*iterations || turns < 6 || turns > 2*iterations {
		t.Errorf("iterations in the order %v: %d turns", order, turns)
	}
	if w.reserved > p.Program().Arena {
		t.Errorf("%v were reserved at once, an arena takes %v", w.reserved, p.Program().Arena)
	}
}

// pagesWatch is a device that sees what jobs hold.
type pagesWatch struct {
	device.Pager
	t        testing.TB
	capacity int // pages that they may hold together
	jobs     []*pagesJob
	reserved graph.Bytes // at most at once, by arenas
}

type pagesJob struct {
	device.PagedJob
	w     *pagesWatch
	name  string
	held  int
	arena graph.Bytes
	fails int // the Hold from now that fails; 0: none does
}

func watchPages(t testing.TB, d device.Pager) *pagesWatch { return &pagesWatch{Pager: d, t: t} }

func (w *pagesWatch) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	j, err := w.Pager.Open(g, o)
	if err != nil {
		return nil, err
	}
	w.jobs = append(w.jobs, &pagesJob{PagedJob: j.(device.PagedJob), w: w, name: o.Name})
	return w.jobs[len(w.jobs)-1], nil
}

// has is what the job of a name has.
func (w *pagesWatch) has(name string) (pages int, arena graph.Bytes) {
	for _, j := range w.jobs {
		if j.name == name {
			pages, arena = pages+j.held, arena+j.arena
		}
	}
	return pages, arena
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
	if sum > j.w.capacity {
		j.w.t.Errorf("%d pages are held, the capacity is %d", sum, j.w.capacity)
	}
	if j.fails > 0 {
		if j.fails--; j.fails == 0 {
			return errFull
		}
	}
	return j.PagedJob.Hold(pages)
}

func (j *pagesJob) Reserve(arena graph.Bytes) error {
	j.held, j.arena = 0, arena
	var sum graph.Bytes
	for _, other := range j.w.jobs {
		sum += other.arena
	}
	j.w.reserved = max(j.w.reserved, sum)
	return j.PagedJob.Reserve(arena)
}

func (j *pagesJob) Close() error {
	j.held, j.arena = 0, 0
	return j.PagedJob.Close()
}
