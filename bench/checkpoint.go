package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"tensile/data/weights"
	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// CheckpointOptions say of what MeasureCheckpoints takes checkpoints.
type CheckpointOptions struct {
	Networks []string // one job at a time
	Settings task.Settings
	Budgets  []int  // percent of what each needs with all freed after its last use
	Every    int    // iterations between two checkpoints
	Times    int    // checkpoints that are taken in each way
	Dir      string // folder for files that are written of them; "": none are
}

// CheckpointReport is what checkpoints cost the job that they are taken of.
type CheckpointReport struct {
	Device string          `json:"device"`
	Rows   []CheckpointRow `json:"rows"`
}

// CheckpointRow is one way of taking them. Times are medians.
type CheckpointRow struct {
	Model     string      `json:"model"`
	Budget    int         `json:"budget_percent"`
	Arena     graph.Bytes `json:"arena_bytes"`
	Way       string      `json:"way"`  // aside: by the snapshot section of the program; home
	File      bool        `json:"file"` // each was written to a file
	Taken     int         `json:"taken"`
	Bytes     graph.Bytes `json:"bytes"`
	Linked    graph.Bytes `json:"linked_bytes"`   // of these went over the link beside what the plan copies
	Without   float64     `json:"without_ms"`     // an iteration
	While     float64     `json:"while_ms"`       // the iteration that begins where the state is taken
	Cost      float64     `json:"cost_ms"`        // of a checkpoint, all iterations together that it makes longer
	Predicted float64     `json:"predicted_ms"`   // of a checkpoint without a file
	Write     float64     `json:"write_ms"`       // of a file, beside the training
	Share     float64     `json:"share_of_5_min"` // of the time, if there is one every five minutes
}

// MeasureCheckpoints trains networks on a device and takes checkpoints in both ways, with a file written of each and
// without. The host's own copy in Home takes no virtual time, so that on a simulated device that way is measured
// shorter than it is; the prediction has it.
func MeasureCheckpoints(ctx context.Context, d device.Device, o CheckpointOptions) (*CheckpointReport, error) {
	r := &CheckpointReport{Device: d.Name()}
	for _, model := range o.Networks {
		tasks, err := task.Load([]string{model}, o.Settings)
		if err != nil {
			return nil, err
		}
		m := &checkpointed{ctx: ctx, device: d, options: o, task: tasks[0]}
		if err := m.plan(tasks); err != nil {
			return nil, fmt.Errorf("%s: %w", model, err)
		}
		for _, percent := range o.Budgets {
			rows, err := m.measure(percent)
			if err != nil {
				return nil, fmt.Errorf("%s at %d%%: %w", model, percent, err)
			}
			r.Rows = append(r.Rows, rows...)
		}
	}
	return r, nil
}

// checkpointed is a job that is measured.
type checkpointed struct {
	ctx     context.Context
	device  device.Device
	options CheckpointOptions
	task    task.Task
	request scheduler.Request // with measured latencies
	live    graph.Bytes       // what it needs with all freed after its last use
}

// plan measures what the ops take, so that plans and predictions are for what the device does.
func (m *checkpointed) plan(tasks []task.Task) (err error) {
	if m.request, m.live, err = requestAndLive(m.ctx, tasks, m.device); err != nil {
		return err
	}
	p, err := m.program(100, false)
	if err != nil {
		return err
	}
	const iterations = 8
	run, err := m.train(p, iterations, false, false)
	if err != nil {
		return err
	}
	took := make([][]time.Duration, len(m.task.Graph.Ops))
	for _, r := range run.reports[iterations/2:] {
		for slot, step := range p.Program().Plan.Steps {
			took[step.Op] = append(took[step.Op], r.Steps[slot])
		}
	}
	for op := range took {
		m.request.Jobs[0].Latency[op] = median(took[op])
	}
	return nil
}

