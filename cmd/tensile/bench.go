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
		Short: "Measure and compare, on fixed inputs",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: there is no benchmark %q: choose pool, plan, frontier, checkpoint, share, "+
					"controller, observe, paper or real", c.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return c.Help() },
	}
	c.AddCommand(benchPoolCommand(), benchPlanCommand(), benchFrontierCommand(), benchCheckpointCommand(),
		benchShareCommand(), benchControllerCommand(), benchObserveCommand(), benchPaperCommand(),
		benchRealCommand())
	return c
}

func benchPoolCommand() *cobra.Command {
	var o bench.PoolOptions
	var json bool
	c := &cobra.Command{
		Use:   "pool",
		Short: "Compare the ways to pack: heights and times on hard instances, training steps and our own plans",
		Long: `Pack with each of the methods (` + strings.Join(pool.Methods(), ", ") +
			`),
check every layout, and print how high it is above the lower bound and how long the packing took:
the minimum of three times, or the only one if it is over a second. Expect a few minutes for all of it.`,
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
		"folder with the folders minimalloc (hard instances) and somas (training steps)")
	c.Flags().IntVar(&o.Rounds, "rounds", demanded, "rounds at most of a search that has a capacity to meet")
	c.Flags().StringSliceVar(&o.Networks, "networks", []string{"mlp", "lenet", "vgg16", "resnet50"},
		"models whose plans are packed")
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

func benchPlanCommand() *cobra.Command {
	o := bench.PlannerOptions{}
	var rewrites string
	var json bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Measure the planner: cost against size, plans after new latencies, what each of its parts brings",
		Long: `Plan the swaps of networks of growing size, pack and prove each plan; plan again for
four jobs after new latencies; plan networks as low as the policy goes and within 70 % and 50 % of
their memory, each time without one part of the planner; and plan with wrong latencies and then with
right ones. Nothing runs. Expect a minute or two.`,
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
		"resnet:580,580,580,575"}, "a network whose swaps are planned; may be given several times")
	c.Flags().IntVar(&o.Batch, "batch", 4, "batch of all but the first of these, which has 16")
	c.Flags().StringSliceVar(&o.Networks, "networks", []string{"resnet50", "vgg16"},
		"networks for the rest, with a batch of 16")
	c.Flags().StringVar(&o.Device, "device", "a6000", "a known device: "+simNames())
	registerPasses(c, &rewrites)
	c.Flags().BoolVar(&o.Small, "small", false, "plan again for four small jobs, not for four of a thousand ops")
	c.Flags().IntVar(&o.Times, "times", 5, "how often each planning is timed; the least time counts")
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

