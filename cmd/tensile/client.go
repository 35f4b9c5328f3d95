package main

import (
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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tensile/graph"
	"tensile/internal/bus"
	"tensile/scheduler"
	"tensile/task"
	"tensile/wire"
)

// registerState registers the folder in which a controller keeps what it knows.
func registerState(c *cobra.Command, state *string) {
	c.Flags().StringVar(state, "state", defaultState(), "folder in which the controller keeps what it knows")
}

func defaultState() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "tensile")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "" // which checkState refuses
	}
	return filepath.Join(home, ".local", "state", "tensile")
}

// checkState returns the error of a state folder that there cannot be.
func checkState(state string) error {
	info, err := os.Stat(state)
	switch {
	case state == "":
		return errors.New("neither HOME nor XDG_STATE_HOME is set: name a folder with --state")
	case err == nil && !info.IsDir():
		return fmt.Errorf("--state %s is a file: name a folder", state)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("--state %s lies below a file: name a folder", state)
	}
	return nil
}

// clientFlags say which controller is meant.
type clientFlags struct{ state, url, credentials string }

func (f *clientFlags) register(c *cobra.Command) {
	registerState(c, &f.state)
	c.Flags().StringVar(&f.credentials, "credentials", "", "file of credentials (default: that of the state folder)")
	c.Flags().StringVar(&f.url, "nats", "", "address of the controller (default: the one in the credentials)")
}

// connect connects to the controller.
func (f *clientFlags) connect(ctx context.Context) (*bus.Conn, error) {
	path := f.credentials
	if path == "" {
		if err := checkState(f.state); err != nil {
			return nil, err
		}
		path = filepath.Join(f.state, clientFile)
	}
	credentials, err := bus.ReadCredentials(path)
	if err != nil {
		if f.credentials == "" {
			err = noController(f.state, err)
		}
		return nil, err
	}
	if f.url != "" {
		if err := checkAddress(f.url, credentials); err != nil {
			return nil, err
		}
		credentials.URL = f.url
	}
	return bus.Connect(ctx, credentials, bus.ConnOptions{})
}

// noController explains that no controller has left its credentials in a folder.
func noController(state string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no controller runs on the state folder %s: start one with tensile controller, or name "+
			"another with --state", state)
	}
	return err
}

// ask sends a request to the controller.
func ask(ctx context.Context, conn wire.Bus, q wire.Request) (wire.Answer, error) {
	data, err := conn.Ask(ctx, wire.ControlSubject, wire.Encode(q))
	// it connects to its own server a little later
	for tries := 0; errors.Is(err, wire.ErrNobody) && tries < 10 && ctx.Err() == nil; tries++ {
		time.Sleep(200 * time.Millisecond)
		data, err = conn.Ask(ctx, wire.ControlSubject, wire.Encode(q))
	}
	if ctx.Err() != nil {
		return wire.Answer{}, context.Cause(ctx)
	}
	if errors.Is(err, wire.ErrNobody) {
		return wire.Answer{}, errors.New("no controller answers; is it still starting?")
	} else if err != nil {
		return wire.Answer{}, err
	}
	a, err := wire.DecodeAs[wire.Answer](data)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// with runs a command that needs a controller.
func (f *clientFlags) with(run func(ctx context.Context, conn *bus.Conn, args []string,
	out io.Writer) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		conn, err := f.connect(c.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
		return run(c.Context(), conn, args, c.OutOrStdout())
	}
}

// submission describes jobs to be submitted.
type submission struct {
	workloadFlags
	name       string
	iterations int
	priority   int
	swapRate   float64
	save       string
}

func submitCommand() *cobra.Command {
	var f clientFlags
	var s submission
	var wait, asJSON bool
	c := &cobra.Command{
		Use:   "submit MODEL...",
		Short: "Give jobs to a controller",
		Long: "Give jobs to a controller. They are planned for together, at once; those that do not fit beside the " +
			"others wait. All are taken,\n" +
			"or none if one of them never fits.\n\n" + modelHelp,
		Example:           "  tensile submit resnet50 vgg16:2 --image 32 --iterations 1000 --priority 2",
		Args:              needModels,
		ValidArgsFunction: completeModels,
		PreRunE:           func(_ *cobra.Command, args []string) error { return s.check(args) },
	}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		w, err := s.load(args)
		if err != nil {
			return err
		}
		asked := make([]newJob, len(w))
		for i, t := range w {
			if s.name != "" {
				t.Name = s.name + strings.TrimPrefix(t.Name, t.Model) // the number of a copy stays
			}
			if asked[i], err = s.job(t, len(w)); err != nil {
				return err
			}
		}
		jobs, err := submit(ctx, conn, asked)
		if err != nil {
			return err
		}
		if !asJSON {
			for _, r := range jobs {
				fmt.Fprintln(out, submitted(r))
			}
		}
		switch {
		case wait:
			return await(ctx, conn, jobs, asJSON, out)
		case asJSON:
			return printJSON(out, jobs)
		}
		return err
	})
	f.register(c)
	s.workloadFlags.register(c)
	c.Flags().StringVar(&s.name, "name", "",
		"name of the job (default: that of its MODEL); copies are NAME.1, NAME.2 and so on")
	c.Flags().IntVar(&s.iterations, "iterations", 20, "iterations of each job")
	c.Flags().StringVar(&s.dataDir, "data", "",
		"folder with CIFAR-10 binary batches or MNIST IDX files where the executor runs; sizes of images follow "+
			"from it if it is here too (default: a synthetic set)")
	c.Flags().StringVar(&s.weights, "weights", "", weightsHelp+" where the executor runs")
	c.Flags().StringVar(&s.save, "save", "",
		"have the executor write parameters and optimizer state to FILE.safetensors where it runs; with several "+
			"jobs, FILE-JOB.safetensors each")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the jobs are over; the exit status is that of tensile wait")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document and nothing else")
	c.Flags().IntVar(&s.priority, "priority", 1, "weight of the jobs' time against that of others")
	c.Flags().Float64Var(&s.swapRate, "max-swap-rate", 0,
		"largest share of a job's storages that may be swapped (default: no limit)")
	return c
}

