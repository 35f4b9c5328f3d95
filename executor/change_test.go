package executor_test

import (
	"context"
	"testing"

	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph/autodiff"
	"tensile/internal/long"
	"tensile/models"
	"tensile/plan/proof"
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
	if long.On() {
		tasks = append(tasks, newTask(t, "third", "resnet:1,1,1,1", models.Config{Image: 32, Batch: 2,
			Optimizer: autodiff.Momentum{}}, 6))
	}
	w := watch(t, d, 0)
	programs := map[string][]proof.Proven{}
	byName, asked := map[string]*task{}, map[string]int{}
	var h *host
	h = newHost(w, func(r *executor.Report) {
		k := byName[r.Job]
		k.reports = append(k.reports, r)
		if all := programs[r.Job]; asked[r.Job]+1 < len(all) && r.Epoch == all[asked[r.Job]].Program().Plan.Epoch {
			asked[r.Job]++
			h.Change(r.Job, all[asked[r.Job]])
		}
	})
	defer closeHost(t, h.Host)
	for _, k := range tasks {
		byName[k.name], programs[k.name] = k, k.programs(d)
		h.Submit(k.spec(iterations), programs[k.name][0])
	}
	if err := run(context.Background(), h.Host); err != nil {
		t.Fatal(err)
	}
	for _, k := range tasks {
		k.take(h.ended[k.name])
		k.same(k.vanilla(d, iterations))
		k.checkReports(iterations)
		e := h.ended[k.name]
		if want := len(programs[k.name]); e.Plans != want || w.plans(k.name) != want {
			t.Errorf("job %s: %d plans, %d reservations, want %d", k.name, e.Plans, w.plans(k.name), want)
		}
		if e.Transition <= 0 {
			t.Errorf("job %s: changes took %v", k.name, e.Transition)
		}
		if touched, most := e.Touched, programs[k.name][0].Program().Arena; touched <= 0 || touched > most {
			t.Errorf("job %s: %d bytes touched, the largest arena is %d", k.name, touched, most)
		}
	}
}

// However many events come together, a command of the observer is carried out before the next of them: only the bodies
// in flight are trained under the old plan.
func TestChangeAmidEvents(t *testing.T) {
	d := openCPU(t)
	k := small(t)[0]
	programs := k.programs(d)
	w := watch(t, d, 0)
	w.late = true
	var h *host
	h = newHost(w, func(r *executor.Report) {
		if k.reports = append(k.reports, r); r.Iteration == 4 {
			h.Change(k.name, programs[1])
		}
	})
	defer closeHost(t, h.Host)
	h.Submit(k.spec(12), programs[0])
	if err := run(context.Background(), h.Host); err != nil {
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

// Changes may come from any goroutine at any time, to jobs that have ended too.
func TestChangesFromOutside(t *testing.T) {
	const iterations = 24
	d := openCPU(t)
	tasks := small(t)
	reported := make(chan struct{}, 1)
	h := newHost(watch(t, d, 0), func(*executor.Report) {
		select {
		case reported <- struct{}{}:
		default:
		}
	})
	defer closeHost(t, h.Host)
	programs := make([][]proof.Proven, len(tasks))
	for i, k := range tasks {
		programs[i] = k.programs(d)
		h.Submit(k.spec(iterations), programs[i][1])
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
	if err := run(context.Background(), h.Host); err != nil {
		t.Fatal(err)
	}
	close(ended)
	if n := <-changed; n < 4 {
		t.Errorf("%d changes", n)
	}
	for _, k := range tasks {
		k.take(h.ended[k.name])
		k.same(k.vanilla(d, iterations))
		if n := h.ended[k.name].Plans; n < 2 {
			t.Errorf("job %s trained under %d plans", k.name, n)
		}
	}
}
