package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/controller/simulate"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/graph/text"
	"tensile/models"
	"tensile/models/task"
)

// simulateFlags are those of tensile simulate.
type simulateFlags struct {
	devices, way, format, mix, budget string
	image                             int
	unfolded, noMoves, json           bool
}

// mostDevices is the largest lab that is simulated.
const mostDevices = 4096

// ownFormat is that of traces of ours.
const ownFormat = "tensile"

func simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate TRACE",
		Short: "Simulate a job arrival trace on many devices, with or without Tensile",
		Long: `Simulate the jobs of an arrival trace on many devices and report when each job would start and end.
With --scheduler tensile the state machines of controller, agent and executor run as in a real cluster;
fifo gives each job its own device, and pack puts jobs side by side if they fit without plans.

A trace is a CSV file with the columns submit_s,model,batch,iterations,tenant, or a public trace: see
--format. Identical iterations are counted instead of simulated one by one, unless --unfolded is given.`,
		Example: "  tensile simulate generate --jobs 100 >trace.csv\n" +
			"  tensile simulate trace.csv --devices 8xa6000 --scheduler tensile",
		Args: needFile,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	c.Flags().StringVar(&f.devices, "devices", "1xa6000", "devices as NxNAME, of "+simNames())
	c.Flags().StringVar(&f.way, "scheduler", string(simulate.Tensile), "scheduler: "+wayNames())
	complete(c, "scheduler", strings.Split(wayNames(), ", ")...)
	formats := append([]string{ownFormat}, simulate.Formats()...)
	c.Flags().StringVar(&f.format, "format", ownFormat, "trace format: "+strings.Join(formats, ", "))
	complete(c, "format", formats...)
	registerMix(c, &f.mix)
	c.Flags().StringVar(&f.budget, "budget", "",
		"memory budget per device, such as 16GiB (default: all of its memory)")
	c.Flags().IntVar(&f.image, "image", 0,
		"image height and width in pixels (default: depends on the network)")
	c.Flags().BoolVar(&f.unfolded, "unfolded", false, "simulate every iteration instead of counting identical ones")
	c.Flags().BoolVar(&f.noMoves, "no-moves", false, "never migrate jobs to other devices")
	c.Flags().BoolVar(&f.json, "json", false, "print a single JSON document")
	c.AddCommand(generateCommand())
	return c
}

func wayNames() string {
	var names []string
	for _, w := range simulate.Ways() {
		names = append(names, string(w))
	}
	return strings.Join(names, ", ")
}

func registerMix(c *cobra.Command, to *string) {
	var kinds []string
	for _, k := range simulate.Mix {
		kinds = append(kinds, fmt.Sprintf("%s/%d", k.Model, k.Batch))
	}
	c.Flags().StringVar(to, "mix", strings.Join(kinds, " "),
		"space-separated list of MODEL/BATCH for jobs whose model the trace does not give")
}

func parseMix(text string) ([]simulate.Kind, error) {
	var mix []simulate.Kind
	for _, part := range strings.Fields(text) {
		model, size, _ := strings.Cut(part, "/")
		batch, err := strconv.Atoi(size)
		if err != nil || batch < 1 || batch > models.MaxBatch || model == "" {
			return nil, fmt.Errorf("--mix: %q: give MODEL/BATCH, such as resnet50/64", part)
		}
		mix = append(mix, simulate.Kind{Model: model, Batch: batch})
	}
	return mix, nil
}

func (f *simulateFlags) run(c *cobra.Command, path string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	trace, skipped, err := f.read(path)
	if err != nil {
		return err
	}
	if len(skipped) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%s: rows that %s are left out\n", path, skipped)
	}
	if len(trace) == 0 {
		return fmt.Errorf("%s: it has no job: tensile simulate generate makes a trace", path)
	}
	r, err := simulate.Run(c.Context(), trace, o)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(c.OutOrStdout(), r)
	}
	return writeSimulated(c.OutOrStdout(), r)
}

