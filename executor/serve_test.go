package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/plan/proof"
)

// heard is an observer that writes down what becomes of jobs, and says when to do what.
type heard struct {
	host *executor.Host
	log  []string
	on   map[string]func() // by line of the log
	ends map[string]*executor.Ended

	each func(executor.Event) // told first; nil: nobody

	snapshots []*executor.Snapshot
}

func newHeard(d device.Device) *heard {
	l := &heard{on: map[string]func(){}, ends: map[string]*executor.Ended{}}
	l.host = executor.NewHost(d, l.hear)
	return l
}

func (l *heard) hear(e executor.Event) {
	line := e.Job + " "
	if l.each != nil {
		l.each(e)
	}
	switch {
	case e.Report != nil:
		line = fmt.Sprintf("%s iteration %d of epoch %d", e.Job, e.Report.Iteration, e.Report.Epoch)
	case e.Applied != nil:
		line += fmt.Sprintf("applied %d", e.Applied.Epoch)
	case e.Home:
		line += "home"
	case e.Ended != nil && e.Ended.Err != nil:
		line += "failed: " + e.Ended.Err.Error()
	case e.Ended != nil:
		line += fmt.Sprintf("ended after %d", e.Ended.Iterations)
		l.ends[e.Job] = e.Ended
	case e.Refused != nil:
		line += "refused: " + e.Refused.Error()
	case e.Removed:
		line += "removed"
	case e.Parked != 0:
		line += "parked"
	case e.Snapshot != nil && e.Snapshot.Err != nil:
		line += "no snapshot: " + e.Snapshot.Err.Error()
	case e.Snapshot != nil:
		line += fmt.Sprintf("snapshot of %d", e.Snapshot.Iteration)
		l.snapshots = append(l.snapshots, e.Snapshot)
	default:
		panic(fmt.Sprintf("executor_test: %+v tells nothing", e))
	}
	l.log = append(l.log, line)
	if do := l.on[line]; do != nil {
		do()
	}
}

// of returns what was heard of a job, iterations left out, and how many there were.
func (l *heard) of(job string) (lines []string, iterations int) {
	for _, line := range l.log {
		if rest, ok := strings.CutPrefix(line, job+" "); ok && strings.HasPrefix(rest, "iteration") {
			iterations++
		} else if ok {
			lines = append(lines, rest)
		}
	}
	return lines, iterations
}

// check compares what was heard of a job.
func (l *heard) check(t *testing.T, job string, iterations int, want ...string) {
	t.Helper()
	lines, n := l.of(job)
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("of job %s was heard (-want +got):\n%s", job, diff)
	}
	if n != iterations {
		t.Errorf("of job %s %d iterations were reported, want %d", job, n, iterations)
	}
}

// epoch returns the plan that keeps everything with another epoch.
func (k *task) epoch(d device.Device, epoch int64) proof.Proven {
	k.t.Helper()
	return k.relabelled(k.plan(d, "none-live", 0), epoch)
}

func named(t *testing.T, name string) *task {
	k := lenet(t)
	k.name = name
	return k
}

func openSim(t testing.TB) device.Device {
	t.Helper()
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	return sim.New(facts, sim.Options{})
}

// Jobs come, change, are stopped and removed while another trains, under names that were used before; what they train
// has the bits of a run alone. In the end the host waits, until it is told that this is enough.
func TestServe(t *testing.T) {
	engines(t, func(t *testing.T, d *cpu.Device) { serve(t, d, true) })
	t.Run("sim", func(t *testing.T) { serve(t, openSim(t), false) })
}

// serve tells the story on a device, with data or without.
func serve(t *testing.T, d device.Device, data bool) {
	w := watch(t, d, 0)
	l := newHeard(w)
	defer closeHost(t, l.host)
	first, guest, again := named(t, "first"), named(t, "guest"), named(t, "guest")
	again.seed = 9
	one, two, three := first.epoch(d, 1), first.epoch(d, 2), first.epoch(d, 3)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	l.on["first iteration 2 of epoch 1"] = func() { l.host.Submit(guest.spec(100), one) }
	l.on["guest iteration 3 of epoch 1"] = func() { l.host.Change("guest", two) }
	l.on["guest iteration 8 of epoch 2"] = func() { l.host.Stop("guest") }
	ended := func() {
		guest.take(l.ends[guest.name])
		l.host.Remove("guest")
		l.host.Submit(again.spec(4), three)
		l.on["guest ended after 4"] = func() { l.host.Stop("first") }
	}
	for n := range 100 {
		l.on[fmt.Sprintf("guest ended after %d", n)] = ended
	}
	stopped := 0
	for n := range 10_000 {
		l.on[fmt.Sprintf("first ended after %d",
			n)] = func() { stopped = n; first.take(l.ends[first.name]); again.take(l.ends[again.name]); cancel(enough) }
	}
	l.host.Submit(first.spec(10_000), one)
	if err := l.host.Serve(ctx); !errors.Is(err, enough) {
		t.Fatalf("error %v, want %v", err, enough)
	}
	l.check(t, "first", stopped, "applied 1", "home", fmt.Sprintf("ended after %d", stopped))
	end := slices.IndexFunc(l.log, func(line string) bool { return strings.HasPrefix(line, "guest ended") })
	var trained int
	if fmt.Sscanf(l.log[end], "guest ended after %d", &trained); trained < 9 || trained > 11 {
		t.Errorf("stopped after iteration 8, %d were trained", trained)
	}
	l.check(t, "guest", trained+4, "applied 1", "home", "applied 2", "home", fmt.Sprintf("ended after %d", trained),
		"removed",
		"applied 3", "home", "ended after 4")
	if !data {
		return
	}
	for _, k := range []*task{first, guest, again} {
		k.same(k.vanilla(d, len(k.losses)))
	}
	if e := l.ends["guest"]; e.Plans != 1 || e.Touched <= 0 || e.Touched > three.Program().Arena || e.Transition <= 0 ||
		len(e.Weights) != len(again.weights) {
		t.Errorf("the job ended with %d plans, %d bytes touched of %d, %v in transitions, %d weights", e.Plans,
			e.Touched, three.Program().Arena, e.Transition, len(e.Weights))
	}
}

