package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/bench"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/passes"
	"tensile/plan/pool"
	"tensile/scheduler/policies"
	"tensile/wire"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Run benchmarks on fixed inputs",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: there is no benchmark %q: choose pool, plan, frontier, checkpoint, share, "+
					"controller, observe, cpu, paper or real", c.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return c.Help() },
	}
	c.AddCommand(benchPoolCommand(), benchPlanCommand(), benchFrontierCommand(), benchCheckpointCommand(),
		benchShareCommand(), benchControllerCommand(), benchObserveCommand(), benchPaperCommand(),
		benchRealCommand(), benchCPUCommand())
	return c
}

func benchPoolCommand() *cobra.Command {
	var o bench.PoolOptions
	var json bool
	c := &cobra.Command{
		Use:   "pool",
		Short: "Benchmark packing methods: height and time on hard instances, training steps and our own plans",
		Long: `Pack with each of the methods (` + strings.Join(pool.Methods(), ", ") +
			`),
check every layout, and print its excess over the lower bound and the packing time: the fastest of three
runs, or that of a single run if it takes over a second. All of it takes a few minutes.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: %q is not wanted: say with --data and --networks what is packed",
					c.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.Rounds < 1 || o.Rounds > endless {
				return fmt.Errorf("--rounds %d: give 1 to %d", o.Rounds, endless)
			}
			report, err := bench.MeasurePool(c.Context(), o)
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), report)
			}
			return report.WriteTables(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&o.Data, "data", "../shared/data",
		"folder with subfolders minimalloc (hard instances) and somas (training steps)")
	c.Flags().IntVar(&o.Rounds, "rounds", demanded, "maximum rounds of a search with a target capacity")
	c.Flags().StringSliceVar(&o.Networks, "networks", []string{"mlp", "lenet", "vgg16", "resnet50"},
		"networks whose plans are packed")
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}

func benchPlanCommand() *cobra.Command {
	o := bench.PlannerOptions{}
	var rewrites string
	var json bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Benchmark the planner: cost by size, replanning, and what each part contributes",
		Long: `Plan the swaps of networks of growing size, pack and prove each plan; replan four jobs after their
latencies changed; plan networks with as little memory as the policy can reach and within 70 % and
50 % of their memory, each time without one part of the planner; and plan with wrong latencies and
then with correct ones. Nothing is trained. This takes a minute or two.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Passes, err = parsePasses(rewrites); err != nil {
				return err
			}
			if o.Times < 1 || o.Times > endless {
				return fmt.Errorf("--times %d: give 1 to %d", o.Times, endless)
			}
			if len(o.Scaling) == 0 {
				return fmt.Errorf("%s: name a model at least with --scaling", c.CommandPath())
			}
			report, err := bench.MeasurePlanner(c.Context(), o)
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), report)
			}
			return report.WriteTables(c.OutOrStdout())
		},
	}
	c.Flags().StringArrayVar(&o.Scaling, "scaling", []string{"resnet50", "resnet:6,6,6,6", "resnet:66,66,66,66",
		"resnet:580,580,580,575"}, "network whose swaps are planned (repeatable)")
	c.Flags().IntVar(&o.Batch, "batch", 4, "batch size of all networks but the first, which uses 16")
	c.Flags().StringSliceVar(&o.Networks, "networks", []string{"resnet50", "vgg16"},
		"networks for the other benchmarks, with batch size 16")
	c.Flags().StringVar(&o.Device, "device", "a6000", "simulated device: "+simNames())
	registerPasses(c, &rewrites)
	c.Flags().BoolVar(&o.Small, "small", false, "replan for four small jobs instead of four jobs of a thousand ops")
	c.Flags().IntVar(&o.Times, "times", 5, "number of timings per plan; the fastest counts")
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}

