package main

import (
	"os"
	"strings"
	"testing"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/cuda/kernels"
)

// opsFile has the digests that every GPU must come to.
const opsFile = "../../device/cuda/kernels/testdata/ops.txt"

// wrongKernels is a driver that executes other kernels than it is given.
type wrongKernels struct {
	*fakecuda.Driver
	changes []kernelChange
}

// kernelChange replaces something in the text of a kernel.
type kernelChange struct{ kernel, from, to string }

func (w wrongKernels) Load(text string) (cuda.Module, error) {
	for _, c := range w.changes {
		before, kernel, ok := strings.Cut(text, ".entry "+c.kernel+"(")
		if ok {
			text = before + ".entry " + c.kernel + "(" + strings.Replace(kernel, c.from, c.to, 1)
		}
	}
	return w.Driver.Load(text)
}

// A bit that is wrong in one kernel is named with its op, and so is that of another kernel beside it.
func TestOpsAgainst(t *testing.T) {
	t.Parallel()
	var ( // zeros, each with one bit that is wrong
		relu = kernelChange{"relu", "selp.f32 \t%f2, 0f00000000,", "selp.f32 \t%f2, 0f00000001,"}
		pool = kernelChange{"max_pool_dx", "mov.f32 \t%f8, 0f00000000;", "mov.f32 \t%f8, 0f00000001;"}
	)
	for _, test := range []struct {
		changes []kernelChange
		want    string // how the line begins; "": no op is wrong
		too     string
	}{
		{nil, "", ""},
		{[]kernelChange{relu}, "op conv1.relu (relu) is the first that is wrong: kernel relu, " +
			"4x6x28x28 -> 4x6x28x28, iteration 0: digest ", ""},
		{[]kernelChange{pool}, "op pool2.dx (max_pool_dx) is the first that is wrong: kernel max_pool_dx, " +
			"4x16x10x10 4x16x5x5 4x16x5x5 -> 4x16x10x10, iteration 0: digest ", ""},
		{[]kernelChange{pool, {"adam", "sqrt.rn.f32 \t%f19, %f17;", "sqrt.rn.f32 \t%f19, %f13;"}},
			"op pool2.dx (max_pool_dx) is the first that is wrong", "; wrong by themselves too: adam; "},
	} {
		jobs, err := (&workloadFlags{batch: 4, optimizer: "adam", passes: "none", seed: 1}).load([]string{"lenet"})
		if err != nil {
			t.Fatal(err)
		}
		want, err := wantedOps(opsFile, &jobs[0], 1)
		if err != nil {
			t.Fatal(err)
		}
		d, err := cuda.New(wrongKernels{fakecuda.New(fakecuda.Options{Seed: 1}), test.changes}, cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := opsOf(d, &jobs[0], 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil { // nothing is left on the driver
			t.Error(err)
		}
		got := compareOps(jobs[0].Graph, all, want)
		if got.Ops != len(jobs[0].Graph.Ops) {
			t.Errorf("%d ops were carried out, the graph has %d", got.Ops, len(jobs[0].Graph.Ops))
		}
		if test.want == "" {
			if got.Differ != 0 || len(got.Wrong) != 0 {
				t.Errorf("without a change: %+v", got)
			}
			continue
		}
		if got.Differ == 0 || len(got.Wrong) == 0 {
			t.Errorf("%v: nothing differs", test.changes)
			continue
		}
		if line := got.String(); !strings.HasPrefix(line, test.want) || !strings.Contains(line, test.too) ||
			strings.Contains(line, "by themselves") != (test.too != "") || strings.Contains(line, "\n") {
			t.Errorf("%v: %s", test.changes, line)
		}
	}
}

// What is written can be read, and what is damaged is refused.
func TestReadOpDigests(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(opsFile)
	if err != nil {
		t.Fatal(err)
	}
	all, err := kernels.ReadOpDigests(strings.NewReader(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	again := kernels.Head
	for _, o := range all {
		again += o.String()
	}
	if again != string(content) {
		t.Error("what was read is written otherwise")
	}
	for text, want := range map[string]string{
		"05af211e\n":                           "line 1: digests of no network",
		"a: graph b\n":                         `line 1: "graph b" is no graph with a seed`,
		"a: graph b seed 1\n+ 05af211e\n":      "line 2: it goes on with an iteration that has not begun",
		"# c\na: graph b seed 1\n05af211e x\n": `line 3: "x" is no digest`,
	} {
		if _, err := kernels.ReadOpDigests(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}
