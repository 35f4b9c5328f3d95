package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tensile/autodiff"
	"tensile/cost"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/lease"
	"tensile/planner"
	"tensile/program"
	"tensile/report"
	"tensile/scheduler"
	"tensile/task"
	"tensile/workload"
)

// ShareOptions say which jobs MeasureShare trains together.
type ShareOptions struct {
	Facts      cost.Facts // of the simulated device
	Sets       []ShareSet
	Every      graph.Bytes // by which memory changes within a group; 0: as program.Divide recommends
	Iterations int         // of each job that are measured
}

// ShareSet is jobs that train together.
type ShareSet struct {
	Jobs     []string // as workload.Load reads them
	Settings workload.Settings
	// capacities that gates are measured at, in percent of the least; spatial and alternating are measured beside
	Percent []int
}

// ShareSets are the sets that are measured unless others are named; the first alone if it is to be quick.
func ShareSets(o autodiff.Optimizer, passes []string, quick bool) []ShareSet {
	set := func(batch int, jobs ...string) ShareSet {
		return ShareSet{Jobs: jobs, Settings: workload.Settings{Batch: batch, Optimizer: o, Passes: passes},
			Percent: []int{100, 130}}
	}
	sets := []ShareSet{set(16, "resnet50:2"), set(16, "resnet50:4"), set(16, "bert:2"), set(64, "rhn:2"),
		set(64, "nasnet-mobile:2"), set(16, "resnet110-cifar", "nasnet-mobile")}
	if quick {
		return sets[:1]
	}
	return sets
}

// ShareReport is what jobs lose and save that share a device's memory.
type ShareReport struct {
	Device string     `json:"device"`
	Rows   []ShareRow `json:"rows"`
}

// ShareRow is jobs that share memory in one way: none, each has its own arena; slices, they take turns of whole
// iterations; gates.
//
// Throughput is the work of all jobs together, in time that it takes a job alone. Alternating is jobs one after the
// other, iteration by iteration, without a pause: it has 1 by definition.
type ShareRow struct {
	Jobs        string      `json:"jobs"`
	Sharing     string      `json:"sharing"`
	Capacity    graph.Bytes `json:"capacity_bytes"` // as enforced; none: the sum of arenas
	Least       graph.Bytes `json:"least_bytes"`    // at which gates can train the jobs
	Touched     graph.Bytes `json:"touched_bytes"`  // most that all held together
	MSRAll      float64     `json:"msr_all"`        // of the capacity, against jobs side by side that free nothing
	EOR         float64     `json:"eor"`            // against alternating jobs without a plan
	EORTogether float64     `json:"eor_together"`   // against jobs without a plan side by side
	Alternating float64     `json:"throughput_vs_alternating"`
	Spatial     float64     `json:"throughput_vs_spatial"`
	Gate        float64     `json:"gate_ms"` // an iteration, all jobs together
}

// MeasureShare trains sets of jobs on a simulated device.
func MeasureShare(ctx context.Context, o ShareOptions) (*ShareReport, error) {
	r := &ShareReport{}
	for _, set := range o.Sets {
		m := &shared{ctx: ctx, options: o, set: set}
		rows, err := m.measure()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(set.Jobs, " "), err)
		}
		r.Device = m.device().Name()
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

// shared is a set of jobs that is measured.
type shared struct {
	ctx      context.Context
	options  ShareOptions
	set      ShareSet
	tasks    []task.Task
	programs []program.Proven
	all      graph.Bytes     // peaks of jobs that free nothing
	solo     []time.Duration // an iteration of each job alone, without a plan
}

// device returns a fresh one, with as much memory as is needed.
func (m *shared) device() *sim.Device {
	f := m.options.Facts
	f.Memory = 0
	return sim.New(f, sim.Options{})
}

func (m *shared) measure() (rows []ShareRow, err error) {
	if m.tasks, err = workload.Load(m.set.Jobs, m.set.Settings); err != nil {
		return nil, err
	}
	d := m.device()
	r, err := request(m.tasks, d, scheduler.Options{})
	if err != nil {
		return nil, err
	}
	peaks, err := planner.Vanilla(m.ctx, r)
	if err != nil {
		return nil, err
	}
	for _, p := range peaks.All {
		m.all += p
	}
	r.Policy = "none-live"
	planned, err := planner.Plan(m.ctx, r)
	if err != nil {
		return nil, err
	}
	m.programs = planned.Programs
	for i := range m.tasks {
		alone, err := m.train([]int{i}, executor.Sharing{}, 0)
		if err != nil {
			return nil, err
		}
		m.solo = append(m.solo, alone.iteration[0])
	}
	return m.rows()
}

