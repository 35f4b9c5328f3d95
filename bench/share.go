package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tensile/device/lease"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/plan/compile"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// ShareOptions say which jobs MeasureShare trains together.
type ShareOptions struct {
	Facts      cost.Facts // of the simulated device
	Sets       []ShareSet
	Iterations int // of each job that are measured

	// Schedulers has the methods of Zico and Waterwave measured beside gates, where nothing is planned.
	Schedulers bool
}

// ShareSet is jobs that train together.
type ShareSet struct {
	Jobs     []string // as task.Load reads them
	Settings task.Settings

	// Percent and Saved say at which capacities gates are measured; spatial and alternating are measured beside.
	// Percent is of the least, without plans that move anything. Saved is for plans by policy tensile: what they save
	// of the jobs side by side that free nothing, in thousandths.
	Percent, Saved []int
}

// ShareSets are the sets that are measured unless others are named, and some of them if it is to be quick. For
// ShareOptions.Schedulers they have another capacity, and no plans.
func ShareSets(o autodiff.Optimizer, rewrites []string, quick, schedulers bool) []ShareSet {
	percent := []int{100, 130}
	if schedulers {
		percent = []int{100, 115, 130}
	}
	set := func(batch int, jobs ...string) ShareSet {
		return ShareSet{Jobs: jobs, Settings: task.Settings{Batch: batch, Optimizer: o, Passes: rewrites},
			Percent: percent}
	}
	planned := func(s ShareSet, saved ...int) ShareSet {
		if schedulers {
			return s
		}
		if s.Saved = saved; quick {
			s.Percent, s.Saved = nil, saved[1:2]
		}
		return s
	}
	four := planned(set(16, "resnet50:4"), 910, 940, 965)
	five := planned(set(16, "vgg16", "inceptionv3", "inceptionv4", "resnet50", "densenet121"), 885, 910, 930)
	five.Percent = nil
	if tiles := "tiles"; !slices.Contains(rewrites, tiles) {
		five.Settings.Passes = append(slices.Clone(rewrites), tiles)
	}
	sets := []ShareSet{set(16, "resnet50:2"), four}
	if !schedulers {
		sets = append(sets, five)
	}
	if quick {
		return sets
	}
	return append(sets, set(16, "bert:2"), set(64, "rhn:2"), set(64, "nasnet-mobile:2"),
		set(16, "resnet110-cifar", "nasnet-mobile"))
}

// ShareReport is what jobs lose and save that share a device's memory.
type ShareReport struct {
	Device string       `json:"-"`
	Rows   []ShareRow   `json:"rows"`
	Curves []ShareCurve `json:"-"`
}

// The ways to share memory in rows: each job has its own arena; they take turns of whole iterations; gates, without
// plans that move anything and with those of policy tensile.
const (
	ownArenas   = "none"
	takingTurns = "slices"
	byGates     = "gates"
	withPlans   = "gates+plans"
)

// ShareRow is jobs that share memory in one way.
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
		if err := m.measure(); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(set.Jobs, " "), err)
		}
		r.Device = m.device().Name()
		r.Rows, r.Curves = append(r.Rows, m.rows...), append(r.Curves, m.curves...)
	}
	return r, nil
}

// shared is a set of jobs that is measured.
type shared struct {
	ctx      context.Context
	options  ShareOptions
	set      ShareSet
	tasks    []task.Task
	programs []proof.Proven // that move nothing
	planner  planner.Device
	all      graph.Bytes     // peaks of jobs that free nothing
	solo     []time.Duration // an iteration of each job alone, without a plan
	rows     []ShareRow
	curves   []ShareCurve
	spatial  *sharedRun

	memory    graph.Bytes // of the device; 0: as much as is needed
	simulated sim.Options
}

// device returns a fresh one.
func (m *shared) device() *sim.Device {
	f := m.options.Facts
	f.Memory = m.memory
	return sim.New(f, m.simulated)
}

// load builds the tasks, and asks for plans of them.
func (m *shared) load() (r scheduler.Request, err error) {
	if m.tasks, err = task.Load(m.set.Jobs, m.set.Settings); err != nil {
		return r, err
	}
	d := m.device()
	m.planner = planner.Describe(d, planner.Roofline(d.Facts()))
	m.planner.Gates = true
	return m.planner.FirstRequest(m.tasks)
}