func median[T cmp.Ordered](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

func (m *checkpointed) durations() program.Durations {
	f := m.device.Facts()
	return program.Durations{Out: f.Out, In: f.In, Host: f.Host}
}

// program plans for a budget, with a snapshot section or without.
func (m *checkpointed) program(percent int, aside bool) (proof.Proven, error) {
	r := m.request
	r.Budget = m.live * graph.Bytes(percent) / 100
	planned, err := planner.Schedule(m.ctx, r)
	if err != nil {
		return proof.Proven{}, err
	}
	s := planned.Jobs[0]
	return compile.Prove(m.task.Graph, s.Plan, s.Layout, compile.Options{Poison: invariants.Enabled, Snapshot: aside,
		Durations: m.durations()})
}

// measure takes checkpoints in all ways.
func (m *checkpointed) measure(percent int) (rows []CheckpointRow, err error) {
	for _, way := range []string{"aside", "home"} {
		p, err := m.program(percent, way == "aside")
		if err != nil {
			return nil, err
		}
		if way == "aside" && len(p.Program().Snapshot.Commands) == 0 {
			continue // the way through Home is predicted to cost less
		}
		for _, file := range []bool{false, true} {
			if file && (m.options.Dir == "" || !m.data()) {
				continue
			}
			row, err := m.row(p.Program(), way, file, func(iterations int) (*checkpointedRun, error) {
				return m.train(p, iterations, true, file)
			})
			if err != nil {
				return nil, err
			}
			row.Budget = percent
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// data reports whether the device has any.
func (m *checkpointed) data() bool { return m.device.Facts().Name == "cpu" }

func (m *checkpointed) row(p *program.Program, way string, file bool,
	train func(iterations int) (*checkpointedRun, error)) (CheckpointRow, error) {
	_, size := program.SnapshotSlots(p.Graph)
	row := CheckpointRow{Model: m.task.Name, Arena: p.Arena, Way: way, File: file, Bytes: size}
	d := m.durations()
	d.Steps = p.Plan.Made
	predicted, copies := program.TimeHome(p, d), p.Prologue.Commands
	copies = slices.Concat(copies, p.Epilogue.Commands)
	if way == "aside" {
		predicted, copies = program.TimeSnapshot(p, d), p.Snapshot.Commands
	}
	for _, c := range copies {
		if c.Kind == program.Save || way == "home" {
			row.Linked += c.Bytes
		}
	}
	run, err := train((m.options.Times + 1) * m.options.Every)
	if err != nil {
		return row, err
	}
	if row.Taken = len(run.taken); row.Taken == 0 {
		return row, fmt.Errorf("no checkpoint was taken in %d iterations", len(run.reports))
	}
	run.fill(&row)
	row.Predicted = report.Milliseconds(predicted)
	row.Share = row.Cost / report.Milliseconds(5*time.Minute)
	return row, nil
}

// checkpointedRun is what was heard of a training.
type checkpointedRun struct {
	reports []*executor.Report
	taken   []int           // iterations that were complete then
	wrote   []time.Duration // per file, and how many iterations were complete when it was there
	written []int
}

// fill works out what checkpoints cost. An iteration takes from the end of the one before to its own end, ways through
// Home included. A checkpoint may make those longer that are in flight before it and those after it, while a file of it
// is written as well. They are compared with the ones from there to the next checkpoint: other work on the machine
// comes and goes.
func (r *checkpointedRun) fill(row *CheckpointRow) {
	took := make([]time.Duration, len(r.reports))
	for i := 1; i < len(took); i++ {
		took[i] = r.reports[i].End - r.reports[i-1].End
	}
	const before, after = 1, 4
	var without, while, cost []time.Duration
	for i, at := range r.taken {
		from, to, next := at-before, at+after, len(took)
		if i < len(r.written) {
			to = max(to, r.written[i])
		}
		if i+1 < len(r.taken) {
			next = r.taken[i+1] - before
		}
		if to >= next || row.File && i >= len(r.written) {
			continue
		}
		usual := median(slices.Clone(took[to:next]))
		var sum time.Duration
		for _, t := range took[from:to] {
			sum += t - usual
		}
		without, while, cost = append(without, took[to:next]...), append(while, took[at]), append(cost, sum)
	}
	if len(cost) == 0 {
		return
	}
	row.Without, row.While = report.Milliseconds(median(without)), report.Milliseconds(median(while))
	row.Cost = report.Milliseconds(median(cost))
	if len(r.wrote) > 0 {
		row.Write = report.Milliseconds(median(r.wrote))
	}
}

// train trains the job, and takes a checkpoint at a fixed interval of iterations unless one is still being written.
func (m *checkpointed) train(p proof.Proven, iterations int, taking, file bool) (*checkpointedRun, error) {
	run := &checkpointedRun{}
	var writers sync.WaitGroup
	defer writers.Wait()
	wrote := make(chan written, m.options.Times+1)
	var failed error
	busy := false
	var h *executor.Host
	h = executor.NewHost(m.device, func(e executor.Event) {
		switch {
		case e.Report != nil:
			run.reports = append(run.reports, e.Report)
			select {
			case w := <-wrote:
				run.wrote, busy = append(run.wrote, w.took), false
				run.written = append(run.written, len(run.reports))
				failed = cmp.Or(failed, w.err)
			default:
			}
			if taking && !busy && e.Report.Iteration%m.options.Every == m.options.Every/2 {
				busy = true
				h.Checkpoint(e.Job, 0)
			}
		case e.Snapshot != nil:
			if failed = cmp.Or(failed, e.Snapshot.Err); e.Snapshot.Err != nil {
				return
			}
			run.taken = append(run.taken, e.Snapshot.Iteration)
			if busy = file; !file {
				e.Snapshot.Release()
				return
			}
			writers.Go(func() { wrote <- m.write(e.Snapshot) })
		case e.Ended != nil:
			failed = cmp.Or(failed, e.Ended.Err)
		}
	})
	h.Submit(executor.SpecOf(m.task, iterations, func(int, float32) {}), p)
	for working := true; working && failed == nil; {
		var err error
		if working, err = h.Poll(m.ctx); err != nil {
			failed = err
		}
	}
	if err := h.Close(); failed == nil {
		failed = err
	}
	return run, failed
}

// written is what came of a file.
type written struct {
	took time.Duration
	err  error
}

// write writes a snapshot to a file.
func (m *checkpointed) write(s *executor.Snapshot) written {
	defer s.Release()
	since := time.Now()
	path := filepath.Join(m.options.Dir, m.task.Name+".safetensors")
	err := weights.Write(nil, path, m.task.File(s.Iteration, s.Contents))
	return written{time.Since(since), err}
}

// WriteTable prints the report for people.
func (r *CheckpointReport) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s: what a checkpoint costs; ms\n", r.Device)
	fmt.Fprintln(t,
		"model\tbudget\tarena\tway\tfile\ttaken\tstate\tover the link\titeration\twhile taken\tcheckpoint\t"+
			"predicted\twriting\tof 5 min\t")
	for _, c := range r.Rows {
		file := map[bool]string{true: "yes", false: "no"}[c.File]
		fmt.Fprintf(t, "%s\t%d%%\t%s\t%s\t%s\t%d\t%s\t%s", c.Model, c.Budget, c.Arena, c.Way, file, c.Taken, c.Bytes,
			c.Linked)
		compared := c.Without > 0
		for _, cell := range []string{
			measured(compared, "%.2f", c.Without), measured(compared, "%.2f", c.While),
			measured(compared, "%.2f", c.Cost), fmt.Sprintf("%.2f", c.Predicted),
			measured(c.Write > 0, "%.0f", c.Write),
			measured(compared, "%.4f%%", 100*c.Share),
		} {
			fmt.Fprintf(t, "\t%s", cell)
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}

// measured is a number of a table, "-" where it was not measured.
func measured(was bool, format string, n float64) string {
	if !was {
		return "-"
	}
	return fmt.Sprintf(format, n)
}
