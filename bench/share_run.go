package bench

import (
	"slices"
	"time"

	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/plan/proof"
)

// recorder is a lease that writes down what it has granted.
type recorder struct {
	*lease.Machine
	holds map[lease.Job][]hold
}

// hold is what a job holds from a time on.
type hold struct {
	from  time.Duration
	pages int
}

func newRecorder(o lease.Options) *recorder {
	return &recorder{lease.NewMachine(o), make(map[lease.Job][]hold)}
}

// Step implements executor.Lease.
func (r *recorder) Step(in lease.Input) []lease.Output {
	if in.Join != nil && r.holds[in.Join.Job] == nil {
		r.holds[in.Join.Job] = []hold{{}}
	}
	out := r.Machine.Step(in)
	for job, holds := range r.holds {
		if pages, _ := r.Holds(job); pages != holds[len(holds)-1].pages {
			r.holds[job] = append(holds, hold{in.Now, pages})
		}
	}
	return out
}

// sharedRun is what was measured of jobs together.
type sharedRun struct {
	iteration []time.Duration // of each job, on average
	touched   graph.Bytes
	gate      float64
	holds     map[lease.Job][]hold
	first     time.Duration // when all jobs are warm
}

// train trains some of the jobs together until each has done the iterations that are measured, while all the others
// train. The first ones of each are left out. Where they share memory by a method, sharing names its word.
func (m *shared) train(programs []proof.Proven, tasks []task.Task, sharing executor.Sharing,
	capacity graph.Bytes) (*sharedRun, error) {
	const warm = 4
	d := m.device()
	reports := make([][]*executor.Report, len(tasks))
	var failed error
	h := executor.NewHost(d, func(e executor.Event) {
		switch {
		case e.Report != nil:
			i := slices.IndexFunc(tasks, func(t task.Task) bool { return t.Name == e.Job })
			reports[i] = append(reports[i], e.Report)
		case e.Ended != nil && e.Ended.Err != nil:
			failed = e.Ended.Err
		case e.Refused != nil:
			failed = e.Refused
		}
	})
	h.Share(sharing)
	if capacity > 0 {
		h.Capacity(capacity, 0)
	}
	for i, t := range tasks {
		h.Submit(executor.SpecOf(t, 1<<30, func(int, float32) {}), programs[i])
	}
	wanting := func(r []*executor.Report) bool {
		return len(r) <= warm+m.options.Iterations || sharing.Turns && len(turnsOf(r)) < 5
	}
	for slices.ContainsFunc(reports, wanting) && failed == nil {
		if _, err := h.Poll(m.ctx); err != nil {
			failed = err
		}
	}
	run := &sharedRun{touched: d.PeakHeld()}
	if r, ok := sharing.Lease.(*recorder); ok {
		run.holds = r.holds
	}
	for _, r := range reports {
		if len(r) > warm {
			run.first = max(run.first, r[warm].End)
		}
	}
	var iterations int
	var gate time.Duration
	for _, r := range reports {
		if sharing.Turns {
			run.iteration = append(run.iteration, perTurn(r))
			continue
		}
		r = r[min(len(r), warm):]
		for len(r) > 1 && r[0].End < run.first {
			r = r[1:]
		}
		if len(r) < 2 {
			continue
		}
		run.iteration = append(run.iteration, (r[len(r)-1].End-r[0].End)/time.Duration(len(r)-1))
		for _, each := range r[1:] {
			gate += each.Gate
			iterations++
		}
	}
	run.gate = report.Milliseconds(gate) / float64(max(iterations, 1))
	if err := h.Close(); failed == nil {
		failed = err
	}
	return run, failed
}

// turnsOf returns the first iteration of each turn.
func turnsOf(reports []*executor.Report) (first []int) {
	for i, r := range reports {
		if i == 0 || r.Left != reports[i-1].Left {
			first = append(first, i)
		}
	}
	return first
}

// perTurn is the time of an iteration, on average over turns and the waits between them; the first turn is left out.
func perTurn(reports []*executor.Report) time.Duration {
	turns := turnsOf(reports)
	if len(turns) < 3 {
		return 0
	}
	from, to := turns[1], turns[len(turns)-1]
	return (reports[to].Left - reports[from].Left) / time.Duration(to-from)
}