func benchFrontierCommand() *cobra.Command {
	var o bench.FrontierOptions
	var links []string
	var step string
	var json bool
	c := &cobra.Command{
		Use:   "frontier",
		Short: "Benchmark policies over all budgets: memory against time",
		Long: `Plan networks within budgets that fall step by step from what they need without a plan, and prove each
plan. Print the least memory at which the slowdown stays within several limits, beside goals and
earlier results. Memory is that of the arena. Nothing is trained. This takes minutes.

With --sweep, plan every budget and list anomalies: budgets where less memory takes less time, where
the next smaller one takes much more, and where there is no plan.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			percent, ok, err := parseShare("--step", step)
			if err != nil || !ok || percent > 100 {
				return fmt.Errorf("--step %q: give a percentage such as 1%%, up to 100%%", step)
			}
			o.Step = percent / 100
			for _, batch := range o.Batches {
				if batch < 1 || batch > models.MaxBatch {
					return fmt.Errorf("--batch %d: give 1 to %d", batch, models.MaxBatch)
				}
			}
			for _, policy := range o.Policies {
				if err := policies.Check(policy); err != nil {
					return err
				}
			}
			for i, device := range o.Devices {
				o.Devices[i] = strings.TrimPrefix(device, "sim:")
			}
			for _, text := range links {
				link, err := parseLink(text, cost.Facts{})
				if err != nil {
					return err
				}
				o.Links = append(o.Links, link.rate)
			}
			for _, choice := range o.Passes {
				if _, err := parsePasses(choice); err != nil {
					return err
				}
			}
			report, err := bench.MeasureFrontier(c.Context(), o)
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), report)
			}
			return report.WriteTables(c.OutOrStdout())
		},
	}
	c.Flags().StringSliceVar(&o.Models, "model", []string{"vgg16", "inceptionv3", "inceptionv4", "resnet50",
		"densenet121"}, "networks")
	c.Flags().StringSliceVar(&o.Policies, "policy", []string{"tensile", "tensile-paper", "none-live"}, "policies: "+
		strings.Join(policies.Names(), ", "))
	c.Flags().StringVar(&step, "step", "1%", "step between budgets, relative to what a network needs without a plan")
	c.Flags().IntSliceVar(&o.Batches, "batch", []int{16},
		"batch sizes to measure: images or sequences per iteration")
	c.Flags().StringSliceVar(&o.Optimizers, "optimizer", []string{"adam"}, "optimizers: sgd, momentum, adam")
	c.Flags().StringSliceVar(&o.Devices, "device", []string{"a6000"}, "simulated devices: "+simNames())
	c.Flags().StringSliceVar(&links, "link", []string{"none"},
		"copy rate limits per direction to measure, such as 12GB/s; none means the rate of the device")
	c.Flags().StringArrayVar(&o.Passes, "passes", []string{passes.None},
		"graph rewrites to measure, as in run --passes (repeatable)")
	c.Flags().BoolVar(&o.Sweep, "sweep", false, "plan every budget and list anomalies")
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}

func benchShareCommand() *cobra.Command {
	var o bench.ShareOptions
	var device, optimizer, rewrites, svg string
	var quick, batch, json bool
	var papers sharingFlags
	c := &cobra.Command{
		Use:   "share",
		Short: "Benchmark memory sharing on a simulated device: gates, time slicing, separate arenas",
		Long: `Train sets of jobs together on a simulated device. Without swapping and recomputation: each job with
its own memory (none), time slicing with ten iterations per slice (slices), and gates at the least
capacity and at 1.3 times it. With plans of policy tensile (gates+plans): at capacities that save a
given share of memory. Throughput is compared with the same jobs run one after the other and side by
side.

--schedulers also measures the schedulers of Zico and Waterwave, and gates at 1.15
times the least capacity, and nothing with plans.

--largest-batch finds the largest batch at which two or four copies of a network fit, and that of one
copy alone.

--papers reproduces tables and figures of Zico and Waterwave on simulated versions of their devices,
with noise and with their networks and optimizers: all, or some of ` + strings.Join(bench.SharingTables(), ", ") + `.

--cpu trains two and four copies of a small network on this machine's processors in every way to share, at the least
capacity, one way after the other, and compares times and bits with those of each job alone.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Iterations < 2 || o.Iterations > endless {
				return fmt.Errorf("--iterations %d: give 2 to %d", o.Iterations, endless)
			}
			if papers.cpu {
				return papers.real(c, quick, json)
			}
			if c.Flags().Changed("papers") {
				return papers.run(c, quick, o.Iterations, json, svg)
			}
			name, simulated := strings.CutPrefix(device, "sim:")
			if !simulated {
				return fmt.Errorf("--device %s: give a simulated one, such as sim:a6000", device)
			}
			if o.Facts, err = cost.Device(name); err != nil {
				return fmt.Errorf("--device %s: %w", device, err)
			}
			passes, err := parsePasses(rewrites)
			if err != nil {
				return err
			}
			rule, err := autodiff.ParseOptimizer(optimizer, nil)
			if err != nil {
				return fmt.Errorf("--optimizer: %w", err)
			}
			if batch {
				sets := bench.BatchSets(rule, passes, quick)
				r, err := bench.MeasureBatches(c.Context(), bench.BatchOptions{ShareOptions: o, Sets: sets})
				return printShare(c.OutOrStdout(), r, json, err)
			}
			o.Sets = bench.ShareSets(rule, passes, quick, o.Schedulers)
			r, err := bench.MeasureShare(c.Context(), o)
			if err == nil && svg != "" {
				err = drawShare(r, svg)
			}
			return printShare(c.OutOrStdout(), r, json, err)
		},
	}
	c.Flags().StringVar(&device, "device", "sim:a6000", "simulated device")
	c.Flags().StringVar(&optimizer, "optimizer", "adam", "optimizer: sgd, momentum or adam")
	complete(c, "optimizer", "sgd", "momentum", "adam")
	registerPasses(c, &rewrites)
	c.Flags().IntVar(&o.Iterations, "iterations", 40, "measured iterations per job")
	c.Flags().BoolVar(&quick, "quick", false, "measure only some of the job sets")
	c.Flags().BoolVar(&o.Schedulers, "schedulers", false,
		"also measure the schedulers of Zico and Waterwave, without plans")
	c.Flags().BoolVar(&batch, "largest-batch", false, "measure the largest batch of jobs that share memory")
	c.Flags().StringVar(&svg, "svg", "",
		"draw memory over time, to FILE-JOBS.svg per job set or FILE-FIGURE.svg per figure")
	papers.register(c)
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}