// check finds out before anything is submitted whether the flags make sense.
func (s *submission) check(models []string) error {
	if err := checkIterations(s.iterations); err != nil {
		return err
	}
	if s.priority < 1 || s.priority > scheduler.MaxWeight {
		return fmt.Errorf("--priority %d: give 1 to %d", s.priority, scheduler.MaxWeight)
	}
	if !(s.swapRate >= 0 && s.swapRate <= 1) {
		return fmt.Errorf("--max-swap-rate %v: give a share from 0 (no limit) to 1", s.swapRate)
	}
	if s.name == "" {
		return nil
	}
	if len(models) > 1 {
		return fmt.Errorf("--name %s: there are %d MODELs: submit one at a time, or leave it out", s.name, len(models))
	}
	if err := wire.CheckName(s.name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	return nil
}

// load builds the networks. Their data set is read where the executor runs; if it is here too, the sizes of the images
// follow from it.
func (s *submission) load(models []string) ([]task.Task, error) {
	if w, err := s.workloadFlags.load(models); err == nil {
		return w, nil
	}
	elsewhere := s.workloadFlags
	elsewhere.dataDir = ""
	return elsewhere.load(models)
}

// newJob is a job to be submitted.
type newJob struct {
	spec  wire.Spec
	graph *graph.Graph
}

// job returns the job for a task, one of several.
func (s *submission) job(t task.Task, jobs int) (newJob, error) {
	save, err := absolute(savedAs(s.save, jobs, t.Name))
	if err != nil {
		return newJob{}, err
	}
	weights, err := absolute(s.weights)
	if err != nil {
		return newJob{}, err
	}
	data, err := absolute(s.dataDir)
	return newJob{wire.Spec{Name: t.Name, Model: t.Model, Graph: t.Graph.Digest(), Seed: t.Seed,
		Iterations: s.iterations, Priority: s.priority, SwapRate: s.swapRate, Data: data, Save: save,
		Weights: weights}, t.Graph}, err
}

// submit asks for all jobs at once, which are taken or refused together. Graphs that the controller lacks are handed
// over.
func submit(ctx context.Context, conn wire.Bus, jobs []newJob) ([]wire.Record, error) {
	request := wire.Request{Verb: wire.Submit}
	for _, j := range jobs {
		request.Specs = append(request.Specs, j.spec)
	}
	for again := true; ; again = false {
		if err := handOver(ctx, conn, jobs); err != nil {
			if a, asked := ask(ctx, conn, wire.Request{Verb: wire.Jobs}); asked == nil && a.Trouble != "" {
				err = errors.New(a.Trouble) // which is why
			}
			return nil, err
		}
		a, err := ask(ctx, conn, request)
		if !a.Missing || !again { // the last job with one of the graphs was forgotten at this very moment
			return a.Jobs, err
		}
	}
}

// handOver stores the graphs that are not there.
func handOver(ctx context.Context, conn wire.Bus, jobs []newJob) error {
	missing, err := lacking(ctx, conn, jobs)
	for _, j := range missing {
		text, err := json.Marshal(j.graph)
		if err == nil {
			err = conn.Store(ctx, wire.Graphs, wire.GraphObject(j.spec.Graph), text)
		}
		if err != nil {
			return fmt.Errorf("hand over the graph of job %s: %w", j.spec.Name, err)
		}
	}
	return err
}

// lacking returns one job for each graph that is not there, or is damaged.
func lacking(ctx context.Context, conn wire.Bus, jobs []newJob) (missing []newJob, err error) {
	seen := make(map[graph.Digest]bool)
	for _, j := range jobs {
		if seen[j.spec.Graph] {
			continue
		}
		seen[j.spec.Graph] = true
		if _, err := conn.Load(ctx, wire.Graphs, wire.GraphObject(j.spec.Graph)); errors.Is(err, wire.ErrAway) {
			return nil, err
		} else if err != nil {
			missing = append(missing, j)
		}
	}
	return missing, nil
}

func submitted(r wire.Record) string {
	line := fmt.Sprintf("job %s is %s", r.Spec.Name, r.State)
	if r.Why != "" {
		line += ": " + r.Why
	}
	return line
}

func stopCommand() *cobra.Command {
	var f clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use:     "stop JOB...",
		Short:   "End jobs after the iterations in flight",
		Args:    needJobs,
		Example: "  tensile stop vgg16.2",
	}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		var stopped []wire.Record
		for _, name := range args {
			a, err := ask(ctx, conn, wire.Request{Verb: wire.Stop, Job: name})
			if err != nil {
				return err
			}
			if stopped = append(stopped, a.Jobs[0]); !asJSON {
				fmt.Fprintln(out, submitted(a.Jobs[0]))
			}
		}
		if asJSON {
			return printJSON(out, stopped)
		}
		return nil
	})
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document and nothing else")
	return c
}