// A host takes in what is submitted while others train.
func TestSubmitDuringRun(t *testing.T) {
	d := openCPU(t)
	l := newHeard(d)
	defer closeHost(t, l.host)
	first, second := named(t, "first"), named(t, "second")
	p := first.epoch(d, 1)
	l.on["first iteration 1 of epoch 1"] = func() { l.host.Submit(second.spec(7), p) }
	l.host.Submit(first.spec(3), p)
	if err := run(t.Context(), l.host); err != nil {
		t.Fatal(err)
	}
	l.check(t, "first", 3, "applied 1", "home", "ended after 3")
	l.check(t, "second", 7, "applied 1", "home", "ended after 7")
	for _, k := range []*task{first, second} {
		k.take(l.ends[k.name])
		k.same(k.vanilla(d, len(k.losses)))
	}
}

// What cannot be added is heard of and harms nobody, in a run too.
func TestSubmitErrors(t *testing.T) {
	d := openCPU(t)
	k := named(t, "good")
	p := k.epoch(d, 1)
	w := watch(t, d, 2*p.Program().Arena)
	l := newHeard(w)
	defer closeHost(t, l.host)
	odd := placed(t, p, p.Program().Plan, d.Align()/2, d.Align()/2)
	l.on["good iteration 1 of epoch 1"] = func() {
		l.host.Submit(named(t, "variant").spec(2), altered(t, p, func(s *plan.Step) { s.Variant = "winograd" }))
		l.host.Submit(named(t, "odd").spec(2), odd)
		l.host.Submit(named(t, "good").spec(2), p)
		w.Device = refusing{d}
		l.host.Submit(named(t, "full").spec(2), p)
	}
	l.on["full failed: full"] = func() { w.Device = d; l.host.Submit(named(t, "full").spec(2), p) } // its name is free
	l.host.Submit(k.spec(5), p)
	if err := run(t.Context(), l.host); err != nil {
		t.Fatal(err)
	}
	l.check(t, "good", 5, "applied 1", "refused: add job good: there is a job of that name", "home", "ended after 5")
	l.check(t, "full", 2, "failed: full", "applied 1", "home", "ended after 2")
	for _, name := range []string{"variant", "odd"} {
		if lines, _ := l.of(name); len(lines) != 1 || !strings.HasPrefix(lines[0], "failed: job "+name) {
			t.Errorf("of job %s was heard %q, want why it was not added", name, lines)
		}
	}
	k.take(l.ends[k.name])
	k.same(k.vanilla(d, 5))
}