// trainAlone plans without moving anything, and trains each job alone. A request is for all jobs.
func (m *shared) trainAlone(r scheduler.Request) error {
	r.Policy, r.Budget = "none-live", 0
	planned, err := planner.Plan(m.ctx, r)
	if err != nil {
		return err
	}
	m.programs = planned.Programs
	for i := range m.tasks {
		if i > 0 && m.tasks[i].Graph == m.tasks[i-1].Graph {
			m.solo = append(m.solo, m.solo[i-1])
			continue
		}
		run, err := m.train(m.programs[i:i+1], m.tasks[i:i+1], executor.Sharing{}, 0)
		if err != nil {
			return err
		}
		m.solo = append(m.solo, run.iteration[0])
	}
	return nil
}

func (m *shared) measure() error {
	r, err := m.load()
	if err != nil {
		return err
	}
	peaks, err := planner.Vanilla(m.ctx, r)
	if err != nil {
		return err
	}
	for _, p := range peaks.All {
		m.all += p
	}
	if err := m.trainAlone(r); err != nil {
		return err
	}
	if m.spatial, err = m.train(m.programs, m.tasks, executor.Sharing{}, 0); err != nil {
		return err
	}
	if err := m.unplanned(); err != nil {
		return err
	}
	r.Policy = "tensile"
	for _, saved := range m.set.Saved {
		r.Budget = m.paged(m.all * graph.Bytes(1000-saved) / 1000)
		planned, err := m.planner.Plan(m.ctx, r)
		if err != nil {
			return err
		}
		if err := m.gates(withPlans, planned.Programs, r.Budget, planned.Least); err != nil {
			return err
		}
	}
	return nil
}

// paged rounds down to pages of the device, as the lease does.
func (m *shared) paged(size graph.Bytes) graph.Bytes { return size / m.planner.Page * m.planner.Page }

// unplanned trains the jobs together in all ways, with plans that move nothing.
func (m *shared) unplanned() error {
	var arenas, bases, spread, largest graph.Bytes
	for _, p := range m.programs {
		d, err := compile.ProveGroups(p, m.planner.Page, 0)
		if err != nil {
			return err
		}
		base, peak := d.Groups().Base.Count(), d.Groups().Peak()
		bases += graph.Bytes(base) * m.planner.Page
		spread = max(spread, graph.Bytes(peak-base)*m.planner.Page)
		arenas += p.Program().Arena
		largest = max(largest, m.paged(p.Program().Arena+m.planner.Page-1))
	}
	least := bases + spread
	m.row(ownArenas, arenas, least, m.spatial)
	const turn = 10 // iterations of the slowest job
	turns, err := m.train(m.programs, m.tasks, executor.Sharing{Turns: true,
		Lease: newRecorder(lease.Options{Still: turn * slices.Max(m.solo)})}, largest)
	if err != nil {
		return err
	}
	m.row(takingTurns, largest, least, turns)
	for _, percent := range m.set.Percent {
		capacity := m.paged(least*graph.Bytes(percent)/100 + m.planner.Page - 1)
		if err := m.gates(byGates, m.programs, capacity, least); err != nil {
			return err
		}
		if !m.options.Schedulers {
			continue
		}
		for _, way := range []string{byZico, byWaterwave} {
			if err := m.gates(way, m.programs, capacity, least); err != nil {
				return err
			}
		}
	}
	return nil
}

// gates trains the jobs together by gates, and by the method that sharing names, if it names one.
func (m *shared) gates(sharing string, programs []proof.Proven, capacity, least graph.Bytes) error {
	by := executor.Sharing{Lease: newRecorder(lease.Options{Still: -1})}
	if lease.NewMethod(sharing) != nil {
		by.Method = sharing
	}
	run, err := m.train(programs, m.tasks, by, capacity)
	if err != nil {
		return err
	}
	m.row(sharing, capacity, least, run)
	return nil
}

// throughput is the work of all jobs together, in time that it takes a job alone.
func (m *shared) throughput(run *sharedRun) (sum float64) {
	for i, took := range run.iteration {
		sum += float64(m.solo[i]) / float64(max(took, 1))
	}
	return sum
}

// row adds what was measured of the jobs, and keeps what they held.
func (m *shared) row(sharing string, capacity, least graph.Bytes, run *sharedRun) {
	alternating, spatial := m.throughput(run), m.throughput(m.spatial)
	row := ShareRow{Jobs: strings.Join(m.set.Jobs, " "), Sharing: sharing, Capacity: capacity, Least: least,
		Touched: run.touched, MSRAll: 1 - float64(capacity)/float64(m.all), EOR: 1 / alternating,
		EORTogether: spatial / alternating, Alternating: alternating, Spatial: alternating / spatial, Gate: run.gate}
	m.rows = append(m.rows, row)
	m.curves = append(m.curves, m.curve(&row, run))
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