func (f *simulateFlags) options() (simulate.Options, error) {
	o := simulate.Options{Way: simulate.Way(f.way), Fold: !f.unfolded, NoMoves: f.noMoves}
	if !slices.Contains(simulate.Ways(), o.Way) {
		return o, fmt.Errorf("--scheduler %q: give one of %s", f.way, wayNames())
	}
	count, name, found := strings.Cut(f.devices, "x")
	n, err := strconv.Atoi(count)
	if err != nil || !found || n < 1 || n > mostDevices {
		return o, fmt.Errorf("--devices %q: give NxNAME, such as 64xa6000, N from 1 to %d", f.devices, mostDevices)
	}
	if o.Facts, err = cost.Device(name); err != nil {
		return o, fmt.Errorf("--devices %s: %w", f.devices, err)
	}
	o.Devices, o.Budget = n, o.Facts.Memory
	if f.budget != "" {
		if o.Budget, err = parseBytes("--budget", f.budget); err != nil {
			return o, err
		}
	}
	if o.Budget < graph.MiB || o.Budget > o.Facts.Memory {
		return o, fmt.Errorf("--budget %s: give 1MiB to the %s of a device", f.budget, o.Facts.Memory)
	}
	if f.image < 0 || f.image > models.MaxImage {
		return o, fmt.Errorf("--image %d: give 1 to %d", f.image, models.MaxImage)
	}
	tasks := make(map[simulate.Kind]task.Task)
	o.Load = func(model string, batch int) (task.Task, error) {
		k := simulate.Kind{Model: model, Batch: batch}
		if t, ok := tasks[k]; ok {
			return t, nil
		}
		image := f.image
		if sequences, err := models.ReadsSequences(model); err == nil && sequences {
			image = 0 // that is for the other jobs of the trace
		}
		made, err := task.Load([]string{model}, task.Settings{Image: image, Batch: batch,
			Optimizer: autodiff.Adam{}.Recommended(1)})
		if err != nil {
			return task.Task{}, fmt.Errorf("the trace has jobs of %s with batch %d: %w", model, batch, err)
		}
		tasks[k] = made[0]
		return made[0], nil
	}
	return o, nil
}

// read reads a trace, and what of it is left out.
func (f *simulateFlags) read(path string) (trace []simulate.Arrival, skipped simulate.Skipped, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: there is no such file; tensile simulate generate makes a trace", path)
	} else if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if f.format == ownFormat {
		trace, err = simulate.Read(file)
	} else {
		var mix []simulate.Kind
		if mix, err = parseMix(f.mix); err != nil {
			return nil, nil, err
		}
		trace, skipped, err = simulate.ReadPublic(f.format, file, mix)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return trace, skipped, nil
}

func writeSimulated(out io.Writer, r *simulate.Result) error {
	rows := [][]string{{"JOB", "MODEL", "BATCH", "ITERATIONS", "TENANT", "DEVICE", "SUBMIT", "START", "END",
		"SLOWDOWN"}}
	for _, j := range r.Jobs {
		at := func(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) }
		rows = append(rows, []string{j.Name, j.Model, strconv.Itoa(j.Batch), strconv.Itoa(j.Iterations),
			text.Line(j.Tenant, 40), j.Device, at(j.Submit), at(j.Start), at(j.End),
			strconv.FormatFloat(j.Slowdown, 'f', 2, 64)})
	}
	if err := text.Table(out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out,
		"%s on %s by %s: makespan %.1f s, completion %.1f s, wait %.1f s, slowdown %.2f "+
			"in the mean\nmemory %.0f %% used, links %.1f %%, %s copied, %d sets of plans, %s\n",
		text.Count(len(r.Jobs), "job"), text.Count(r.Devices, "device"), r.Way,
		r.Makespan, r.Mean, r.Waiting, r.Slowdown, 100*r.Memory, 100*r.Link, graph.Bytes(r.Moved),
		r.Replans, text.Count(r.Moves, "move"))
	return err
}

func generateCommand() *cobra.Command {
	g := simulate.Generator{}
	var lengths, mix string
	c := &cobra.Command{
		Use:   "generate",
		Short: "Generate a random arrival trace with many short and few very long jobs",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if g.Mix, err = parseMix(mix); err != nil {
				return err
			}
			if _, err := fmt.Sscanf(lengths, "%d-%d", &g.Fewest, &g.Most); err != nil {
				return fmt.Errorf("--iterations %q: give a range such as 100-100000", lengths)
			}
			if err := g.Check(); err != nil {
				return err
			}
			return simulate.Write(c.OutOrStdout(), g.Trace())
		},
	}
	c.Flags().IntVar(&g.Jobs, "jobs", 100, "number of jobs")
	c.Flags().Uint64Var(&g.Seed, "seed", 1, "random seed")
	c.Flags().DurationVar(&g.Gap, "gap", 10*time.Second, "mean time between arrivals")
	c.Flags().StringVar(&lengths, "iterations", "100-100000", "shortest and longest job, in iterations")
	c.Flags().Float64Var(&g.Tail, "tail", 0.5,
		"exponent of the Pareto distribution of job lengths: smaller means more long jobs")
	c.Flags().IntVar(&g.Tenants, "tenants", 4, "number of tenants that submit jobs")
	registerMix(c, &mix)
	return c
}
