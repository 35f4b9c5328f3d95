package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/data/weights"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// runFlags describe a run.
type runFlags struct {
	workloadFlags
	planFlags
	checkpointFlags
	iterations int
	compare    bool
	measured   bool
	save       string
	trace      string
	profile    string
	share      bool
	isolate    bool
	noise      string
	mispredict float64
	anyway     bool   // Of a script.
	report     string // Of a script.
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run MODEL... | SCRIPT [-- ARGUMENTS]",
		Short: "Train networks together within a memory budget",
		Long: "Train networks together within a memory budget, and report what that cost; or train one script of\n" +
			"PyTorch within it.\n\n" + modelHelp + "\n\n" + scriptHelp,
		Example: "  tensile run resnet50 vgg16 --image 32 --batch 8 --iterations 20 --budget 60% --compare\n" +
			"  tensile run train.py --budget 8GiB -- --epochs 3",
		Args:              needModels,
		ValidArgsFunction: completeModels,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := scriptOf(c, args, func(flag string) bool {
				return slices.Contains([]string{"budget", "compare", "anyway", "report"}, flag)
			}, "anyway", "report")
			switch {
			case err != nil:
				return err
			case s == nil:
				return f.run(c.Context(), args, c.OutOrStdout())
			}
			t, err := parseTerms("--budget", f.budget, f.anyway)
			if err != nil {
				return &exitError{err, neverStarted}
			}
			if f.compare {
				return afterSignal(c.Context(), s.compare(c.Context(), t, f.report, c.OutOrStdout(), c.ErrOrStderr()))
			}
			return join(c.Context(), scriptCommand{args: s.words()}, t, f.report, c.ErrOrStderr())
		},
	}
	f.workloadFlags.register(c)
	f.registerReplicas(c)
	f.planFlags.register(c)
	f.planFlags.registerReplan(c)
	f.planFlags.registerSharing(c, gatesInRun)
	f.checkpointFlags.register(c)
	c.Flags().StringVar(&f.from, "from", "", strings.TrimSuffix(fromHelp, ","))
	f.host.register(c)
	f.latency.eager = true
	c.Flags().IntVar(&f.iterations, "iterations", 20, "iterations per job")
	c.Flags().BoolVar(&f.compare, "compare", false,
		"also train the same jobs without a plan, interleaved; report the slowdown (EOR) and compare all bits")
	c.Flags().BoolVar(&f.measured, "measured", false,
		"plan with the latencies measured in the run without a plan; requires --compare")
	c.Flags().StringVar(&f.data, "data", "",
		dataHelp+" (default: synthetic data)")
	c.Flags().StringVar(&f.weights, "weights", "", weightsHelp)
	c.Flags().StringVar(&f.save, "save", "",
		"write parameters and optimizer state to this FILE, such as w.safetensors (one w-JOB.safetensors per job if "+
			"there are several)")
	c.Flags().StringVar(&f.trace, "trace", "",
		"write a trace of all commands of the planned run to this file, for https://ui.perfetto.dev")
	c.Flags().StringVar(&f.profile, "profile", "",
		"write a profile of the planned run's processor time to this file, for go tool pprof; of several executors "+
			"each but one adds its name")
	c.Flags().BoolVar(&f.share, "share", false,
		"run all jobs in one executor process (with --device sim, this process trains them by default)")
	c.Flags().BoolVar(&f.isolate, "isolate", false,
		"run each job in its own executor process (default except with --device sim)")
	c.Flags().BoolVar(&f.anyway, "anyway", false, anywayHelp)
	c.Flags().StringVar(&f.report, "report", "", reportHelp)
	memoryIsBudget(c.Flags())
	c.Flags().StringVar(&f.noise, "noise", "",
		"with --device sim: random variation of every kernel's time in both directions, such as 5%")
	c.Flags().Float64Var(&f.mispredict, "mispredict", 0,
		"with --device sim: simulate misprediction with per-kind and per-op log-normal factors of this standard "+
			"deviation, such as 0.1")
	return c
}

// mistime sets by how much the times of a simulated device are off.
func (f *runFlags) mistime() error {
	if f.noise == "" && f.mispredict == 0 {
		return nil
	}
	if !f.trainsInProcess() {
		return errors.New("--noise and --mispredict are for --device sim:NAME without --share and --isolate, " +
			"where this process simulates: leave them out")
	}
	if f.noise != "" {
		percent, ok, err := parseShare("--noise", f.noise)
		if err != nil || !ok || percent > 100 {
			return fmt.Errorf("--noise %q: give a percentage such as 5%%, up to 100%%", f.noise)
		}
		f.wrong.Noise = percent / 100
	}
	if !(f.mispredict >= 0 && f.mispredict <= 1) {
		return fmt.Errorf("--mispredict %v: give a number up to 1, such as 0.1", f.mispredict)
	}
	f.wrong.Mispredicted, f.wrong.Seed = f.mispredict, f.seed
	return nil
}

