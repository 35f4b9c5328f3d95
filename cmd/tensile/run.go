package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tensile/bench"
	"tensile/graph"
	"tensile/weights"
)

// runFlags describe a run.
type runFlags struct {
	workloadFlags
	planFlags
	iterations int
	compare    bool
	save       string
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:     "run MODEL...",
		Short:   "Train networks together within a budget",
		Long:    "Train networks together within a budget, and say what it cost.\n\n" + modelHelp(),
		Example: "  tensile run resnet50 vgg16 --image 32 --batch 8 --iterations 20 --budget 60% --compare",
		Args:    needModels,
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), args, c.OutOrStdout()) },
	}
	f.workloadFlags.register(c)
	f.planFlags.register(c)
	c.Flags().IntVar(&f.iterations, "iterations", 20, "iterations of each job")
	c.Flags().BoolVar(&f.compare, "compare", false, "run the same jobs without a plan first; gives EOR, and compares every bit")
	c.Flags().StringVar(&f.dataDir, "data", "", "folder with CIFAR-10 binary batches or MNIST IDX files (default: a synthetic set)")
	c.Flags().StringVar(&f.save, "save", "", "write parameters and optimizer state to FILE.safetensors; with several jobs, FILE-JOB.safetensors each")
	return c
}

func (f *runFlags) run(ctx context.Context, names []string, out io.Writer) error {
	const mostIterations = 1 << 24 // the losses of all are kept
	if f.iterations < 1 || f.iterations > mostIterations {
		return fmt.Errorf("--iterations %d: give 1 to %d", f.iterations, mostIterations)
	}
	if err := f.checkSave(); err != nil {
		return err
	}
	s, err := open(names, &f.workloadFlags, &f.planFlags)
	if err != nil {
		return err
	}
	defer s.device.Close()
	screen := newScreen(out, s, f.json, f.iterations)
	screen.head(f.policy)

	var vanilla *bench.Run
	if f.compare {
		plain, err := s.planner.Plan("none-live", 0)
		if err != nil {
			return err
		}
		if vanilla, err = bench.Train(ctx, s.device, s.workload, plain, 0, f.iterations, screen.part("vanilla", plain)); err != nil {
			return err
		}
	}
	run, err := bench.Train(ctx, s.device, s.workload, s.planned, s.budget, f.iterations, screen.part(f.policy, s.planned))
	if err != nil {
		return err
	}
	screen.done()
	report, err := bench.Compare(s.workload, s.planner, s.planned, run, vanilla)
	if err != nil {
		return err
	}
	report.Device, report.Policy, report.Budget, report.Link = s.device.Name(), f.policy, s.budget, float64(s.link.rate)
	if err := f.write(s, run); err != nil {
		return err
	}
	if f.json {
		err = printJSON(out, report)
	} else {
		err = report.WriteTable(out)
	}
	if err != nil {
		return err
	}
	return differs(report)
}

// differs is the error for a planned run that has other bits than the vanilla one: a bug of ours.
func differs(r *bench.Report) error {
	for _, j := range r.Jobs {
		if j.BitIdentical != nil && !*j.BitIdentical {
			return fmt.Errorf("job %s: the planned run's losses or weights differ from the vanilla run's; please report this with the command line", j.Job)
		}
	}
	return nil
}

func printJSON(out io.Writer, document any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(document)
}

// checkSave finds out before the training whether its result can be written.
func (f *runFlags) checkSave() error {
	if f.save == "" {
		return nil
	}
	if strings.HasPrefix(f.device, "sim:") {
		return fmt.Errorf("--save: %s has no data; use --device cpu", f.device)
	}
	info, err := os.Stat(filepath.Dir(f.save))
	if err != nil {
		return fmt.Errorf("--save: %w; make the folder first", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("--save: %s is not a folder; make one, or save elsewhere", filepath.Dir(f.save))
	}
	if info, err := os.Stat(f.save); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--save: %s is no file; name a file to be made or replaced", f.save)
	}
	return nil
}

// write saves the weights of every job.
func (f *runFlags) write(s *session, run *bench.Run) error {
	if f.save == "" {
		return nil
	}
	for i, t := range s.workload {
		path := f.save
		if len(s.workload) > 1 {
			extension := filepath.Ext(path)
			path = strings.TrimSuffix(path, extension) + "-" + t.Name + extension
		}
		if err := weights.Write(path, savedFile(t.Graph, &run.Jobs[i])); err != nil {
			return fmt.Errorf("save job %s: %w", t.Name, err)
		}
	}
	return nil
}

func savedFile(g *graph.Graph, run *bench.JobRun) weights.File {
	file := weights.File{Metadata: map[string]string{"model": g.Name, "iterations": fmt.Sprint(run.Iterations)}}
	saved := make(map[graph.StorageID]bool)
	for _, t := range g.Tensors {
		if content, ok := run.Weights[t.Storage]; ok && !saved[t.Storage] && t.Bytes() == g.Storages[t.Storage].Bytes {
			saved[t.Storage] = true
			file.Tensors = append(file.Tensors, weights.Tensor{Name: g.Storages[t.Storage].Name, Shape: t.Shape, Data: content})
		}
	}
	return file
}