func benchFrontierCommand() *cobra.Command {
	var o bench.FrontierOptions
	var links []string
	var step string
	var json bool
	c := &cobra.Command{
		Use:   "frontier",
		Short: "Measure what policies make of every budget: memory against time",
		Long: `Plan networks within budgets that fall from what they need with every tensor freed after its
last use, by steps, and prove each plan; print the least memory with which no more time is lost than some
limits, beside goals and what was reached before. Memory is that of the arena. Nothing runs. Expect minutes.

With --sweep each budget is planned, and it is listed where less memory takes less time, where a step
less takes much more, and where there is no plan.`,
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
	c.Flags().StringSliceVar(&o.Policies, "policy", []string{"tensile", "tensile-paper", "none-live"}, "policies, of "+
		strings.Join(policies.Names(), ", "))
	c.Flags().StringVar(&step, "step", "1%", "between two budgets, of what a network needs")
	c.Flags().IntSliceVar(&o.Batches, "batch", []int{16},
		"images or sequences per iteration; several are measured each")
	c.Flags().StringSliceVar(&o.Optimizers, "optimizer", []string{"adam"}, "of sgd, momentum and adam")
	c.Flags().StringSliceVar(&o.Devices, "device", []string{"a6000"}, "known devices, simulated: "+simNames())
	c.Flags().StringSliceVar(&links, "link", []string{"none"},
		"limits of each copy direction, such as 12GB/s; none: the device's own")
	c.Flags().StringArrayVar(&o.Passes, "passes", []string{passes.None},
		"rewrites of the networks, as run has them; may be given several times: each choice is measured")
	c.Flags().BoolVar(&o.Sweep, "sweep", false, "plan every budget, and list what is out of order")
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

func benchShareCommand() *cobra.Command {
	var o bench.ShareOptions
	var device, optimizer, rewrites, svg string
	var quick, batch, json bool
	var papers sharingFlags
	c := &cobra.Command{
		Use:   "share",
		Short: "Measure jobs that share the memory of a simulated device: by gates, in turns, each its own",
		Long: `Train sets of jobs together on a simulated device. Without plans that move anything: each with its own
memory (none), in turns of ten iterations from host memory to host memory (slices), and by gates at the least capacity
and at 1.3 times of it. With plans by policy tensile (gates+plans): at capacities that save so much. Throughput is
compared with the same jobs one after the other, and side by side.

--schedulers measures Zico's scheduler (zico) and Waterwave's (waterwave) beside gates, at 1.15 times the least capacity as
well, and nothing with plans.

--largest-batch asks for how large a batch two or four copies of a network can have each, and one copy alone.

--papers fills the tables and figures of Zico and Waterwave on simulated devices of theirs, with noise, networks and
optimizers as they have them: all, or some of ` + strings.Join(bench.SharingTables(), ", ") + `.

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
	c.Flags().StringVar(&device, "device", "sim:a6000", "the device, simulated")
	c.Flags().StringVar(&optimizer, "optimizer", "adam", "sgd, momentum or adam")
	complete(c, "optimizer", "sgd", "momentum", "adam")
	registerPasses(c, &rewrites)
	c.Flags().IntVar(&o.Iterations, "iterations", 40, "iterations of each job that are measured")
	c.Flags().BoolVar(&quick, "quick", false, "measure some of the sets of jobs")
	c.Flags().BoolVar(&o.Schedulers, "schedulers", false, "measure jobs by zico and by waterwave too, none with plans")
	c.Flags().BoolVar(&batch, "largest-batch", false, "measure how large a batch jobs can have that share memory")
	c.Flags().StringVar(&svg, "svg", "",
		"draw the memory over time, a file FILE-JOBS.svg per set or FILE-FIGURE.svg per figure")
	papers.register(c)
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
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
		Short: "Measure what a checkpoint costs the job that it is taken of, while it trains and in Home",
		Long: `Train networks one at a time and take checkpoints in both ways: by a section of the program
that copies the state out while the job trains, and by the way through Home. On a device with data
measure both without a file and with one written beside. Times are medians; the share is that of one
checkpoint in five minutes.`,
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
	c.Flags().IntVar(&o.Settings.Image, "image", 0, "height and width of their images (default: the networks' own)")
	c.Flags().IntVar(&o.Settings.Batch, "batch", 0, "examples per iteration (default 16)")
	registerPasses(c, &rewrites)
	c.Flags().IntSliceVar(&o.Budgets, "budgets", []int{100, 60},
		"device memory, in percent of what a network needs with every tensor freed after its last use")
	c.Flags().IntVar(&o.Every, "every", 20, "iterations between two checkpoints")
	c.Flags().IntVar(&o.Times, "times", 10, "checkpoints that are taken in each way")
	c.Flags().StringVar(&o.Dir, "dir", "", "folder for the files (default: none are written)")
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

func benchControllerCommand() *cobra.Command {
	o := bench.ControllerOptions{}
	var replan string
	var changes int
	c := &cobra.Command{
		Use:   "controller",
		Short: "Put a controller under load: executors that idle, jobs that come, reports",
		Long: `Start a server on disk and a controller in this process, connect executors over
loopback that do nothing but what the protocol demands, and measure how soon orders arrive, how long
the plans for one more job take, and what becomes of reports that come in numbers. The result is one
JSON document.

With --replan nothing of that is done, but plans are made: for all --jobs but one, then for the last that comes,
then for those that are left when one has gone. They are TENSILE's five networks, equally many of each, of batch
16 within 24GiB of a simulated a6000. The result is the processor time of each. With --changes jobs come and go on
at random, and plans are compared with those that are made anew for all.`,
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
	c.Flags().IntVar(&o.Executors, "executors", 1000, "executors that are connected")
	c.Flags().IntVar(&o.Jobs, "jobs", 20, "jobs that are submitted, each to an executor")
	c.Flags().IntVar(&o.Reports, "reports", 10_000, "reports a second, of all jobs together")
	c.Flags().DurationVar(&o.For, "for", 10*time.Second, "how long reports come")
	c.Flags().StringVar(&o.Model, "model", "lenet", "what each job trains")
	c.Flags().StringVar(&replan, "replan", "",
		"measure what plans take when a job comes or goes, of jobs that share memory by gates or do not: gates, none")
	c.Flags().IntVar(&changes, "changes", 0, "with --replan: so many more arrivals and departures")
	c.Flags().StringVar(&o.Planning, "planning", "",
		"a model that takes long to plan for, such as resnet:66,66,66,66: measure what requests take meanwhile")
	return c
}

// replans prints what plans take when one of so many jobs comes or goes, and over so many such changes.
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
