package bench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/device/cpu"
	"tensile/executor"
	"tensile/graph/autodiff"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// CPUOptions say what MeasureCPU measures.
type CPUOptions struct {
	Python   string   // an interpreter with PyTorch and what it exports ONNX files with
	Dir      string   // an empty folder for these files
	Networks []string // begin with one of these; none: all
	Threads  []int
	Steps    int // of a measurement, after two that are not counted
	Rounds   int // measurements of each, PyTorch's and ours in turns
	// Progress is told the share of the measurements that are over; may be nil.
	Progress func(done float64)
}

// CPUReport compares the CPU device with PyTorch on networks that PyTorch has exported, each trained by Adam in batches
// of the same size. Weights and batches are random on both sides, and not the same.
type CPUReport struct {
	Steps  int      `json:"steps"`
	Rounds int      `json:"rounds"`
	Rows   []CPURow `json:"networks"`
}

// CPURow has the medians of the rounds of a network.
type CPURow struct {
	Network string  `json:"network"`
	Threads int     `json:"threads"`
	Ours    CPUStep `json:"tensile"`
	Torch   CPUStep `json:"torch"`
	// Ops says where the time goes. They are of the first round, of PyTorch by its profiler, which costs a little.
	Ops []CPUGroup `json:"ops"`
}

// CPUStep is what an iteration takes.
type CPUStep struct {
	CPU  float64 `json:"cpu_ms"` // of all threads
	Wall float64 `json:"wall_ms"`
}

//go:embed cpu_networks.py
var cpuNetworks string

// exported is a network that PyTorch has written.
type exported struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Batch int    `json:"batch"`
}

// MeasureCPU trains each network on the CPU device and with PyTorch, in turns. It needs PyTorch. With an error it
// returns the rows that it has.
func MeasureCPU(ctx context.Context, o CPUOptions) (*CPUReport, error) {
	r := &CPUReport{Steps: o.Steps, Rounds: o.Rounds}
	var networks []exported
	if err := askTorch(ctx, o.Python, &networks, append([]string{"export", o.Dir}, o.Networks...)...); err != nil {
		return r, err
	}
	for _, n := range networks {
		for _, threads := range o.Threads {
			row, err := o.row(ctx, n, threads, func(share float64) {
				if o.Progress != nil {
					o.Progress((float64(len(r.Rows)) + share) / float64(len(networks)*len(o.Threads)))
				}
			})
			if err != nil {
				return r, err
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

// row measures a network with a number of threads. progress is told the share that is over.
func (o *CPUOptions) row(ctx context.Context, n exported, threads int, progress func(share float64)) (CPURow, error) {
	row := CPURow{Network: n.Name, Threads: threads}
	var ours, torch []CPUStep
	for round := range o.Rounds {
		progress(float64(round) / float64(o.Rounds))
		var answer struct {
			CPUStep
			Ops map[string]float64 `json:"ops"` // milliseconds, by the profiler's names
		}
		profiled := 0
		if round == 0 {
			profiled = o.Steps
		}
		err := askTorch(ctx, o.Python, &answer, "time", n.Name, fmt.Sprint(threads), fmt.Sprint(o.Steps),
			fmt.Sprint(profiled))
		if err != nil {
			return row, err
		}
		torch = append(torch, answer.CPUStep)
		step, ops, err := stepOf(ctx, n, threads, o.Steps)
		if err != nil {
			return row, fmt.Errorf("%s: %w", n.Name, err)
		}
		ours = append(ours, step)
		if round == 0 {
			row.Ops = groupOps(ops, answer.Ops)
		}
	}
	row.Ours, row.Torch = medianStep(ours), medianStep(torch)
	return row, nil
}

// askTorch runs cpu_networks.py and reads its answer.
func askTorch(ctx context.Context, python string, answer any, args ...string) error {
	c := exec.CommandContext(ctx, python, append([]string{"-c", cpuNetworks}, args...)...)
	out, err := c.Output()
	if err == nil {
		if err = json.Unmarshal(out, answer); err == nil {
			return nil
		}
		err = fmt.Errorf("no answer in JSON: %w", err)
	}
	if stopped := context.Cause(ctx); stopped != nil {
		return stopped
	}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && len(ended.Stderr) > 0 {
		lines := strings.Split(strings.TrimSpace(string(ended.Stderr)), "\n")
		err = errors.New(lines[len(lines)-1])
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%w: name an interpreter that has torch, onnx and numpy", err)
	}
	return fmt.Errorf("%s with PyTorch: %w", python, err)
}

// warmSteps are not counted: the first takes its memory from the system.
const warmSteps = 2

// stepOf trains a network without a plan on the CPU device. ops has the milliseconds of an iteration by what opName
// says.
func stepOf(ctx context.Context, n exported, threads, steps int) (s CPUStep, ops map[string]float64, err error) {
	rule, err := autodiff.ParseOptimizer("adam", nil)
	if err != nil {
		return s, nil, err
	}
	tasks, err := task.Load([]string{n.File}, task.Settings{Batch: n.Batch, Optimizer: rule})
	if err != nil {
		return s, nil, err
	}
	if err := tasks[0].Begin(n.File); err != nil {
		return s, nil, err
	}
	d, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		return s, nil, err
	}
	defer d.Close()
	var wall time.Time
	var used time.Duration
	var p *program.Program
	ops = make(map[string]float64)
	o := local.Options{Iterations: warmSteps + steps + 1, // the last may go on beside what closes the job
		Config: controller.Config{Policy: "none-all", MemorySharing: wire.NoSharing}}
	o.Trace = func(_ string, t *executor.Trace) { p = t.Program }
	o.Observe = func(i local.Iterated) {
		if i.Report.Iteration == warmSteps {
			wall, used = time.Now(), processorTime()
		}
		if i.Report.Iteration <= warmSteps || i.Report.Iteration > warmSteps+steps {
			return
		}
		for slot, took := range i.Report.Steps {
			ops[opName(p.Graph, p.Plan.Steps[slot].Op)] += took.Seconds() * 1e3 / float64(steps)
		}
		if i.Report.Iteration == warmSteps+steps {
			s.Wall = time.Since(wall).Seconds() * 1e3 / float64(steps)
			s.CPU = (processorTime() - used).Seconds() * 1e3 / float64(steps)
		}
	}
	_, err = local.Train(ctx, d, planner.Describe(d, planner.Roofline(d.Facts())), tasks, o)
	return s, ops, err
}

func medianStep(all []CPUStep) CPUStep {
	var cpu, wall []float64
	for _, s := range all {
		cpu, wall = append(cpu, s.CPU), append(wall, s.Wall)
	}
	return CPUStep{median(cpu), median(wall)}
}

// WriteTable prints the report for people.
func (r *CPUReport) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "NETWORK\tTHREADS\tCPU\tTORCH\tRATIO\tWALL\tTORCH\tRATIO\tFURTHEST BEHIND\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%d\t%.1f ms\t%.1f ms\t%.2f\t%.1f ms\t%.1f ms\t%.2f\t%s\t\n", row.Network, row.Threads,
			row.Ours.CPU, row.Torch.CPU, row.Ours.CPU/row.Torch.CPU, row.Ours.Wall, row.Torch.Wall,
			row.Ours.Wall/row.Torch.Wall, row.furthestBehind())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Medians of measurements of %d iterations (%d each, in turns); a ratio below 1 says that "+
		"Tensile is faster.\nFURTHEST BEHIND is the group of ops that is it, as time passed in the first measurement; "+
		"--json has all.\n", r.Steps, r.Rounds)
	return err
}
