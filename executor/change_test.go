package executor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/autodiff"
	"tensile/device/cpu"
	"tensile/executor"
	"tensile/models"
	"tensile/program"
)

// small returns two networks of different sizes and kinds.
func small(t *testing.T) []*task {
	t.Helper()
	second := "mlp"
	if executor.RaceEnabled {
		second = "lenet" // a hundredth of the weights
	}
	return []*task{
		newTask(t, "first", "lenet", models.Config{Image: 16, Batch: 4}, 3),
		newTask(t, "second", second, models.Config{Image: 14, Batch: 2}, 4),
	}
}

// Jobs change their plans five times each, in the middle of a run, with budgets from everything to the least that there
// is: they lose no bit and no iteration, and every change is counted.
func TestChangesKeepBits(t *testing.T) { engines(t, changesKeepBits) }

func changesKeepBits(t *testing.T, d *cpu.Device) {
	// a change is asked for under the plan before it; five more iterations may be under way by then
	const iterations = 30
	tasks := small(t)
	if !executor.RaceEnabled && !testing.Short() {
		tasks = append(tasks, newTask(t, "third", "resnet:1,1,1,1", models.Config{Image: 32, Batch: 2,
			Optimizer: autodiff.Momentum{}}, 6))
	}
	w := watch(t, d, 0)
	programs := map[string][]program.Proven{}
	byName, asked := map[string]*task{}, map[string]int{}
	var h *executor.Host
	h = executor.NewHost(w, 0, func(r *executor.Report) {
		k := byName[r.Job]
		k.reports = append(k.reports, r)
		if all := programs[r.Job]; asked[r.Job]+1 < len(all) && r.Epoch == all[asked[r.Job]].Program().Plan.Epoch {
			asked[r.Job]++
			h.Change(r.Job, all[asked[r.Job]])
		}
	})
	defer closeHost(t, h)
	for _, k := range tasks {
		byName[k.name], programs[k.name] = k, k.programs(d)
		if err := h.Add(k.spec(iterations), programs[k.name][0]); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, k := range tasks {
		k.take(h)
		k.same(k.vanilla(d, iterations))
		k.checkReports(iterations)
		m := h.Machine(k.name)
		if want := len(programs[k.name]); m.Plans() != want || w.plans(k.name) != want {
			t.Errorf("job %s: %d plans, %d reservations, want %d", k.name, m.Plans(), w.plans(k.name), want)
		}
		if m.Transition() <= 0 {
			t.Errorf("job %s: changes took %v", k.name, m.Transition())
		}
		if touched, most := h.Touched(k.name), programs[k.name][0].Program().Arena; touched <= 0 || touched > most {
			t.Errorf("job %s: %d bytes touched, the largest arena is %d", k.name, touched, most)
		}
	}
}

// However many events come together, a wish of the observer is heeded before the next of them: only the bodies in
// flight are trained under the old plan.
func TestChangeAmidEvents(t *testing.T) {
	d := openCPU(t)
	k := small(t)[0]
	programs := k.programs(d)
	w := watch(t, d, 0)
	w.late = true
	var h *executor.Host
	h = executor.NewHost(w, 0, func(r *executor.Report) {
		if k.reports = append(k.reports, r); r.Iteration == 4 {
			h.Change(k.name, programs[1])
		}
	})
	defer closeHost(t, h)
	if err := h.Add(k.spec(12), programs[0]); err != nil {
		t.Fatal(err)
	}
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	k.checkReports(12)
	for i, r := range k.reports {
		if want := map[bool]int64{true: 1, false: 2}[i <= 6]; r.Epoch != want {
			t.Errorf("iteration %d was trained under epoch %d, want %d", i, r.Epoch, want)
		}
	}
}

// checkReports checks that iterations were reported once each, one after the other, under epochs that never fall.
func (k *task) checkReports(want int) {
	k.t.Helper()
	if len(k.reports) != want {
		k.t.Errorf("job %s: %d iterations reported, want %d", k.name, len(k.reports), want)
	}
	epochs := 0
	for i, r := range k.reports {
		if r.Iteration != i || r.End < r.Begin || r.Stall < 0 || r.Stall > r.End-r.Begin {
			k.t.Errorf("job %s: report %d is of iteration %d, %v to %v, stall %v", k.name, i, r.Iteration, r.Begin,
				r.End, r.Stall)
		}
		if i > 0 && (r.Epoch < k.reports[i-1].Epoch || r.Begin < k.reports[i-1].End) {
			k.t.Errorf("job %s: iteration %d begins at %v under epoch %d, the one before ended at %v under %d", k.name,
				i, r.Begin, r.Epoch,
				k.reports[i-1].End, k.reports[i-1].Epoch)
		}
		if i == 0 || r.Epoch != k.reports[i-1].Epoch {
			epochs++
		}
	}
	if epochs < 2 {
		k.t.Errorf("job %s trained under %d epochs", k.name, epochs)
	}
}

// Two jobs that do not fit together with their large plans swap their shares to and fro: the one that grows waits for
// the other one, also when it is asked first, and the arenas never exceed the budget.
func TestSharesAreSwapped(t *testing.T) {
	const rounds, forever = 4, 1 << 20
	d := openCPU(t)
	tasks := small(t)
	var large, least []program.Proven
	for _, k := range tasks {
		all := k.programs(d)
		large, least = append(large, all[0]), append(least, all[len(all)-1])
	}
	budget := max(large[0].Program().Arena+least[1].Program().Arena, least[0].Program().Arena+large[1].Program().Arena)
	if budget >= large[0].Program().Arena+large[1].Program().Arena {
		t.Fatalf("both large plans fit %s", budget)
	}
	w := watch(t, d, budget)
	round, reached := 1, [2]bool{}
	var h *executor.Host
	h = executor.NewHost(w, budget, func(r *executor.Report) {
		i := slices.IndexFunc(tasks, func(k *task) bool { return k.name == r.Job })
		tasks[i].reports = append(tasks[i].reports, r)
		if reached[i] = reached[i] || r.Epoch == int64(round); !reached[0] || !reached[1] {
			return
		}
		round, reached = round+1, [2]bool{}
		if round > rounds {
			h.Stop("first")
			h.Stop("second")
			return
		}
		shrinks := round % 2 // the first, then the second, then the first
		grows := 1 - shrinks
		h.Change(tasks[grows].name, tasks[grows].relabelled(large[grows], int64(round)))
		h.Change(tasks[shrinks].name, tasks[shrinks].relabelled(least[shrinks], int64(round)))
	})
	defer closeHost(t, h)
	for i, p := range []program.Proven{large[0], least[1]} {
		if err := h.Add(tasks[i].spec(forever), tasks[i].relabelled(p, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if round != rounds+1 {
		t.Errorf("%d rounds, want %d", round-1, rounds)
	}
	for i, k := range tasks {
		k.take(h)
		k.checkReports(len(k.losses))
		k.same(k.vanilla(d, len(k.losses)))
		if n := h.Machine(k.name).Plans(); n != rounds || w.plans(k.name) != rounds {
			t.Errorf("job %d: %d plans and %d reservations, want %d", i, n, w.plans(k.name), rounds)
		}
	}
	want := []string{reservation(tasks[0], large[0]), reservation(tasks[1], least[1])}
	for round := 2; round <= rounds; round++ {
		shrinks := round % 2
		want = append(want, reservation(tasks[shrinks], least[shrinks]), reservation(tasks[1-shrinks],
			large[1-shrinks]))
	}
	if diff := cmp.Diff(want, w.log); diff != "" {
		t.Errorf("reservations (-want +got):\n%s", diff)
	}
}

func reservation(k *task, p program.Proven) string {
	return fmt.Sprintf("%s %d", k.name, p.Program().Arena)
}

// Changes may come from any goroutine at any time, to jobs that have ended too.
func TestChangesFromOutside(t *testing.T) {
	const iterations = 24
	d := openCPU(t)
	tasks := small(t)
	reported := make(chan struct{}, 1)
	h := executor.NewHost(watch(t, d, 0), 0, func(*executor.Report) {
		select {
		case reported <- struct{}{}:
		default:
		}
	})
	defer closeHost(t, h)
	programs := make([][]program.Proven, len(tasks))
	for i, k := range tasks {
		programs[i] = k.programs(d)
		if err := h.Add(k.spec(iterations), programs[i][1]); err != nil {
			t.Fatal(err)
		}
	}
	ended, changed := make(chan struct{}), make(chan int)
	go func() {
		changes := 0
		defer func() { changed <- changes }()
		for epoch := int64(100); ; epoch++ {
			for i, k := range tasks {
				h.Change(k.name, k.relabelled(programs[i][int(epoch)%len(programs[i])], epoch))
				changes++
			}
			select {
			case <-reported:
			case <-ended:
				return
			}
		}
	}()
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	close(ended)
	if n := <-changed; n < 4 {
		t.Errorf("%d changes", n)
	}
	for _, k := range tasks {
		k.take(h)
		k.same(k.vanilla(d, iterations))
		if n := h.Machine(k.name).Plans(); n < 2 {
			t.Errorf("job %s trained under %d plans", k.name, n)
		}
	}
}

// A job alone that is granted more than it may have is an error of Run that names job and budget.
func TestChangeBeyondTheBudget(t *testing.T) {
	d := openCPU(t)
	k := small(t)[0]
	programs := k.programs(d)
	var h *executor.Host
	h = executor.NewHost(d, programs[1].Program().Arena, func(r *executor.Report) {
		if r.Iteration == 2 {
			h.Change(k.name, programs[0])
		}
	})
	defer closeHost(t, h)
	if err := h.Add(k.spec(100), programs[1]); err != nil {
		t.Fatal(err)
	}
	err := h.Run(context.Background())
	want := "job first: its plan needs an arena of " + programs[0].Program().Arena.String() + ", the budget is " +
		programs[1].Program().Arena.String()
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