// drawShare writes a drawing per set of jobs.
func drawShare(r *bench.ShareReport, path string) error {
	for i, row := range r.Rows {
		if i > 0 && r.Rows[i-1].Jobs == row.Jobs {
			continue
		}
		var drawing bytes.Buffer
		r.Draw(&drawing, row.Jobs)
		jobs := strings.NewReplacer(":", "-", " ", "-").Replace(row.Jobs)
		name := fmt.Sprintf("%s-%s.svg", strings.TrimSuffix(path, ".svg"), jobs)
		if err := os.WriteFile(name, drawing.Bytes(), 0o666); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	return nil
}

// printShare prints a report, if there is no error.
func printShare(w io.Writer, r interface{ WriteTable(io.Writer) error }, json bool, err error) error {
	switch {
	case err != nil:
		return err
	case json:
		return printJSON(w, r)
	}
	return r.WriteTable(w)
}

func benchCheckpointCommand() *cobra.Command {
	var o bench.CheckpointOptions
	var device planFlags
	var rewrites string
	var json bool
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "Benchmark the cost of a checkpoint, taken while the job trains and in Home",
		Long: `Train networks one at a time and take checkpoints of both kinds: by a program section that copies the
state out while the job trains, and by way of Home. On a device with data, measure both without
writing a file and with one written in the background. Times are medians; the share assumes one
checkpoint every five minutes.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Settings.Passes, err = parsePasses(rewrites); err != nil {
				return err
			}
			if o.Every < 10 || o.Every > endless || o.Times < 1 || o.Times > endless {
				return fmt.Errorf("--every %d --times %d: give 10 to %d and 1 to %d", o.Every, o.Times, endless,
					endless)
			}
			for _, percent := range o.Budgets {
				if percent < 1 || percent > 100 {
					return fmt.Errorf("--budgets %d: give 1 to 100", percent)
				}
			}
			d, _, err := openDevice(&device)
			if err != nil {
				return err
			}
			defer d.Close()
			r, err := bench.MeasureCheckpoints(c.Context(), d, o)
			if err != nil {
				return err
			}
			if json {
				return device.printJSON(c.OutOrStdout(), r)
			}
			return cmp.Or(r.WriteTable(c.OutOrStdout()), device.notReal(c.OutOrStdout()))
		},
	}
	device.registerDevice(c)
	c.Flags().StringSliceVar(&o.Networks, "networks", []string{"mlp", "lenet"}, "networks to train")
	c.Flags().IntVar(&o.Settings.Image, "image", 0, "image height and width (default: depends on the network)")
	c.Flags().IntVar(&o.Settings.Batch, "batch", 0, "batch size (default 16)")
	registerPasses(c, &rewrites)
	c.Flags().IntSliceVar(&o.Budgets, "budgets", []int{100, 60},
		"device memory, in percent of what a network needs without a plan")
	c.Flags().IntVar(&o.Every, "every", 20, "iterations between checkpoints")
	c.Flags().IntVar(&o.Times, "times", 10, "checkpoints of each kind")
	c.Flags().StringVar(&o.Dir, "dir", "", "folder for checkpoint files (default: none are written)")
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}

func benchControllerCommand() *cobra.Command {
	o := bench.ControllerOptions{}
	var replan string
	var changes int
	c := &cobra.Command{
		Use:   "controller",
		Short: "Load-test a controller with idle executors, submissions and reports",
		Long: `Start a server on disk and a controller in this process, connect executors over loopback that do only
what the protocol requires, and measure how soon assignments arrive, how long planning for one more
job takes, and how a burst of reports is handled. The result is one JSON document.

With --replan, measure only planning: for all --jobs but one, then when the last one arrives, then
when one has left. The jobs are equal numbers of TENSILE's five networks with batch 16 within 24GiB of
a simulated a6000. The result is the processor time of each planning. With --changes, jobs keep
arriving and leaving at random, and plans are compared with plans made from scratch.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if replan != "" {
				return replans(c, wire.Sharing(replan), o.Jobs, changes)
			}
			if o.Executors < o.Jobs+1 || o.Jobs < 1 || o.Reports < 1 || o.For <= 0 {
				return fmt.Errorf("%s: give at least one job, more executors than jobs, and a positive rate and time",
					c.CommandPath())
			}
			if err := checkWritable("TMPDIR", os.TempDir()); err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "tensile-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			r, err := bench.MeasureController(c.Context(), dir, o)
			if err != nil {
				return err
			}
			return printJSON(c.OutOrStdout(), r)
		},
	}
	c.Flags().IntVar(&o.Executors, "executors", 1000, "number of connected executors")
	c.Flags().IntVar(&o.Jobs, "jobs", 20, "number of submitted jobs, one per executor")
	c.Flags().IntVar(&o.Reports, "reports", 10_000, "reports per second, over all jobs")
	c.Flags().DurationVar(&o.For, "for", 10*time.Second, "duration of the report load")
	c.Flags().StringVar(&o.Model, "model", "lenet", "network that each job trains")
	c.Flags().StringVar(&replan, "replan", "",
		"measure replanning when a job arrives or leaves, with memory sharing gates or none")
	c.Flags().IntVar(&changes, "changes", 0, "with --replan: number of further arrivals and departures")
	c.Flags().StringVar(&o.Planning, "planning", "",
		"measure request latency while this large model is planned, such as resnet:66,66,66,66")
	return c
}

// replans prints how long replanning takes when one of several jobs arrives or leaves, and over many such changes.
func replans(c *cobra.Command, sharing wire.Sharing, jobs, changes int) error {
	switch {
	case sharing != wire.Gates && sharing != "none":
		return fmt.Errorf("--replan %q: give gates or none", sharing)
	case jobs < 2:
		return fmt.Errorf("--jobs %d: --replan wants 2 or more", jobs)
	case changes < 0:
		return fmt.Errorf("--changes %d: give 0 or more", changes)
	case sharing == "none":
		sharing = wire.NoSharing
	}
	r, err := bench.MeasureReplans(c.Context(), jobs, 16, 24*graph.GiB, sharing, changes)
	if err != nil {
		return err
	}
	return printJSON(c.OutOrStdout(), r)
}
