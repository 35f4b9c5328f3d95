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
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tensile/bench"
	"tensile/internal/bus"
	"tensile/scheduler"
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
		return "tensile-state"
	}
	return filepath.Join(home, ".local", "state", "tensile")
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
		credentials.URL = f.url
	}
	return bus.Connect(ctx, credentials, bus.ConnOptions{})
}

// noController explains that no controller has left its credentials in a folder.
func noController(state string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no controller runs on the state folder %s: start one with tensile controller, or name another with --state", state)
	}
	return err
}

// ask sends a request to the controller.
func ask(ctx context.Context, conn wire.Bus, q wire.Request) (wire.Answer, error) {
	data, err := conn.Ask(ctx, wire.ControlSubject, wire.Encode(q))
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
func (f *clientFlags) with(run func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error) func(*cobra.Command, []string) error {
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
	c := &cobra.Command{
		Use:               "submit MODEL...",
		Short:             "Give jobs to a controller",
		Long:              "Give jobs to a controller. Each is planned for at once, waits until it fits beside the others, or is refused if it never will.\n\n" + modelHelp,
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
		for _, t := range w {
			if s.name != "" {
				t.Name = s.name + strings.TrimPrefix(t.Name, t.Model) // the number of a copy stays
			}
			r, err := s.submit(ctx, conn, t)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, submitted(r))
		}
		return nil
	})
	f.register(c)
	s.workloadFlags.register(c)
	c.Flags().StringVar(&s.name, "name", "", "name of the job (default: that of its MODEL); copies are NAME.1, NAME.2 and so on")
	c.Flags().IntVar(&s.iterations, "iterations", 20, "iterations of each job")
	c.Flags().StringVar(&s.dataDir, "data", "", "folder with CIFAR-10 binary batches or MNIST IDX files, as the executor sees it (default: a synthetic set)")
	c.Flags().IntVar(&s.priority, "priority", 1, "weight of the jobs' time against that of others")
	c.Flags().Float64Var(&s.swapRate, "max-swap-rate", 0, "largest share of a job's storages that may be swapped (default: no limit)")
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

// submit stores a task's graph and asks for the job.
func (s *submission) submit(ctx context.Context, conn wire.Bus, t bench.Task) (wire.Record, error) {
	text, err := json.Marshal(t.Graph)
	if err != nil {
		return wire.Record{}, err
	}
	digest := t.Graph.Digest()
	data, err := absolute(s.dataDir)
	if err != nil {
		return wire.Record{}, err
	}
	spec := wire.Spec{Name: t.Name, Model: t.Model, Graph: digest, Seed: t.Seed, Iterations: s.iterations, Priority: s.priority,
		SwapRate: s.swapRate, Data: data, Save: s.save}
	for again := true; ; again = false {
		if err := conn.Store(ctx, wire.Graphs, wire.GraphObject(digest), text); err != nil {
			return wire.Record{}, fmt.Errorf("hand over the graph of job %s: %w", t.Name, err)
		}
		a, err := ask(ctx, conn, wire.Request{Verb: wire.Submit, Spec: &spec})
		if err == nil {
			return a.Jobs[0], nil
		}
		if _, missing := conn.Load(ctx, wire.Graphs, wire.GraphObject(digest)); !again || !errors.Is(missing, wire.ErrNotFound) {
			return wire.Record{}, err
		} // the last job with that graph was forgotten at this very moment
	}
}

func submitted(r wire.Record) string {
	line := fmt.Sprintf("job %s is %s", r.Spec.Name, r.Phase)
	if r.Why != "" {
		line += ": " + r.Why
	}
	return line
}

func stopCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:     "stop JOB...",
		Short:   "End jobs after the iterations in flight",
		Args:    needJobs,
		Example: "  tensile stop vgg16.2",
	}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		for _, name := range args {
			a, err := ask(ctx, conn, wire.Request{Verb: wire.Stop, Job: name})
			if err != nil {
				return err
			}
			fmt.Fprintln(out, submitted(a.Jobs[0]))
		}
		return nil
	})
	f.register(c)
	return c
}

func jobsCommand() *cobra.Command {
	var f clientFlags
	var asJSON, watch bool
	c := &cobra.Command{Use: "jobs", Short: "List the jobs of a controller", Args: noArguments}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
		for {
			a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
			if err != nil {
				return err
			}
			if asJSON {
				if a.Jobs == nil {
					a.Jobs = []wire.Record{}
				}
				err = printJSON(out, a.Jobs)
			} else {
				if watch {
					fmt.Fprint(out, "\x1b[H\x1b[J")
				}
				err = writeJobs(out, a.Jobs)
			}
			if err != nil || !watch {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Second):
			}
		}
	})
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document and nothing else; with --watch, one a second")
	c.Flags().BoolVar(&watch, "watch", false, "go on, once a second, until interrupted")
	return c
}

func writeJobs(out io.Writer, jobs []wire.Record) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tSTATE\tITERATION\tARENA\tSLOT PEAK\tPLANS\tEXECUTOR\t")
	for _, r := range jobs {
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t%s\t%d\t%s\t%s\n", r.Spec.Name, r.Phase, r.Iteration, r.Spec.Iterations, r.Claim, r.SlotPeak, r.Replans, r.Executor, r.Why)
	}
	return w.Flush()
}

func logsCommand() *cobra.Command {
	var f clientFlags
	var follow bool
	c := &cobra.Command{Use: "logs JOB", Short: "Print what a job has logged", Args: needOne("JOB")}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		if _, err := recordOf(ctx, conn, args[0]); err != nil {
			return err
		}
		stop, err := conn.Follow(ctx, wire.LogSubject("*", args[0]), func(line []byte) { fmt.Fprintf(out, "%s\n", line) })
		if err != nil {
			return err
		}
		defer stop()
		if follow {
			<-ctx.Done()
		}
		return nil
	})
	f.register(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until interrupted")
	return c
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
			return fmt.Errorf("%s: give one %s, not %d; see %s --help", c.CommandPath(), what, len(args), c.CommandPath())
		}
		return nil
	}
}