// rows trains the jobs together in all ways.
func (m *shared) rows() (rows []ShareRow, err error) {
	var jobs []int
	var arenas, bases, spread graph.Bytes
	for i, p := range m.programs {
		jobs = append(jobs, i)
		arenas += p.Program().Arena
		d, err := p.Divide(m.device().Page(), m.options.Every)
		if err != nil {
			return nil, err
		}
		base, peak := d.Groups().Base.Count(), d.Groups().Peak()
		bases += graph.Bytes(base) * m.device().Page()
		spread = max(spread, graph.Bytes(peak-base)*m.device().Page())
	}
	least := bases + spread
	largest := slices.MaxFunc(m.programs, func(a, b program.Proven) int {
		return cmp.Compare(a.Program().Arena, b.Program().Arena)
	}).Program().Arena
	spatial, err := m.train(jobs, executor.Sharing{}, 0)
	if err != nil {
		return nil, err
	}
	rows = append(rows, m.row("none", arenas, least, spatial, spatial))
	const turn = 10 // iterations of the slowest job
	largest = (largest + m.device().Page() - 1) / m.device().Page() * m.device().Page()
	turns, err := m.train(jobs, executor.Sharing{Turns: true,
		Lease: lease.NewMachine(lease.Options{Still: turn * slices.Max(m.solo)})}, largest)
	if err != nil {
		return nil, err
	}
	rows = append(rows, m.row("slices", largest, least, turns, spatial))
	for _, percent := range m.set.Percent {
		capacity := (least*graph.Bytes(percent)/100 + m.device().Page() - 1) / m.device().Page() * m.device().Page()
		gates, err := m.train(jobs, executor.Sharing{Lease: lease.NewMachine(lease.Options{Still: -1}),
			Every: m.options.Every}, capacity)
		if err != nil {
			return nil, err
		}
		rows = append(rows, m.row("gates", capacity, least, gates, spatial))
	}
	return rows, nil
}

func (m *shared) row(sharing string, capacity, least graph.Bytes, run, spatial *sharedRun) ShareRow {
	throughput := func(r *sharedRun) (sum float64) {
		for i, took := range r.iteration {
			sum += float64(m.solo[i]) / float64(max(took, 1))
		}
		return sum
	}
	alternating := throughput(run)
	return ShareRow{Jobs: strings.Join(m.set.Jobs, " "), Sharing: sharing, Capacity: capacity, Least: least,
		Touched: run.touched, MSRAll: 1 - float64(capacity)/float64(m.all), EOR: 1 / alternating,
		EORTogether: throughput(spatial) / alternating, Alternating: alternating,
		Spatial: alternating / throughput(spatial), Gate: run.gate}
}

// sharedRun is what was measured of jobs together.
type sharedRun struct {
	iteration []time.Duration // of each job, on average
	touched   graph.Bytes
	gate      float64
}

// train trains some of the jobs together until each has done the iterations that are measured, while all the others
// train. The first ones of each are left out.
func (m *shared) train(jobs []int, sharing executor.Sharing, capacity graph.Bytes) (*sharedRun, error) {
	const warm = 4
	d := m.device()
	reports := make([][]*executor.Report, len(jobs))
	var failed error
	h := executor.NewHost(d, func(e executor.Event) {
		switch {
		case e.Report != nil:
			i := slices.IndexFunc(jobs, func(j int) bool { return m.tasks[j].Name == e.Job })
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
	for _, j := range jobs {
		h.Submit(executor.SpecOf(m.tasks[j], 1<<30, func(int, float32) {}), m.programs[j])
	}
	wanting := func(r []*executor.Report) bool {
		return len(r) <= warm+m.options.Iterations || sharing.Turns && len(turnsOf(r)) < 5
	}
	for slices.ContainsFunc(reports, wanting) && failed == nil {
		if _, err := h.Poll(m.ctx); err != nil {
			failed = err
		}
	}
	run := &sharedRun{touched: d.Held()}
	var first time.Duration // when all jobs are warm
	for _, r := range reports {
		if len(r) > warm {
			first = max(first, r[warm].End)
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
		for len(r) > 1 && r[0].End < first {
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

// WriteTable prints the report for people.
func (r *ShareReport) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s: jobs that share memory\n", r.Device)
	fmt.Fprintln(t, "jobs\tsharing\tcapacity\tof least\theld\tMSR all\tEOR\tEOR together\tvs alternating\t"+
		"vs spatial\tgate ms\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.3f\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\t\n", row.Jobs, row.Sharing,
			row.Capacity, float64(row.Capacity)/float64(row.Least), row.Touched, row.MSRAll, row.EOR, row.EORTogether,
			row.Alternating, row.Spatial, row.Gate)
	}
	return t.Flush()
}