func (f *runFlags) run(ctx context.Context, names []string, out io.Writer) error {
	if err := checkIterations(f.iterations); err != nil {
		return err
	}
	if err := f.checkpointFlags.check(names); err != nil {
		return err
	}
	f.onHost = func(g *graph.Graph) graph.Bytes {
		if f.trainsInProcess() {
			return 0 // where time is virtual no checkpoints are taken
		}
		return controller.Snapshot(f.interval, g)
	}
	if f.share && f.isolate {
		return errors.New("--share and --isolate exclude each other: choose one")
	}
	if err := f.mistime(); err != nil {
		return err
	}
	f.apart, f.shared = f.isolate, f.share
	if f.measured && !f.compare {
		return errors.New("--measured takes latencies from the run of --compare: give both")
	}
	if err := f.checkSave(); err != nil {
		return err
	}
	if err := checkWritable("TMPDIR", os.TempDir()); err != nil {
		return err
	}
	var err error
	if f.save, err = absolute(f.save); err != nil {
		return err
	}
	if f.trace != "" {
		if err := writable("--trace", f.trace); err != nil {
			return err
		}
	}
	if f.profile != "" {
		if err := writable("--profile", f.profile); err != nil {
			return err
		}
		if f.profile, err = absolute(f.profile); err != nil {
			return err
		}
	}
	s, err := open(ctx, names, &f.workloadFlags, &f.planFlags)
	if err != nil {
		return err
	}
	defer s.device.Close()
	test, err := f.testing(s.Tasks)
	if err != nil {
		return err
	}
	marks := make([][]task.Mark, len(s.Tasks))
	var room graph.Bytes        // for what is saved
	for i, t := range s.Tasks { // executors read them; what is wrong is said before anything is trained
		if err := t.Begin(cmp.Or(f.weights, t.Source)); err != nil && !f.simulated() {
			return err
		}
		tellNotes([]task.Task{{Notes: t.Notes[len(s.Tasks[i].Notes):]}}) // what Begin added
		if err := task.Savable(f.save, cmp.Or(t.Source, f.weights)); err != nil {
			return err
		}
		if !f.simulated() && f.iterations >= fewestToTell {
			marks[i] = t.Marks()
		}
		if copied := i > 0 && s.Tasks[i-1].Graph == t.Graph; !copied && !f.simulated() {
			if err := tellTwice(ctx, &t); err != nil {
				return err
			}
		}
		room += t.SavedBytes(f.save, cmp.Or(t.Source, f.weights))
	}
	if f.save != "" {
		if err := weights.Room(nil, f.save, room); err != nil {
			return fmt.Errorf("--save %w", err)
		}
	}
	if err := f.begins(s); err != nil {
		return err
	}
	screen := newScreen(out, s, f.json, f.iterations)
	screen.head(f.policy, f.way())

	run, vanilla, t, err := f.trained(ctx, s, screen, test != nil)
	if err != nil {
		return err
	}
	screen.done()
	saved, err := s.saved(ctx)
	if err != nil {
		return err
	}
	r := report.Compare(s.Tasks, s.Planned, saved, s.Request.Budget, run, vanilla)
	measured := t.measure(ctx, test, r) // whatever comes of it, the jobs were trained
	r.Device, r.Policy, r.Link, r.Latency = s.device.Name(), f.policy, float64(s.link.rate), s.latency
	if r.Sharing = f.way(); r.Sharing == wire.Slices {
		r.TakeTurns()
	}
	if t.trace != nil {
		if err := t.trace.save(f.trace); err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
	}
	if f.json {
		err = f.printJSON(out, r)
	} else {
		err = r.WriteTable(out, f.wide)
		if err == nil {
			_, err = fmt.Fprintln(out, r.Sentence())
		}
		err = cmp.Or(err, f.notReal(out))
	}
	if err != nil {
		return err
	}
	for i, j := range run.Jobs {
		if names := task.Unmoved(marks[i], j.Weights); len(names) > 0 {
			fmt.Fprintf(os.Stderr, "tensile: job %s: no gradient has moved %s in %d iterations: the loss does not "+
				"depend on that, as on a bias before a normalization, or a layer behind it is dead, or --lr is too "+
				"small\n",
				s.Tasks[i].Name, listFirst(names), f.iterations)
		}
	}
	return cmp.Or(measured, differs(r))
}

// fewestToTell is from how many iterations on a parameter whose gradient was zero in all of them is told.
const fewestToTell = 10

