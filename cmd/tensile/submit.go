package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/wire"
	"tensile/wire/bus"
)

// submission describes jobs to be submitted.
type submission struct {
	workloadFlags
	checkpointFlags
	name       string
	iterations int
	priority   int
	device     string
	swapRate   float64
	save       string
	user       bool // submits: relative paths are below that user's folder, where the executor runs
}

func submitCommand() *cobra.Command {
	var f clientFlags
	var s submission
	var wait, asJSON bool
	c := &cobra.Command{
		Use:   "submit MODEL... | SCRIPT [-- ARGUMENTS]",
		Short: "Submit jobs to a controller",
		Long: "Submit jobs to a controller. They are planned together at once; jobs that do not fit yet wait in the " +
			"queue.\nIf one of the jobs can never fit, none is accepted.\n\n" + modelHelp + "\n\n" + scriptHelp +
			" It\nbecomes a job in a process of its own, here, in this folder and environment, which goes on when\n" +
			"this command has ended.",
		Example:           "  tensile submit resnet50 vgg16:2 --image 32 --iterations 1000 --priority 2",
		Args:              needModels,
		ValidArgsFunction: completeModels,
	}
	submitNetworks := f.withController(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		w, err := s.load(args)
		if err != nil {
			return err
		}
		for i := range w {
			if s.name != "" {
				w[i].Name = s.name + strings.TrimPrefix(w[i].Name, w[i].Model) // the number of a copy stays
			}
		}
		w = task.Replicas(w)
		if f.credentials == "" {
			if err := s.checkFrom(ctx, conn, w); err != nil {
				return err
			}
		}
		_, s.user, _ = bus.UserName(conn.User())
		asked := make([]newJob, len(w))
		for i, t := range w {
			if asked[i], err = s.job(t, len(w), replicaOf(&t)); err != nil {
				return err
			}
		}
		jobs, err := submit(ctx, conn, asked)
		if err != nil {
			return s.suggestBatch(ctx, conn, args, err)
		}
		tellNotes(w)
		if !asJSON {
			for _, r := range jobs {
				fmt.Fprintln(out, submitted(r))
			}
			writeStill(out, w)
		}
		switch {
		case wait:
			return s.suggestBatch(ctx, conn, args, await(ctx, conn, jobs, asJSON, out))
		case asJSON:
			return printJSON(out, jobs)
		}
		return err
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		script, err := scriptOf(c, args, func(flag string) bool { return slices.Contains(ofScripts, flag) },
			"memory", "restart")
		if err != nil {
			return err
		}
		if script != nil {
			return script.submit(c, c.OutOrStdout())
		}
		if err := s.check(args); err != nil {
			return err
		}
		return submitNetworks(c, args)
	}
	c.Flags().String("memory", "", "of a script: device memory until its first iteration is recorded, such as 4GiB "+
		"(default: a quarter of the budget)")
	c.Flags().Int("restart", 0, "of a script: how often it is started again after a failure, with what it has saved "+
		"itself (default: it is not)")
	f.register(c)
	s.workloadFlags.register(c)
	s.registerReplicas(c)
	s.checkpointFlags.register(c)
	c.Flags().StringVar(&s.from, "from", "", fromHelp+" on the executor's machine")
	c.Flags().StringVar(&s.name, "name", "",
		"job name (default: its MODEL); copies are called NAME.1, NAME.2 and so on")
	c.Flags().IntVar(&s.iterations, "iterations", 20, "iterations per job")
	c.Flags().StringVar(&s.data, "data", "",
		dataHelp+", on the executor's machine; image sizes are taken from it if it is also readable here (default: "+
			"synthetic data)")
	c.Flags().StringVar(&s.weights, "weights", "", weightsHelp+"; FILE is on the executor's machine")
	c.Flags().StringVar(&s.save, "save", "",
		"write parameters and optimizer state to this FILE on the executor's machine, such as w.safetensors (one "+
			"w-JOB.safetensors per job if there are several); a user's relative paths here and in --data, --weights "+
			"and --from are below that user's folder")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the jobs end; exits like tensile job wait")
	c.Flags().BoolVar(&asJSON, "json", false, "print a single JSON document")
	c.Flags().IntVar(&s.priority, "priority", 1, "priority of the jobs: their weight relative to other jobs")
	c.Flags().StringVar(&s.device, "device", "",
		"device to train on, as listed by tensile devices --state (default: the one with the least slowdown for all)")
	c.Flags().Float64Var(&s.swapRate, "max-swap-rate", 0,
		"maximum share of a job's storages to swap (default: no limit)")
	return c
}

// ofScripts are the flags of submit that a script takes.
var ofScripts = []string{"name", "priority", "memory", "restart", "state", "credentials", "nats"}

