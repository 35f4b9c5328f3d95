package kernels

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
)

var (
	instruction = regexp.MustCompile(`^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9]*)((?:\.[a-z0-9]+)*)(?:\s|;|$)`)
	float       = regexp.MustCompile(`\.f(16|32|64)`)
	parameter   = regexp.MustCompile(`^\s*\.param\s+(.*)$`)
)

// objections lists what a text has that would make its results depend on the chip or on the driver's compiler: another
// version or target, approximate functions, denormals taken for zero, arithmetic that does not say how it rounds and
// may therefore be fused, atomic sums of floats; and parameters that are not of eight bytes.
func objections(text string) []string {
	var found []string
	for _, header := range []string{".version 6.0", ".target sm_60", ".address_size 64"} {
		if !slices.Contains(strings.Split(text, "\n"), header) {
			found = append(found, "no line "+header)
		}
	}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		object := func(what string) {
			found = append(found, fmt.Sprintf("line %d: %s: %s", number, strings.TrimSpace(line), what))
		}
		if m := parameter.FindStringSubmatch(line); m != nil {
			if !regexp.MustCompile(`^\.[usbf]64 `).MatchString(m[1]) {
				object("a parameter that is not of eight bytes")
			}
			continue
		}
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, rest := m[1], m[2]
		modifiers := strings.Split(rest, ".")
		has := func(m string) bool { return slices.Contains(modifiers, m) }
		switch {
		case has("approx") || has("full") || has("ftz"):
			object("approximate")
		case slices.Contains([]string{"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"}, name):
			object("there is no correctly rounded form")
		case (name == "atom" || name == "red") && float.MatchString(rest):
			object("an atomic operation on floats")
		case !float.MatchString(rest):
		case slices.Contains([]string{"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"}, name) && !has("rn"):
			object("does not round to nearest")
		case name == "cvt" && !has("rn") && !has("rzi") && !strings.HasPrefix(rest, ".f64.f32"):
			object("does not say how it rounds")
		}
	}
	return found
}

func TestText(t *testing.T) {
	var names []string
	for _, text := range Texts() {
		for _, o := range objections(text.PTX) {
			t.Errorf("%s.ptx: %s", text.Name, o)
		}
		if len(text.Kernels) == 0 {
			t.Errorf("%s.ptx has no kernel", text.Name)
		}
		names = append(names, text.Kernels...)
	}
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) < len(names) {
		t.Errorf("a kernel of two modules: %v", names)
	}
}

// Each of these changes of a text is objected to.
func TestTextMutants(t *testing.T) {
	const text = `.version 6.0
.target sm_60
.address_size 64
.visible .entry mutant(
	.param .u64 mutant_param_0,
	.param .f64 mutant_param_1
)
	add.rn.f32 	%f1, %f2, %f3;
	@%p1 mul.rn.f64 	%fd1, %fd2, %fd3;
	fma.rn.f32 	%f1, %f2, %f3, %f4;
	div.rn.f32 	%f1, %f2, %f3;
	sqrt.rn.f32 	%f1, %f2;
	cvt.rn.f32.f64 	%f1, %fd2;
	cvt.f64.f32 	%fd1, %f2;
	cvt.rzi.s64.f32 	%rd1, %f2;
	setp.gt.f32 	%p1, %f1, %f2;
	add.s64 	%rd1, %rd2, %rd3;
	atom.global.add.u64 	%rd1, [%rd2], %rd3;
`
	if found := objections(text); len(found) > 0 {
		t.Fatalf("objections to what is good: %q", found)
	}
	for _, change := range [][2]string{
		{".version 6.0", ".version 7.0"}, {".target sm_60", ".target sm_90"}, {".address_size 64", ".address_size 32"},
		{".param .u64", ".param .u32"}, {".param .f64", ".param .f32"}, {".param .u64", ".param .align 8 .b8"},
		{"add.rn.f32", "add.f32"}, {"add.rn.f32", "add.ftz.f32"}, {"add.rn.f32", "add.rn.ftz.f32"},
		{"add.rn.f32", "add.rz.f32"}, {"add.rn.f32", "sub.f32"}, {"mul.rn.f64", "mul.f64"},
		{"fma.rn.f32", "fma.rz.f32"},
		{"fma.rn.f32", "mad.f32"}, {"div.rn.f32", "div.approx.f32"}, {"div.rn.f32", "div.full.f32"},
		{"sqrt.rn.f32", "sqrt.approx.f32"}, {"sqrt.rn.f32", "rsqrt.approx.f32"}, {"sqrt.rn.f32", "rcp.approx.ftz.f32"},
		{"sqrt.rn.f32", "ex2.approx.f32"}, {"sqrt.rn.f32", "tanh.f32"}, {"cvt.rn.f32.f64", "cvt.f32.f64"},
		{"cvt.rzi.s64.f32", "cvt.s64.f32"}, {"setp.gt.f32", "setp.gt.ftz.f32"},
		{"atom.global.add.u64", "atom.global.add.f32"}, {"atom.global.add.u64", "red.global.add.f64"},
	} {
		mutant := strings.Replace(text, change[0], change[1], 1)
		if len(objections(mutant)) != 1 {
			t.Errorf("%s for %s: objections %q, want one", change[1], change[0], objections(mutant))
		}
	}
}

