package bench

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/controller/memory"
	"tensile/controller/plans"
	"tensile/graph"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/plan"
	"tensile/scheduler/planner"
)

// trial is one run of jobs that train together, through a controller, an agent and a host.
type trial struct {
	budget   graph.Bytes // 0: none
	real     bool        // time is
	refused  string      // why there are no plans for all jobs; "": there are
	jobs     []trialJob
	planning []time.Duration // of a processor, for each request for plans of all jobs
	peak     graph.Bytes     // most that the jobs claimed together by the plans in force
	run      *local.Run      // nil if not all jobs were trained to their end
}

// trialJob is what was measured of a job.
type trialJob struct {
	plans      map[int64]planFigures // by epoch
	iterations []iteration           // in their order, from the first one on
}

// planFigures are what a plan does in each iteration.
type planFigures struct {
	claim memory.Claim
	swaps graph.Bytes // copied both ways; inputs left out
	again []int       // steps that execute an op once more
}

type iteration struct {
	epoch     int64
	wall      time.Duration
	stall     time.Duration
	recompute time.Duration
}

// Reasons for the end of a run that is no failure.
var (
	errEnough  = errors.New("all jobs have done their iterations")
	errRefused = errors.New("there is no plan")
)

// endless is how many iterations jobs are to do that are stopped long before: enough that better plans pay.
const endless = 10_000

// try trains tasks by what a configuration says of policy, budget and sharing. Unless the stage is for whole runs, all
// jobs train until the last of them has done the iterations.
func (s *stage) try(tasks []task.Task, c controller.Config) (*trial, error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	t := &trial{budget: c.Budget, real: s.whole, jobs: make([]trialJob, len(tasks))}
	for i := range t.jobs {
		t.jobs[i].plans = make(map[int64]planFigures)
	}
	d := s.device()
	on := c.SharedDevice(planner.Describe(d, planner.Roofline(d.Facts())))
	p := &plans.Worker{Settings: c.PlanSettings(), Device: on}
	demanded := endless
	if s.whole {
		demanded = s.iterations
	}
	run, err := local.Train(ctx, d, on, tasks, local.Options{Config: c, Iterations: demanded,
		Plan: func(ctx context.Context, q *plans.Request) *plans.Result {
			runtime.LockOSThread()
			since := threadTime()
			planned := p.Plan(ctx, q)
			took := threadTime() - since
			runtime.UnlockOSThread()
			if ctx.Err() != nil {
				return planned
			}
			t.planning = append(t.planning, took)
			if t.refused = refusal(q, planned); t.refused != "" {
				cancel(errRefused)
			}
			for i, j := range planned.Jobs {
				if l := j.Layout; l != nil {
					at := slices.IndexFunc(tasks, func(t task.Task) bool { return t.Name == q.Jobs[i].Spec.Name })
					t.jobs[at].plans[l.Wire.Plan.Epoch] = figuresOf(tasks[at].Graph, l)
				}
			}
			return planned
		},
		Observe: func(it local.Iterated) {
			if ctx.Err() != nil {
				return
			}
			j, r := &t.jobs[it.Job], it.Report
			one := iteration{epoch: r.Epoch, wall: r.Wall, stall: r.Stall}
			for _, step := range j.plans[r.Epoch].again {
				one.recompute += r.Steps[step]
			}
			j.iterations = append(j.iterations, one)
			t.peak = max(t.peak, t.claimedBytes())
			few := func(j trialJob) bool { return len(j.iterations) < s.iterations }
			if !s.whole && !slices.ContainsFunc(t.jobs, few) {
				cancel(errEnough)
			}
		}})
	switch {
	case err == nil:
		t.run = run
	case errors.Is(err, errRefused) || errors.Is(err, errEnough):
	default:
		return nil, err
	}
	return t, nil
}

// refusal says why jobs that have come cannot be trained together; "": they can.
func refusal(q *plans.Request, p *plans.Result) string {
	if q.Admitted == len(q.Jobs) {
		return "" // all train: these were to be better plans
	}
	for i := range q.Jobs {
		if why, never := p.NeverFit[i]; never {
			return reworded(why)
		}
	}
	if p.NoPlan != nil {
		return reworded(p.NoPlan.Why)
	}
	return ""
}

// reworded gives the refusals of one job and of several one form, without the budget, which has a column: "needs 3MiB:
// why".
func reworded(why string) string {
	if _, rest, ok := strings.Cut(why, "even alone: "); ok {
		why = strings.TrimSuffix(rest, "; "+plans.SmallerHint) // the rest is about any job
		if need, rest, ok := strings.Cut(why, " and the budget is "); ok {
			_, because, _ := strings.Cut(rest, "; ")
			return strings.TrimSuffix(strings.TrimPrefix(need, "it ")+": "+because, ": ")
		}
		return why
	}
	if _, rest, ok := strings.Cut(why, " is too small: "); ok {
		if need, because, ok := strings.Cut(rest, " needed: "); ok {
			return "needs " + need + ": " + because
		}
	}
	return why
}