func logsCommand() *cobra.Command {
	var f clientFlags
	var follow bool
	c := &cobra.Command{Use: "logs JOB", Short: "Print what a job has logged", Args: needOne("JOB")}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		job, err := recordOf(ctx, conn, args[0])
		if err != nil {
			return err
		}
		l := log{out: out}
		stop, err := conn.Follow(ctx, wire.LogSubject("*", args[0]), l.add)
		if err != nil || !follow {
			if err == nil {
				stop()
			}
			return err
		}
		_, err = end(ctx, conn, job)
		stop()
		if ctx.Err() != nil {
			return errQuiet
		} else if err != nil {
			return err
		}
		// The last lines were written before the job was over, but may still have been on their way.
		rest := log{}
		if stop, err = conn.Follow(ctx, wire.LogSubject("*", args[0]), rest.add); err != nil {
			return err
		}
		stop()
		for _, line := range l.missing(rest.lines) {
			fmt.Fprintln(out, line)
		}
		return nil
	})
	f.register(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job is over, or until interrupted")
	return c
}

// log is what was read of a job's log.
type log struct {
	out   io.Writer // may be nil
	lines []string
}

func (l *log) add(line []byte) {
	l.lines = append(l.lines, string(line))
	if l.out != nil {
		fmt.Fprintln(l.out, string(line))
	}
}

// missing are the lines at the end of all that were not read: all begins with a line that was, unless the log keeps
// fewer.
func (l *log) missing(all []string) []string {
	for n := min(len(l.lines), len(all)); n > 0; n-- {
		if slices.Equal(l.lines[len(l.lines)-n:], all[:n]) {
			return all[n:]
		}
	}
	return all
}

// recordOf is what the controller knows of a job.
func recordOf(ctx context.Context, conn wire.Bus, job string) (wire.Record, error) {
	if err := wire.CheckName(job); err != nil {
		return wire.Record{}, err
	}
	data, err := conn.Get(ctx, wire.RecordKey(job))
	if errors.Is(err, wire.ErrNotFound) {
		return wire.Record{}, fmt.Errorf("there is no job %s: tensile jobs lists them", job)
	} else if err != nil {
		return wire.Record{}, err
	}
	return wire.DecodeAs[wire.Record](data)
}

// needJobs is the error for a command line that names no job.
func needJobs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: name a JOB: tensile jobs lists them", c.CommandPath())
	}
	return nil
}

// needOne returns the error for a command line that does not name one thing.
func needOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s: give one %s, not %d; see %s --help", c.CommandPath(), what, len(args),
				c.CommandPath())
		}
		return nil
	}
}
