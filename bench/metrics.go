package bench

import (
	"maps"
	"math"
	"slices"
	"time"

	"tensile/graph"
	"tensile/task"
)

// Memory is what a plan saves, of one job or of all together.
type Memory struct {
	VanillaAll  graph.Bytes `json:"vanilla_peak_all_bytes"`
	VanillaLive graph.Bytes `json:"vanilla_peak_live_bytes"`
	SlotPeak    graph.Bytes `json:"slot_peak_bytes"`
	Arena       graph.Bytes `json:"arena_bytes"`
	WorkingSet  graph.Bytes `json:"working_set_bound_bytes"`
	ZeroStall   graph.Bytes `json:"zero_stall_bound_bytes"`
	MSRAll      float64     `json:"msr_all"`
	MSRLive     float64     `json:"msr_live"`
}

// Add adds the bytes of another job and works out the savings of both (TENSILE, V-A).
func (m *Memory) Add(n Memory) {
	m.VanillaAll += n.VanillaAll
	m.VanillaLive += n.VanillaLive
	m.SlotPeak += n.SlotPeak
	m.Arena += n.Arena
	m.WorkingSet += n.WorkingSet
	m.ZeroStall += n.ZeroStall
	saving := func(of graph.Bytes) float64 { return float64(of-m.SlotPeak) / float64(max(of, 1)) }
	m.MSRAll, m.MSRLive = saving(m.VanillaAll), saving(m.VanillaLive)
}

// Memory returns what the plan of each job saves.
func (p *Planner) Memory(planned *Planned) ([]Memory, error) {
	all, live, err := p.Vanilla()
	if err != nil {
		return nil, err
	}
	saved := make([]Memory, len(planned.Jobs))
	for i, j := range planned.Jobs {
		saved[i].Add(Memory{VanillaAll: all[i], VanillaLive: live[i], SlotPeak: j.Footprint.Peak, Arena: j.Layout.Arena, WorkingSet: j.Bounds.WorkingSet, ZeroStall: j.Bounds.ZeroStall})
	}
	return saved, nil
}

// Metrics are the figures of a run of one job, or of all jobs together. Fields that were not measured are nil.
type Metrics struct {
	Memory
	Touched    graph.Bytes `json:"touched_bytes"`
	EOR        *float64    `json:"eor"`
	EORLow     *float64    `json:"eor_low"` // the least of a block of iterations
	EORHigh    *float64    `json:"eor_high"`
	CBR        *float64    `json:"cbr"`
	Stall      float64     `json:"stall_ms"`
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
	FirstEOR     *float64 `json:"first_iteration_eor"`
	Prediction   *float64 `json:"predictor_mape"` // mean error of the latencies that the first plan was made with
	Accuracy     *float64 `json:"accuracy"`       // share of the test images whose class the trained network names; nil without a test set
	TestImages   int      `json:"test_images"`
	Metrics
}

// Report is the outcome of a run, beside a vanilla one if there was one.
type Report struct {
	Device   string       `json:"device"`
	Policy   string       `json:"policy"`
	Budget   graph.Bytes  `json:"budget_bytes"` // 0: none
	Link     float64      `json:"link_bytes_per_second"`
	Latency  string       `json:"latencies"` // what the first plan took them from
	PlanTime float64      `json:"plan_ms"`
	PackTime float64      `json:"pack_ms"`
	Proof    float64      `json:"prove_ms"`
	Work     int64        `json:"planning_steps"`
	Limited  bool         `json:"planning_limited"` // the search for the first plan ended at its limit of steps
	Jobs     []JobMetrics `json:"jobs"`
	Total    Metrics      `json:"total"`
}

// Milliseconds is a duration as the reports give it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Compare reports on a run of planned jobs within a budget (0: none); vanilla may be nil.
func Compare(w []task.Task, pl *Planner, p *Planned, budget graph.Bytes, run, vanilla *Run) (*Report, error) {
	saved, err := pl.Memory(p)
	if err != nil {
		return nil, err
	}
	r := &Report{Budget: budget, PlanTime: Milliseconds(p.PlanTime), PackTime: Milliseconds(p.PackTime), Proof: Milliseconds(p.Proof), Work: p.Work, Limited: p.Limited}
	for i, t := range w {
		j := JobMetrics{Job: t.Name, Model: t.Model, Iterations: run.Jobs[i].Iterations}
		saved[i].Arena, saved[i].SlotPeak = run.Jobs[i].Arena, run.Jobs[i].SlotPeak // plans may have changed
		j.Metrics = Metrics{Touched: run.Jobs[i].Touched, Stall: Milliseconds(run.Jobs[i].Stall),
			Plans: run.Jobs[i].Plans, Transition: Milliseconds(run.Jobs[i].Transition)}
		j.Memory.Add(saved[i])
		if losses := run.Jobs[i].Losses; len(losses) > 0 {
			j.LossFirst, j.LossLast = number(losses[0]), number(losses[len(losses)-1])
		}
		j.Prediction = run.Jobs[i].Watched.Error(p.Jobs[i].Plan)
		r.Total.add(j.Metrics)
		if vanilla != nil {
			j.relate(run.overhead(vanilla, i))
			j.BitIdentical = identical(&run.Jobs[i], &vanilla.Jobs[i])
			j.FirstEOR = firstEOR(&run.Jobs[i].Watched, &vanilla.Jobs[i].Watched)
		}
		r.Jobs = append(r.Jobs, j)
	}
	if budget > 0 {
		r.Total.limit(budget)
	}
	if vanilla != nil {
		r.Total.relate(run.overhead(vanilla, everyJob))
	}
	return r, nil
}

func (m *Metrics) add(n Metrics) {
	m.Memory.Add(n.Memory)
	m.Touched += n.Touched
	m.Stall += n.Stall
	m.Plans += n.Plans
	m.Transition += n.Transition
}

// limit corrects the sums over jobs whose plans have changed: each was at its largest at another time, and all arenas
// together were within the budget at any.
func (m *Metrics) limit(budget graph.Bytes) {
	m.Arena = min(m.Arena, budget)
	m.SlotPeak, m.Touched = min(m.SlotPeak, m.Arena), min(m.Touched, m.Arena)
	m.Memory.Add(Memory{})
}

// relate takes EOR (TENSILE, V-A) with its spread, and works out CBR; nil: nothing is known.
func (m *Metrics) relate(eor *spread) {
	if eor != nil {
		cbr := m.MSRLive / eor.value
		m.EOR, m.EORLow, m.EORHigh, m.CBR = &eor.value, &eor.low, &eor.high, &cbr
	}
}

// number returns a loss for JSON, which has no NaN and no infinity.
func number(f float32) *float64 {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// identical reports whether two runs of a job agree to the bit, in every loss and all final weights; nil without data.
func identical(a, b *JobRun) *bool {
	if a.Weights == nil || b.Weights == nil {
		return nil
	}
	same := sameBits(a.Losses, b.Losses) && maps.Equal(a.Weights, b.Weights)
	return &same
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