// listFirst lists the first few names of many.
func listFirst(names []string) string {
	const most = 8
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// begins finds out before the training whether the job can begin with the checkpoint of --from.
func (f *runFlags) begins(s *session) error {
	if f.from == "" {
		return nil
	}
	for _, t := range s.Tasks { // one job, or its replicas
		replica := replicaOf(&t)
		if f.simulated() {
			replica = wire.Replica{}
		}
		spec := wire.Spec{Name: t.Name, Model: t.Model, Graph: t.Graph.Digest(), Seed: t.Seed, Iterations: f.iterations,
			From: fromOf(f.from, replica, t.Name), AnyDevice: f.anyDevice}
		checkpoints := agent.Checkpoints{Device: s.device.Identity(), NoData: f.simulated()}
		if _, _, err := checkpoints.Start(&agent.Prepare{Spec: spec}, &t); err != nil {
			return err
		}
	}
	return nil
}

// trained trains the jobs as planned and, to compare, without a plan. Where time is real the two runs alternate, a
// block of iterations each. They run one after the other where time is virtual, as there is no background load, and
// with --measured, whose plans need the latencies of the vanilla run.
func (f *runFlags) trained(ctx context.Context, s *session, screen *screen, learn bool) (run, vanilla *local.Run,
	planned *training, err error) {
	planned = &training{session: s, flags: f, policy: f.policy, budget: s.Request.Budget, planned: s.Planned,
		request: s.Request, save: true, learn: learn}
	if f.trace != "" {
		var jobs []string
		for _, task := range s.Tasks {
			jobs = append(jobs, task.Name)
		}
		planned.trace = newTracing(jobs)
	}
	begin := func(t *training, title string) func() {
		t.screen = screen.observer(t.planned)
		return func() { screen.part(title) }
	}
	if !f.compare {
		begin(planned, f.policy)()
		run, err = planned.run(ctx)
		return run, nil, planned, err
	}
	free := &training{session: s, flags: f, policy: "none-live", plain: true}
	free.request = free.device().Request(s.Jobs...)
	free.request.Policy, free.request.Options, free.request.HostBudget = free.policy, s.Options, s.HostBudget
	if free.planned, err = planner.Plan(ctx, free.request); err != nil {
		return nil, nil, nil, err
	}
	if !f.simulated() && !f.measured {
		runs, err := alternate(ctx, [2]*training{free, planned}, [2]func(){begin(free, "vanilla"),
			begin(planned, f.policy)})
		return runs[1], runs[0], planned, err
	}
	begin(free, "vanilla")()
	if vanilla, err = free.run(ctx); err != nil {
		return nil, nil, nil, err
	}
	if f.measured {
		err := s.Remeasure(ctx, &f.latency.Sources, func(job int, p planner.Profile) []time.Duration {
			return vanilla.Jobs[job].Watched.Latencies(p.FirstVariantTime, free.planned.Jobs[job].Plan,
				len(s.Tasks[job].Graph.Ops))
		})
		if err != nil {
			return nil, nil, nil, fmt.Errorf("--measured, which may want more --iterations: %w", err)
		}
		s.latency = "measured in the vanilla run"
		planned.planned, planned.request = s.Planned, s.Request
	}
	begin(planned, f.policy)()
	run, err = planned.run(ctx)
	return run, vanilla, planned, err
}

func checkIterations(n int) error {
	const maxIterations = 1 << 24 // the losses of all are kept
	if n < 1 || n > maxIterations {
		return fmt.Errorf("--iterations %d: give 1 to %d", n, maxIterations)
	}
	return nil
}

// differs is the error for a planned run that has other bits than the vanilla one: a bug of ours.
func differs(r *report.Training) error {
	for _, j := range r.Jobs {
		if j.BitIdentical != nil && !*j.BitIdentical {
			return fmt.Errorf("job %s: the planned run's losses or weights differ from the vanilla run's; please "+
				"report this with the command line", j.Job)
		}
	}
	return nil
}

func printJSON(out io.Writer, document any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(document)
}

// checkSave finds out before the training whether its result can be written, and whether there can be first weights.
func (f *runFlags) checkSave() error {
	if f.weights != "" && strings.HasPrefix(f.device, "sim:") {
		return fmt.Errorf("--weights: %s has no data; use --device cpu", f.device)
	}
	if f.save == "" {
		return nil
	}
	if strings.HasPrefix(f.device, "sim:") {
		return fmt.Errorf("--save: %s has no data; use --device cpu", f.device)
	}
	if err := weights.Writable(nil, f.save); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// checkWritable finds out whether a file can be made in a folder.
func checkWritable(flag, dir string) error {
	file, err := os.CreateTemp(dir, ".tensile-")
	if err != nil {
		return fmt.Errorf("%s: the folder %s cannot be written: %w", flag, dir, reason(err))
	}
	defer os.Remove(file.Name())
	return file.Close()
}

// reason is what is behind an error of the file system, without the path.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// savedAs is the file for the weights of a job, one of several; "" if none is wanted.
func savedAs(path string, jobs int, name string) string {
	if jobs == 1 || path == "" {
		return path
	}
	extension := filepath.Ext(path)
	return strings.TrimSuffix(path, extension) + "-" + name + extension
}