// The committed text is what clang makes of the sources.
func TestTextIsCurrent(t *testing.T) {
	long.Only(t)
	needs.Program(t, "clang-19", "clang-19")
	dir := t.TempDir()
	// the go command sees what is read
	if err := os.CopyFS(filepath.Join(dir, "sources"), os.DirFS("src")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("../../../scripts/ptx.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("ptx.sh: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	texts := Texts()
	if len(files) != len(texts) {
		t.Errorf("%d sources and %d texts: run make ptx", len(files), len(texts))
	}
	for _, text := range texts {
		if made, err := os.ReadFile(filepath.Join(dir, text.Name+".ptx")); err != nil {
			t.Error(err)
		} else if !bytes.Equal(made, []byte(text.PTX)) {
			t.Errorf("%s.ptx is not what clang makes of %s.c: run make ptx", text.Name, text.Name)
		}
	}
}

// Every launch names a kernel of the texts and has as many arguments as it has parameters.
func TestLaunchesFitTexts(t *testing.T) {
	parameters := make(map[string]int)
	for _, text := range Texts() {
		for _, m := range entryText.FindAllStringSubmatch(text.PTX, -1) {
			parameters[m[1]] = strings.Count(m[2], ".param")
		}
	}
	used := make(map[string]bool)
	check := func(t *testing.T, c *Call) {
		for _, l := range Launches(c) {
			used[l.Kernel] = true
			if n, ok := parameters[l.Kernel]; !ok || n != len(l.Args) {
				t.Errorf("%s of %v: %s with %d arguments; it is there: %v, with %d", c.Kind, c.InShapes, l.Kernel,
					len(l.Args), ok, n)
			}
		}
	}
	forEachExample(t, func(t *testing.T, _ generator, e example) { check(t, &e.prepare(t).call) })
	for _, side := range []int{64, 256, 384, 512, 768, 1024, 4096} { // the larger tiles
		matrix, batch, square := graph.Shape{side, side}, graph.Shape{1, side, side}, graph.Attrs{}
		image, filter := graph.Shape{16, side, 28, 28}, graph.Shape{side, side, 3, 3}
		window := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}
		onto, a, b := window, graph.Attrs{TransposeA: true}, graph.Attrs{TransposeB: true}
		onto.Extent = [2]int{28, 28}
		both := graph.Attrs{TransposeA: true, TransposeB: true}
		for _, c := range []Call{
			{Kind: graph.Linear, Attrs: square, InShapes: []graph.Shape{matrix, matrix}},
			{Kind: graph.LinearDX, Attrs: square, InShapes: []graph.Shape{matrix, matrix}},
			{Kind: graph.LinearDW, Attrs: square, InShapes: []graph.Shape{matrix, matrix}},
			{Kind: graph.MatMul, Attrs: square, InShapes: []graph.Shape{batch, batch}},
			{Kind: graph.MatMul, Attrs: a, InShapes: []graph.Shape{batch, batch}},
			{Kind: graph.MatMul, Attrs: b, InShapes: []graph.Shape{batch, batch}},
			{Kind: graph.MatMul, Attrs: both, InShapes: []graph.Shape{batch, batch}},
			{Kind: graph.Conv2D, Attrs: window, InShapes: []graph.Shape{image, filter}},
			{Kind: graph.Conv2DDW, Attrs: window, InShapes: []graph.Shape{image, image}},
			{Kind: graph.Conv2DDX, Attrs: onto, InShapes: []graph.Shape{image, filter}},
		} {
			out, err := graph.Infer(c.Kind, c.Attrs, c.InShapes)
			if err != nil {
				t.Fatal(err)
			}
			c.OutShapes, c.In, c.Out, c.Scratch = out, []uint64{256, 256}, []uint64{256}, 256
			check(t, &c)
		}
	}
	for name := range parameters {
		if !used[name] {
			t.Errorf("no example launches %s", name)
		}
	}
}

// Every kind has kernels and a generator of examples, but the opaque one.
func TestEveryKind(t *testing.T) {
	tested := make(map[graph.Kind]bool)
	for _, family := range generators {
		for kind := range family {
			tested[kind] = true
		}
	}
	for _, kind := range graph.Kinds() {
		if _, ok := entries[kind]; !ok {
			t.Errorf("%s has no kernel", kind)
		}
		if !tested[kind] {
			t.Errorf("%s has no examples", kind)
		}
	}
	if err := Fit(graph.Opaque, graph.Attrs{}, nil, nil); err == nil {
		t.Error("there are kernels for the opaque kind")
	}
	if len(entries) != len(graph.Kinds()) {
		t.Errorf("kernels of %d kinds, want %d", len(entries), len(graph.Kinds()))
	}
}