// While a host serves, commands that cannot be carried out are refused, and change nothing.
func TestServeRefuses(t *testing.T) {
	d := openCPU(t)
	k := named(t, "good")
	p := k.epoch(d, 1)
	l := newHeard(d)
	defer closeHost(t, l.host)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.on["good iteration 1 of epoch 1"] = func() {
		l.host.Change("good", altered(t, p, func(s *plan.Step) { s.Variant = "winograd" }))
		l.host.Change("nobody", p)
		l.host.Stop("nobody")
		l.host.Remove("nobody")
	}
	l.on["good ended after 6"] = cancel
	l.host.Submit(k.spec(6), p)
	if err := l.host.Serve(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	l.check(t, "nobody", 0, "refused: there is no job nobody", "refused: there is no job nobody", "removed")
	lines, _ := l.of("good")
	if len(lines) != 4 || !strings.Contains(lines[1], "no variant") {
		t.Errorf("of the job was heard %q, want a refusal", lines)
	}
	k.take(l.ends[k.name])
	k.same(k.vanilla(d, 6))
}

// A job for which the device has no arena any more fails alone, and its place is closed; another trains on, and the
// name is free.
func TestServeFails(t *testing.T) {
	d := openCPU(t)
	good, bad, again := named(t, "good"), named(t, "bad"), named(t, "bad")
	one, two := good.epoch(d, 1), good.epoch(d, 2)
	scarce := &scarce{Device: d, jobs: map[device.Job]*scarceJob{}}
	l := newHeard(scarce)
	defer closeHost(t, l.host)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.on["bad iteration 2 of epoch 1"] = func() { scarce.gone = "bad"; l.host.Change("bad", two) }
	l.on["bad failed: full"] = func() { l.host.Submit(named(t, "heir").spec(2), one) }
	l.on["heir ended after 2"] = func() {
		scarce.gone = ""
		l.host.Remove("bad")
		l.host.Submit(again.spec(3), two)
	}
	l.on["bad ended after 3"] = func() { l.host.Stop("good") }
	trained := 0
	for n := range 10_000 {
		l.on[fmt.Sprintf("good ended after %d", n)] = func() { trained = n; cancel() }
	}
	l.host.Submit(good.spec(10_000), one)
	l.host.Submit(bad.spec(10_000), one)
	if err := l.host.Serve(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	l.check(t, "good", trained, "applied 1", "home", fmt.Sprintf("ended after %d", trained))
	l.check(t, "bad", len(bad.losses)+3, "applied 1", "home", "failed: full", "removed", "applied 2", "home",
		"ended after 3")
	l.check(t, "heir", 2, "applied 1", "home", "ended after 2")
	if scarce.closed != 1 {
		t.Errorf("%d places were closed, want that of the job that failed", scarce.closed)
	}
	for _, k := range []*task{good, again} {
		k.take(l.ends[k.name])
		k.same(k.vanilla(d, len(k.losses)))
	}
}

// A job that is removed in the middle of its training goes Home and ends first. In Home without a program it goes at
// once.
func TestRemove(t *testing.T) {
	d := openCPU(t)
	k, next := named(t, "job"), named(t, "next")
	p := k.epoch(d, 1)
	w := watch(t, d, 2*p.Program().Arena)
	w.late = true
	l := newHeard(w)
	defer closeHost(t, l.host)
	l.on["job iteration 4 of epoch 1"] = func() {
		l.host.Submit(next.spec(3), p)
		l.host.Submit(named(t, "waiting").spec(3), p)
		l.host.Remove("waiting")
		l.host.Remove("job")
		l.host.Remove("job")
	}
	for n := range 100 {
		l.on[fmt.Sprintf("job ended after %d", n)] = func() { k.take(l.ends[k.name]) }
	}
	l.host.Submit(k.spec(100), p)
	if err := run(t.Context(), l.host); err != nil {
		t.Fatal(err)
	}
	n := len(k.losses)
	if n < 5 || n > 7 {
		t.Errorf("removed after iteration 4, %d were trained", n)
	}
	l.check(t, "job", n, "applied 1", "home", fmt.Sprintf("ended after %d", n), "removed")
	l.check(t, "waiting", 0, "ended after 0", "removed")
	l.check(t, "next", 3, "applied 1", "home", "ended after 3")
	next.take(l.ends[next.name])
	for _, k := range []*task{k, next} {
		k.same(k.vanilla(d, len(k.losses)))
	}
}

// A job that the device takes no arena back from when it is removed has failed, and is removed all the same.
func TestRemoveFails(t *testing.T) {
	d := openCPU(t)
	k := named(t, "bad")
	scarce := &scarce{Device: d, jobs: map[device.Job]*scarceJob{}}
	l := newHeard(scarce)
	defer closeHost(t, l.host)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.on["bad iteration 2 of epoch 1"] = func() { scarce.gone, scarce.stuck = "bad", true; l.host.Remove("bad") }
	l.on["bad removed"] = cancel
	l.host.Submit(k.spec(10_000), k.epoch(d, 1))
	if err := l.host.Serve(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	l.check(t, "bad", len(k.losses), "applied 1", "failed: full", "removed")
}

// scarce is a device that has no arena for one of its jobs.
type scarce struct {
	device.Device
	jobs   map[device.Job]*scarceJob
	gone   string // the job
	stuck  bool   // it may not give back what it has either
	closed int
}

type scarceJob struct {
	device.Job
	device *scarce
	name   string
}

func (d *scarce) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	place, err := d.Device.Open(g, o)
	if err != nil {
		return nil, err
	}
	d.jobs[place] = &scarceJob{place, d, o.Name}
	return d.jobs[place], nil
}

func (d *scarce) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	events, err := d.Device.Next(ctx, wake)
	for i := range events {
		events[i].Job = d.jobs[events[i].Job]
	}
	return events, err
}

func (j *scarceJob) Reserve(arena graph.Bytes) error {
	if j.name == j.device.gone && (arena > 0 || j.device.stuck) {
		return errFull
	}
	return j.Job.Reserve(arena)
}

func (j *scarceJob) Snapshot() (device.Snapshot, error) {
	if j.name == j.device.gone && !j.device.stuck {
		return nil, errFull
	}
	return j.Job.Snapshot()
}

func (j *scarceJob) Close() error {
	j.device.closed++
	return j.Job.Close()
}
