package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/kernels"
	"tensile/graph"
	"tensile/graph/text"
	"tensile/models/task"
)

// opsFlags are those of debug ops.
type opsFlags struct {
	workloadFlags
	gpu        planFlags
	iterations int
	against    string
	json       bool
}

func opsCommand() *cobra.Command {
	var f opsFlags
	c := &cobra.Command{
		Use:   "ops MODEL",
		Short: "Print a digest of each op's output on a GPU, or find the first wrong one",
		Long: `Run a network on a GPU op by op, with all storages on the device and without a plan, and print a digest
of each op's output. With --against, compare with the digests in a file and list the ops whose output
differs although their inputs are right.`,
		Example: "  tensile debug ops lenet --batch 4 --iterations 3 --device cuda\n" +
			"  tensile debug ops lenet --batch 4 --iterations 3 --device cuda --against ops.txt",
		Args:              needModels,
		ValidArgsFunction: completeModels,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(args, c.OutOrStdout())
		},
	}
	f.workloadFlags.register(c)
	f.gpu.registerGPU(c)
	c.Flags().IntVar(&f.iterations, "iterations", 1, "number of iterations")
	c.Flags().StringVar(&f.against, "against", "",
		"compare with the digests in this FILE, such as device/cuda/kernels/testdata/ops.txt, and fail if they differ")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON instead of a table")
	return c
}

// opDone is an op that was carried out, for people and programs.
type opDone struct {
	Iteration int      `json:"iteration"`
	Op        string   `json:"op"`
	Kind      string   `json:"kind"`
	Kernels   []string `json:"kernels"`
	Inputs    string   `json:"inputs"` // their shapes
	Outputs   string   `json:"outputs"`
	Digest    string   `json:"digest"`
	Want      string   `json:"want,omitempty"` // Expected digest, if it differs.
	id        graph.OpID
}

// opsDocument is what debug ops prints as JSON.
type opsDocument struct {
	Device  string     `json:"device"`
	Model   string     `json:"model"`
	Against string     `json:"against,omitempty"`
	Ops     []opDone   `json:"ops,omitempty"` // without a file to compare with
	Compare *opsDiffer `json:"compared,omitempty"`
}

func (f *opsFlags) run(names []string, out io.Writer) error {
	if f.iterations < 1 {
		return fmt.Errorf("--iterations %d: give 1 or more", f.iterations)
	}
	if err := f.gpu.mustBeGPU(); err != nil {
		return err
	}
	jobs, err := f.load(names)
	if err != nil {
		return err
	}
	if len(jobs) != 1 {
		return fmt.Errorf("debug ops %s: name one model, without a number of copies", strings.Join(names, " "))
	}
	var want kernels.OpDigests
	if f.against != "" {
		if want, err = wantedOps(f.against, &jobs[0], f.iterations); err != nil {
			return err
		}
	}
	d, err := openCUDA(&f.gpu)
	if err != nil {
		return err
	}
	all, err := opsOf(d, &jobs[0], f.iterations)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	document := opsDocument{Device: d.Name(), Model: jobs[0].Model, Against: f.against}
	if f.against == "" {
		document.Ops = all
		if f.json {
			return f.gpu.printJSON(out, document)
		}
		return errors.Join(text.Table(out, opsTable(all)), f.gpu.notReal(out))
	}
	compared := compareOps(jobs[0].Graph, all, want)
	document.Compare = &compared
	if f.json {
		err = f.gpu.printJSON(out, document)
	} else if compared.Differ == 0 {
		_, err = fmt.Fprintf(out, "%s: all %d digests of %d ops are those of %s\n", jobs[0].Model, len(all),
			len(jobs[0].Graph.Ops), f.against)
	}
	if compared.Differ > 0 {
		err = errors.Join(err, fmt.Errorf("%s: %s", jobs[0].Model, compared.String()))
	}
	return err
}

