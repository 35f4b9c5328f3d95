package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"tensile/device/lease"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// BatchOptions say whose largest batches MeasureBatches looks for.
type BatchOptions struct {
	ShareOptions // less the sets
	Sets         []BatchSet
}

// BatchSet is copies of a network on a device of a size.
type BatchSet struct {
	Network  string // as task.Load reads it
	Copies   int
	Memory   graph.Bytes
	Settings task.Settings // less the batch
}

// BatchSets are the sets that are measured unless others are named, and the first one alone if it is to be quick.
func BatchSets(o autodiff.Optimizer, rewrites []string, quick bool) (sets []BatchSet) {
	const GB = 1_000_000_000
	for _, s := range []BatchSet{{Network: "resnet50", Copies: 2, Memory: 32 * GB},
		{Network: "resnet50", Copies: 4, Memory: 32 * GB}, {Network: "resnet152", Copies: 2, Memory: 32 * GB},
		{Network: "inceptionv3", Copies: 2, Memory: 32 * GB}, {Network: "bert", Copies: 2, Memory: 32 * GB},
		{Network: "bert", Copies: 2, Memory: 16 * GB}, {Network: "tacotron2", Copies: 2, Memory: 32 * GB},
		{Network: "nasnet-large", Copies: 2, Memory: 32 * GB}} {
		s.Settings = task.Settings{Optimizer: o, Passes: rewrites}
		sets = append(sets, s)
	}
	if quick {
		return sets[:1]
	}
	return sets
}

// BatchReport is the largest batches that jobs can have that share memory.
type BatchReport struct {
	Device string     `json:"-"`
	Rows   []BatchRow `json:"rows"`
}

// BatchRow is the largest batch of each of some jobs that share memory by gates.
type BatchRow struct {
	Jobs       string      `json:"jobs"`
	Sharing    string      `json:"sharing"`
	Capacity   graph.Bytes `json:"capacity_bytes"`
	Least      graph.Bytes `json:"least_bytes"`   // that the jobs need together
	Touched    graph.Bytes `json:"touched_bytes"` // most that all held together
	Alone      int         `json:"batch_alone"`   // of one job without a plan that moves anything
	Together   int         `json:"batch"`         // of each of the jobs
	Share      float64     `json:"batch_vs_alone"`
	Throughput float64     `json:"throughput_vs_alternating"`
}

// MeasureBatches looks for the largest batches and trains the jobs with them.
func MeasureBatches(ctx context.Context, o BatchOptions) (*BatchReport, error) {
	r := &BatchReport{}
	for _, set := range o.Sets {
		m := &batched{ctx: ctx, options: o.ShareOptions, set: set}
		rows, err := m.measure()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.jobs(set.Copies)[0], err)
		}
		r.Device = sim.New(o.Facts, sim.Options{}).Name()
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

// batched is a set whose batches are measured.
type batched struct {
	ctx     context.Context
	options ShareOptions
	set     BatchSet
}

func (m *batched) jobs(copies int) []string {
	return []string{fmt.Sprintf("%s:%d", m.set.Network, copies)}
}

// shared are copies with a batch, as MeasureShare takes them.
func (m *batched) shared(copies, batch int) (s *shared, r scheduler.Request, err error) {
	s = &shared{ctx: m.ctx, options: m.options, set: ShareSet{Jobs: m.jobs(copies), Settings: m.set.Settings}}
	s.set.Settings.Batch = batch
	r, err = s.load()
	r.Policy, r.Budget = "none-live", s.paged(m.set.Memory)
	return s, r, err
}

// largest returns the largest batch with which the copies fit.
func (m *batched) largest(copies int) (int, error) {
	const most = 1024
	fits := func(batch int) (bool, error) {
		_, r, err := m.shared(copies, batch)
		if err != nil {
			return false, err
		}
		_, err = planner.Schedule(m.ctx, r)
		if errors.Is(err, scheduler.ErrNoPlan) {
			return false, nil
		}
		return err == nil, err
	}
	low, high := 0, most+1 // low fits, high does not
	for low+1 < high {
		middle := (low + high) / 2
		fit, err := fits(middle)
		if err != nil {
			return 0, err
		}
		if fit {
			low = middle
		} else {
			high = middle
		}
	}
	if low == 0 || low == most {
		return 0, fmt.Errorf("the largest batch within %s is not from 1 to %d", m.set.Memory, most-1)
	}
	return low, nil
}

// measure returns a row without plans that move anything, and one by policy tensile with the batch that a job has
// alone.
func (m *batched) measure() ([]BatchRow, error) {
	alone, err := m.largest(1)
	if err != nil {
		return nil, err
	}
	together, err := m.largest(m.set.Copies)
	if err != nil {
		return nil, err
	}
	var rows []BatchRow
	for _, way := range []struct {
		sharing, policy string
		batch           int
	}{{byGates, "none-live", together}, {withPlans, "tensile", alone}} {
		row, err := m.train(way.policy, way.batch)
		if err != nil {
			return nil, err
		}
		row.Sharing, row.Alone, row.Share = way.sharing, alone, float64(way.batch)/float64(alone)
		rows = append(rows, *row)
	}
	return rows, nil
}

// train trains the jobs with a batch.
func (m *batched) train(policy string, batch int) (*BatchRow, error) {
	s, r, err := m.shared(m.set.Copies, batch)
	if err != nil {
		return nil, err
	}
	if err := s.trainAlone(r); err != nil {
		return nil, err
	}
	r.Policy = policy
	planned, err := s.planner.Plan(m.ctx, r)
	if err != nil {
		return nil, err
	}
	run, err := s.train(planned.Programs, s.tasks,
		executor.Sharing{Lease: newRecorder(lease.Options{Still: -1})}, r.Budget)
	if err != nil {
		return nil, err
	}
	return &BatchRow{Jobs: s.set.Jobs[0], Capacity: r.Budget, Least: planned.Least, Touched: run.touched,
		Together: batch, Throughput: s.throughput(run)}, nil
}

// WriteTable prints the report for people.
func (r *BatchReport) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s: the largest batch of each of the jobs that share memory\n", r.Device)
	fmt.Fprintln(t, "jobs\tsharing\tcapacity\tleast\theld\tbatch alone\tbatch\tshare\tvs alternating\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%.3f\t%.3f\t\n", row.Jobs, row.Sharing, row.Capacity, row.Least,
			row.Touched, row.Alone, row.Together, row.Share, row.Throughput)
	}
	return t.Flush()
}