// figuresOf works out what a plan does.
func figuresOf(g *graph.Graph, l *plans.ProvenLayout) planFigures {
	p := l.Wire.Plan
	f := planFigures{claim: memory.Claim{Base: l.Wire.Arena, Arena: l.Wire.Arena}, swaps: swapped(g, p)}
	if l.Claim != nil { // jobs share memory
		f.claim = *l.Claim
	}
	ran := make([]bool, len(g.Ops))
	for i, s := range p.Steps {
		if ran[s.Op] {
			f.again = append(f.again, i)
		}
		ran[s.Op] = true
	}
	return f
}

// swapped is what a plan copies in an iteration, both ways; inputs arrive whatever the plan.
func swapped(g *graph.Graph, p *plan.Plan) (sum graph.Bytes) {
	for _, m := range p.Moves {
		if s := &g.Storages[m.Storage]; m.Kind != plan.Drop && s.Role != graph.Input {
			sum += s.Bytes
		}
	}
	return sum
}

// claimedBytes is what the jobs claim together that have trained, by the plans of their last iterations.
func (t *trial) claimedBytes() graph.Bytes {
	var sum memory.Sum
	for i := range t.jobs {
		if j := &t.jobs[i]; len(j.iterations) > 0 {
			sum = sum.Add(j.plans[j.iterations[len(j.iterations)-1].epoch].claim)
		}
	}
	return sum.Bytes()
}

// phase are the iterations of a job in a phase. The first of all and the first with other plans are left out: they come
// from Home.
func (j *trialJob) phase(phase string) (of []iteration) {
	if len(j.iterations) == 0 {
		return nil
	}
	first, last := j.iterations[0].epoch, j.iterations[len(j.iterations)-1].epoch
	for i, one := range j.iterations {
		fresh := i == 0 || one.epoch != j.iterations[i-1].epoch
		in := phase == wholeRun || phase == coldStart && one.epoch == first || phase == updated && one.epoch == last
		if in && !fresh {
			of = append(of, one)
		}
	}
	return of
}

// wall is the mean time of iterations, or where time is real that of the shortest, as what else a machine does only
// ever adds to it; 0 without any.
func wall(of []iteration, real bool) float64 {
	var sum time.Duration
	if real && len(of) > 0 {
		return float64(slices.MinFunc(of, func(a, b iteration) int { return cmp.Compare(a.wall, b.wall) }).wall)
	}
	for _, one := range of {
		sum += one.wall
	}
	return float64(sum) / float64(max(1, len(of)))
}

// figures are the results of a trial in a phase.
type figures struct {
	peak      graph.Bytes
	eor       float64 // the mean over jobs; 0: a job has no iteration in the phase
	first     float64 // the same of the first iterations
	swaps     float64 // bytes an iteration, of all jobs
	recompute float64 // milliseconds an iteration, of all jobs
	stall     float64 // the same
	wall      float64 // the same
	planning  float64 // milliseconds per request
}

// figures compares the trial with one without a plan.
func (t *trial) figures(phase string, vanilla *trial) figures {
	var f figures
	var claims memory.Sum
	known := true
	for i := range t.jobs {
		j, v := &t.jobs[i], &vanilla.jobs[i]
		of := j.phase(phase)
		took, plain := wall(of, t.real), wall(v.phase(wholeRun), t.real)
		known = known && took > 0 && plain > 0
		if !known {
			break
		}
		f.eor += took / plain / float64(len(t.jobs))
		f.first += float64(j.iterations[0].wall) / float64(v.iterations[0].wall) / float64(len(t.jobs))
		var swaps graph.Bytes
		var again, stall time.Duration
		for _, one := range of {
			swaps += j.plans[one.epoch].swaps
			again, stall = again+one.recompute, stall+one.stall
		}
		f.swaps += float64(swaps) / float64(len(of))
		f.recompute += report.Milliseconds(again) / float64(len(of))
		f.stall += report.Milliseconds(stall) / float64(len(of))
		f.wall += took / float64(time.Millisecond)
		claims = claims.Add(j.plans[of[0].epoch].claim)
	}
	if !known {
		return figures{}
	}
	if f.peak = claims.Bytes(); phase == wholeRun {
		f.peak = t.peak
	}
	if t.budget > 0 { // jobs change plans one after the other, and what one has given up may count still
		f.peak = min(f.peak, t.budget)
	}
	for _, took := range t.planning {
		f.planning += report.Milliseconds(took) / float64(len(t.planning))
	}
	return f
}

// hasSameBits reports whether all losses and weights are those of another trial; nil: there are none.
func (t *trial) hasSameBits(other *trial) *bool {
	if t.run == nil || other.run == nil {
		return nil
	}
	same := true
	for i := range t.run.Jobs {
		digest := t.run.Jobs[i].Digest()
		if digest == "" {
			return nil
		}
		same = same && digest == other.run.Jobs[i].Digest()
	}
	return &same
}

// footprintOf is what a job has on the device in an iteration by its plan: milliseconds and MiB.
func footprintOf(p *planner.Planned, job int) (points plotter.XYs) {
	slots, timing := p.Jobs[job].Footprint.Slots, p.Timing(job)
	for i, c := range p.Programs[job].Program().Body.Commands {
		if c.Kind.Executes() {
			points = append(points, plotter.XY{X: report.Milliseconds(timing.Start[i]),
				Y: float64(slots[len(points)]) / float64(graph.MiB)})
		}
	}
	return points
}
