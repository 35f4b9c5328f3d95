package report

import (
	"maps"
	"math"
	"slices"
	"time"

	"tensile/controller/local"

	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Metrics are the figures of a run of one job, or of all jobs together. Fields that were not measured are nil.
type Metrics struct {
	Memory
	Touched    graph.Bytes `json:"touched_bytes"`
	EOR        *float64    `json:"eor"`
	EORLow     *float64    `json:"eor_low"`  // the min over blocks of iterations
	EORHigh    *float64    `json:"eor_high"` // the max
	CBR        *float64    `json:"cbr"`
	Stall      float64     `json:"stall_ms"`
	Gate       float64     `json:"gate_ms,omitzero"` // waits for memory that other jobs had
	Plans      int         `json:"plans"`
	Transition float64     `json:"transition_ms"`
}

// JobMetrics are the figures of one job.
type JobMetrics struct {
	Job          string   `json:"job"`
	Model        string   `json:"model"`
	Iterations   int      `json:"iterations"`
	LossFirst    *float64 `json:"loss_first"`
	LossLast     *float64 `json:"loss_last"`
	BitIdentical *bool    `json:"bit_identical"`
	Digest       *string  `json:"digest"` // the digest of all losses and weights; nil without data
	FirstEOR     *float64 `json:"first_iteration_eor"`
	// from when the first of all jobs left Home to the end of this one's first iteration, and the same against the
	// vanilla run
	Start      *float64 `json:"start_ms"`
	StartEOR   *float64 `json:"start_eor"`
	Prediction *float64 `json:"predictor_mape"` // mean relative error of the latencies of the first plan
	// share of the test images whose class the trained network names; nil without a test set
	Accuracy   *float64 `json:"accuracy"`
	TestImages int      `json:"test_images"`
	Metrics
}

// Training is the outcome of a run, and how it compares with a vanilla run if there was one.
type Training struct {
	Device   string       `json:"device"`
	Policy   string       `json:"policy"`
	Sharing  wire.Sharing `json:"memory_sharing,omitzero"`
	Budget   graph.Bytes  `json:"budget_bytes"` // 0: none
	Link     float64      `json:"link_bytes_per_second"`
	Latency  string       `json:"latencies"` // what the first plan took them from
	PlanTime float64      `json:"plan_ms"`
	PackTime float64      `json:"pack_ms"`
	Proof    float64      `json:"prove_ms"`
	Work     int64        `json:"planning_steps"`
	Limited  bool         `json:"planning_limited"` // the search for the first plan ended at its limit of steps
	FirstEOR *float64     `json:"worst_first_iteration_eor"`
	StartEOR *float64     `json:"worst_start_eor"`
	Jobs     []JobMetrics `json:"jobs"`
	Total    Metrics      `json:"total"`
}

// Milliseconds is a duration as the reports give it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Compare reports on a run of planned tasks within a budget (0: none). saved is what the plans save; vanilla may be
// nil.
func Compare(tasks []task.Task, p *planner.Planned, saved []Memory, budget graph.Bytes,
	run, vanilla *local.Run) *Training {
	r := &Training{Budget: budget, PlanTime: Milliseconds(p.PlanTime), PackTime: Milliseconds(p.PackTime),
		Proof: Milliseconds(p.Proof), Work: p.Work, Limited: p.Limited}
	for i, t := range tasks {
		j := JobMetrics{Job: t.Name, Model: t.Model, Iterations: run.Jobs[i].Iterations}
		memory := saved[i]
		memory.Arena, memory.SlotPeak = run.Jobs[i].Arena, run.Jobs[i].SlotPeak // plans may have changed
		j.Metrics = Metrics{Touched: run.Jobs[i].Touched, Stall: Milliseconds(run.Jobs[i].Stall),
			Gate: Milliseconds(run.Jobs[i].Gate), Plans: run.Jobs[i].Plans,
			Transition: Milliseconds(run.Jobs[i].Transition)}
		j.Memory.Add(memory)
		if losses := run.Jobs[i].Losses; len(losses) > 0 {
			j.LossFirst, j.LossLast = finiteLoss(losses[0]), finiteLoss(losses[len(losses)-1])
		}
		if took, ok := startupTime(run, i); ok {
			ms := Milliseconds(took)
			j.Start = &ms
		}
		if digest := run.Jobs[i].Digest(); digest != "" {
			j.Digest = &digest
		}
		j.Prediction = run.Jobs[i].Watched.Error(p.Jobs[i].Plan)
		r.Total.add(j.Metrics)
		if vanilla != nil {
			j.relate(overhead(run, vanilla, i))
			j.BitIdentical = identical(&run.Jobs[i], &vanilla.Jobs[i])
			j.FirstEOR = firstEOR(&run.Jobs[i].Watched, &vanilla.Jobs[i].Watched)
			j.StartEOR = startEOR(run, vanilla, i)
			r.FirstEOR, r.StartEOR = largerOf(r.FirstEOR, j.FirstEOR), largerOf(r.StartEOR, j.StartEOR)
		}
		r.Jobs = append(r.Jobs, j)
	}
	r.Total.ZeroStall = p.ZeroStall
	if budget > 0 {
		r.Total.limit(budget)
	}
	if vanilla != nil {
		r.Total.relate(overhead(run, vanilla, everyJob))
	}
	return r
}

func (m *Metrics) add(n Metrics) {
	m.Memory.Add(n.Memory)
	m.Touched += n.Touched
	m.Stall += n.Stall
	m.Gate += n.Gate
	m.Plans += n.Plans
	m.Transition += n.Transition
}

// limit caps the sums over jobs at the budget. Where plans have changed, the maxima of the jobs occurred at different
// times, so that their sum can exceed the budget, which all arenas together never did.
func (m *Metrics) limit(budget graph.Bytes) {
	m.Memory.limit(budget)
	m.Touched = min(m.Touched, m.Arena)
}

// TakeTurns drops how long iterations took against a vanilla run: jobs took turns, each trained alone, and how long it
// waited for the others is in none of its iterations.
func (r *Training) TakeTurns() {
	r.FirstEOR = nil
	r.Total.EOR, r.Total.EORLow, r.Total.EORHigh, r.Total.CBR = nil, nil, nil, nil
	for i := range r.Jobs {
		j := &r.Jobs[i]
		j.FirstEOR, j.EOR, j.EORLow, j.EORHigh, j.CBR = nil, nil, nil, nil, nil
	}
}

// relate takes EOR (TENSILE, V-A) with its spread, and works out CBR; nil: nothing is known.
func (m *Metrics) relate(eor *spread) {
	if eor != nil {
		cbr := m.MSRLive / eor.value
		m.EOR, m.EORLow, m.EORHigh, m.CBR = &eor.value, &eor.low, &eor.high, &cbr
	}
}

// finiteLoss returns a loss for JSON, which has no NaN and no infinity.
func finiteLoss(f float32) *float64 {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// identical reports whether two runs of a job agree to the bit, in every loss and all final weights; nil without data.
func identical(a, b *local.JobRun) *bool {
	if a.Weights == nil || b.Weights == nil {
		return nil
	}
	same := sameBits(a.Losses, b.Losses) && maps.Equal(a.Weights, b.Weights)
	return &same
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