// wantedOps finds the digests of a task in a file.
func wantedOps(file string, t *task.Task, iterations int) (kernels.OpDigests, error) {
	in, err := os.Open(file)
	if err != nil {
		return kernels.OpDigests{}, fmt.Errorf("--against: %w", err)
	}
	defer in.Close()
	all, err := kernels.ReadOpDigests(in)
	if err != nil {
		return kernels.OpDigests{}, fmt.Errorf("--against %s: %w", file, err)
	}
	digest := t.Graph.Digest()
	i := slices.IndexFunc(all, func(o kernels.OpDigests) bool { return o.Graph == digest && o.Seed == t.Seed })
	if i < 0 {
		var words []string
		for _, o := range all {
			words = append(words, o.Words)
		}
		return kernels.OpDigests{}, fmt.Errorf("--against %s: it does not have this network, but %s", file,
			strings.Join(words, "; "))
	}
	if n := len(all[i].Iterations); iterations > n {
		return kernels.OpDigests{}, fmt.Errorf("--iterations %d: %s has %d of this network: give as many or fewer",
			iterations, file, n)
	}
	for _, ops := range all[i].Iterations {
		if len(ops) != len(t.Graph.Ops) {
			return kernels.OpDigests{}, fmt.Errorf("--against %s: it has %d digests of the %d ops of %s: it is damaged",
				file, len(ops), len(t.Graph.Ops), all[i].Words)
		}
	}
	return all[i], nil
}

// opsOf carries out a task op by op.
func opsOf(d *cuda.Device, t *task.Task, iterations int) ([]opDone, error) {
	var all []opDone
	var problem error
	o := device.JobOptions{Name: t.Name, Seed: t.Masks(),
		Input: t.Feeder(func(err error) { problem = errors.Join(problem, err) })}
	err := d.Ops(t.Graph, o, iterations, t.Init, func(s cuda.Step) {
		op := &t.Graph.Ops[s.Op]
		all = append(all, opDone{Iteration: s.Iteration, Op: op.Name, Kind: string(op.Kind), Kernels: s.Kernels,
			Inputs: shapesText(t.Graph.Shapes(op.Inputs)), Outputs: shapesText(t.Graph.Shapes(op.Outputs)),
			Digest: fmt.Sprintf("%08x", s.Digest), id: s.Op})
	})
	return all, errors.Join(err, problem)
}

// shapesText writes shapes such as 4x6x24x24 6.
func shapesText(shapes []graph.Shape) string {
	var all []string
	for _, s := range shapes {
		var extents []string
		for _, n := range s {
			extents = append(extents, fmt.Sprint(n))
		}
		all = append(all, cmp.Or(strings.Join(extents, "x"), "1")) // of a scalar
	}
	return strings.Join(all, " ")
}

// opsDiffer are the ops that have written something else than they should.
type opsDiffer struct {
	Ops    int      `json:"ops"`    // Ops of all iterations.
	Differ int      `json:"differ"` // Ops whose digests differ.
	Wrong  []opDone `json:"wrong"`  // Ops that differ although their inputs are right; the first one comes first.
}

// compareOps compares what ops have written with what they should.
func compareOps(g *graph.Graph, all []opDone, want kernels.OpDigests) opsDiffer {
	found := opsDiffer{Ops: len(all), Wrong: []opDone{}}
	wrong := make([]bool, len(g.Storages))
	for _, o := range all {
		op := &g.Ops[o.id]
		w := fmt.Sprintf("%08x", want.Iterations[o.Iteration][o.id])
		differs := w != o.Digest
		reads := func(t graph.TensorID) bool { return wrong[g.Tensors[t].Storage] }
		if differs {
			found.Differ++
			if !slices.ContainsFunc(op.Inputs, reads) {
				o.Want = w
				found.Wrong = append(found.Wrong, o)
			}
		}
		for _, t := range op.Outputs {
			wrong[g.Tensors[t].Storage] = differs
		}
	}
	return found
}

// String says in one line which op is wrong first.
func (d *opsDiffer) String() string {
	first := &d.Wrong[0]
	line := fmt.Sprintf("op %s (%s) is the first that is wrong: kernel %s, %s -> %s, iteration %d: digest %s, not %s",
		first.Op, first.Kind, strings.Join(first.Kernels, " and "), first.Inputs, first.Outputs, first.Iteration,
		first.Digest, first.Want)
	var others []string
	for _, o := range d.Wrong[1:] {
		if !slices.Contains(others, o.Kind) && o.Kind != first.Kind {
			others = append(others, o.Kind)
		}
	}
	if len(others) > 0 {
		line += "; wrong by themselves too: " + strings.Join(others, ", ")
	}
	return fmt.Sprintf("%s; %d of %d differ", line, d.Differ, d.Ops)
}

// opsTable has a line per op.
func opsTable(all []opDone) [][]string {
	table := [][]string{{"ITERATION", "OP", "KIND", "KERNELS", "INPUTS", "OUTPUTS", "DIGEST"}}
	for _, o := range all {
		table = append(table, []string{fmt.Sprint(o.Iteration), o.Op, o.Kind, strings.Join(o.Kernels, " "), o.Inputs,
			o.Outputs, o.Digest})
	}
	return table
}