// check finds out before anything is submitted whether the flags make sense.
func (s *submission) check(models []string) error {
	if err := checkIterations(s.iterations); err != nil {
		return err
	}
	if s.priority < 1 || s.priority > scheduler.MaxWeight {
		return fmt.Errorf("--priority %d: give 1 to %d", s.priority, scheduler.MaxWeight)
	}
	if s.device != "" {
		if err := wire.CheckDevice(s.device); err != nil {
			return fmt.Errorf("--device: %w", err)
		}
	}
	if err := s.checkpointFlags.check(models); err != nil {
		return err
	}
	if _, err := parsePasses(s.passes); err != nil {
		return err
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

// checkFrom looks for the checkpoint of --from, which the executor reads, where all executors are on this machine:
// those that a controller of a state folder here has started.
func (s *submission) checkFrom(ctx context.Context, conn wire.Bus, w []task.Task) (err error) {
	if s.from == "" {
		return nil
	}
	var from string
	for i := range w {
		from = fromOf(s.from, replicaOf(&w[i]), w[i].Name)
		if _, err = os.Stat(from); err != nil {
			break
		}
	}
	if err == nil {
		return nil
	}
	if a, asked := ask(ctx, conn, wire.Request{Verb: wire.Jobs}); asked != nil || a.ByHand {
		return asked // it may be where one was started by hand
	}
	return fmt.Errorf("--from %s: %w", from, reason(err))
}

// load builds the networks. Their data set is read where the executor runs; if it is here too, the sizes of the images
// follow from it.
func (s *submission) load(models []string) ([]task.Task, error) {
	if w, err := s.workloadFlags.load(models); err == nil {
		return w, nil
	}
	elsewhere := s.workloadFlags
	elsewhere.data = ""
	return elsewhere.load(models)
}

// newJob is a job to be submitted.
type newJob struct {
	spec    wire.Spec
	graph   *graph.Graph
	latency []time.Duration // Captured latencies of a script's graph; nil for other graphs.
}

// job returns the job for a task, one of several.
func (s *submission) job(t task.Task, jobs int, replica wire.Replica) (newJob, error) {
	spec := wire.Spec{Name: t.Name, Model: t.Model, Graph: t.Graph.Digest(), Seed: t.Seed, Iterations: s.iterations,
		Priority: s.priority, SwapRate: s.swapRate, Data: s.data, Save: savedAs(s.save, jobs, t.Name),
		Weights: cmp.Or(s.weights, t.Source), Device: s.device, Replica: replica,
		From: fromOf(s.from, replica, t.Name)}
	if s.weights != "" { // else that is the file of weights
		spec.Source = t.Source
	}
	s.checkpointFlags.setSpec(&spec)
	if !s.user {
		for _, path := range spec.Paths() {
			var err error
			if *path, err = absolute(*path); err != nil {
				return newJob{}, err
			}
		}
	}
	return newJob{spec: spec, graph: t.Graph}, nil
}

// fromOf is the checkpoint with which a job begins: each replica of a job has one of its own.
func fromOf(path string, r wire.Replica, name string) string {
	return savedAs(path, max(1, r.Of), name)
}

// replicaOf is the place of a task among the replicas of a job, if it is one of some.
func replicaOf(t *task.Task) wire.Replica {
	if of := t.Graph.Replicas(); of > 1 {
		return wire.Replica{Number: t.Replica, Of: of}
	}
	return wire.Replica{}
}

// submit asks for all jobs at once, which are taken or refused together.
func submit(ctx context.Context, conn wire.Bus, jobs []newJob) ([]wire.Record, error) {
	a, err := request(ctx, conn, jobs)
	return a.Jobs, err
}

// request is submit with the whole answer.
func request(ctx context.Context, conn wire.Bus, jobs []newJob) (wire.Answer, error) {
	request := wire.Request{Verb: wire.Submit}
	seen := make(map[graph.Digest]bool)
	for _, j := range jobs {
		request.Specs = append(request.Specs, j.spec)
		if seen[j.spec.Graph] {
			continue
		}
		seen[j.spec.Graph] = true
		packed, err := wire.Pack(j.graph, j.latency)
		if err != nil {
			return wire.Answer{}, fmt.Errorf("hand over the graph of job %s: %w", j.spec.Name, err)
		}
		request.Graphs = append(request.Graphs, packed)
	}
	return ask(ctx, conn, request)
}

func submitted(r wire.Record) string {
	line := fmt.Sprintf("job %s is %s", r.Spec.Name, r.State)
	if r.Reason != "" {
		line += ": " + r.Reason
	}
	return line
}
