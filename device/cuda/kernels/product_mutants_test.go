package kernels

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"tensile/device/ptx"
	"tensile/graph"
)

// productExamples have an example of each kernel of a product, by its name without the tile. No extent is a multiple of
// a tile.
func productExamples() map[string]example {
	rng := rand.New(rand.NewPCG(1, 10))
	window := graph.Attrs{Kernel: [2]int{2, 2}, Stride: [2]int{1, 1}}
	extended, grouped := window, window
	extended.Extent, grouped.Groups = [2]int{6, 6}, 2
	both := extended
	both.Groups = 2
	return map[string]example{
		"product_nn": {kind: graph.MatMul, in: []operand{normalOperand(rng, 1, 20, 50), normalOperand(rng, 1, 50, 20)}},
		"product_nt": {kind: graph.MatMul, attrs: graph.Attrs{TransposeB: true},
			in: []operand{normalOperand(rng, 1, 20, 50), normalOperand(rng, 1, 20, 50)}},
		"product_tn": {kind: graph.MatMul, attrs: graph.Attrs{TransposeA: true},
			in: []operand{normalOperand(rng, 1, 50, 20), normalOperand(rng, 1, 50, 20)}},
		"product_tt": {kind: graph.MatMul, attrs: graph.Attrs{TransposeA: true, TransposeB: true},
			in: []operand{normalOperand(rng, 1, 50, 20), normalOperand(rng, 1, 20, 50)}},
		"conv": {kind: graph.Conv2D, attrs: window,
			in: []operand{normalOperand(rng, 1, 13, 6, 6), normalOperand(rng, 20, 13, 2, 2)}},
		"conv_dw": {kind: graph.Conv2DDW, attrs: window,
			in: []operand{normalOperand(rng, 2, 5, 6, 6), normalOperand(rng, 2, 20, 5, 5)}},
		"conv_dx": {kind: graph.Conv2DDX, attrs: extended,
			in: []operand{normalOperand(rng, 1, 13, 5, 5), normalOperand(rng, 13, 20, 2, 2)}},
		"grouped": {kind: graph.Conv2D, attrs: grouped,
			in: []operand{normalOperand(rng, 2, 2, 6, 6), normalOperand(rng, 2, 1, 2, 2)}},
		"grouped_dx": {kind: graph.Conv2DDX, attrs: both,
			in: []operand{normalOperand(rng, 2, 2, 5, 5), normalOperand(rng, 2, 1, 2, 2)}},
		"grouped_dw": {kind: graph.Conv2DDW, attrs: grouped,
			in: []operand{normalOperand(rng, 2, 2, 6, 6), normalOperand(rng, 2, 2, 5, 5)}},
	}
}

// Without any of its barriers, a kernel of a product is found to race, or to read what is not written yet.
func TestEveryBarrierCounts(t *testing.T) {
	examples := productExamples()
	barrier := regexp.MustCompile(`\tbar\.sync .*\n`)
	tried := 0
	for _, text := range Texts() {
		if text.Name != "product" && text.Name != "conv" && text.Name != "grouped" {
			continue
		}
		for _, name := range text.Kernels {
			alone := kernelAlone(text.PTX, name)
			barriers := barrier.FindAllStringIndex(alone, -1)
			if len(barriers) == 0 {
				continue
			}
			e, ok := examples[tileless.ReplaceAllString(name, "")]
			if !ok {
				t.Errorf("%s has barriers, and no example", name)
				continue
			}
			for _, b := range append([][]int{{0, 0}}, barriers...) { // first with all of them
				module, err := ptx.Parse(alone[:b[0]] + alone[b[1]:])
				if err != nil {
					t.Fatal(err)
				}
				err = e.runOnce(t, module.Kernel(name), -1)
				fault, _ := errors.AsType[*ptx.Fault](err)
				switch intact := b[1] == 0; {
				case intact && err != nil:
					t.Errorf("%s: %v", name, err)
				case !intact && (fault == nil || fault.Kind != ptx.Race && fault.Kind != ptx.Unwritten):
					t.Errorf("%s without %q: %v", name, alone[b[0]:b[1]], err)
				}
				tried++
			}
		}
	}
	if tried < 3*21 {
		t.Errorf("%d texts were tried", tried)
	}
}

var tileless = regexp.MustCompile(`_\d+$`)

// kernelAlone is a text with one of its kernels.
func kernelAlone(text, name string) string {
	head, _, _ := strings.Cut(text, "\t// .globl")
	_, rest, _ := strings.Cut(text, ".visible .entry "+name+"(")
	body, _, _ := strings.Cut(rest, "\n}\n")
	for _, line := range regexp.MustCompile(`(?m)^\.shared .*\n`).FindAllString(text, -1) {
		if !strings.Contains(head, line) {
			head += line
		}
	}
	return head + ".visible .entry " + name + "(" + body + "\n}\n"
}

// A row, a column or a term too many is found: it lies beyond an operand, perhaps within the memory of the output.
func TestProductBoundMutants(t *testing.T) {
	kernels, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for name, e := range productExamples() {
		bounds := map[string][]int{"grouped": {10}, "grouped_dx": {7}, "grouped_dw": {3}}[name] // p, height and images
		names := []string{name}
		if bounds == nil {
			bounds, names = []int{4, 5, 6}, []string{name + "_16", name + "_64", name + "_128"} // m, n and k
		}
		for _, name := range names {
			for _, bound := range bounds {
				err := e.runOnce(t, kernels[name], bound)
				fault, ok := errors.AsType[*ptx.Fault](err)
				if !ok || fault.Kind != ptx.BadAddress && fault.Kind != ptx.Unwritten {
					t.Errorf("%s with one more of argument %d: %v", name, bound, err)
				}
				tried++
			}
		}
	}
	if tried != 3*3*7+3 {
		t.Errorf("%d bounds were tried", tried)
	}
}

// runOnce executes the first launch of an example with a kernel of the same family, with that kernel's tile. One
// argument is one more than it should be, none if it is -1.
func (e example) runOnce(t *testing.T, k *ptx.Kernel, argument int) error {
	p := e.prepare(t)
	l := Launches(&p.call)[0]
	if !strings.HasPrefix(l.Kernel, "grouped") {
		q := productsOf(&p.call)[0]
		for _, tile := range tiles {
			if l = q.launchSplit(splitOf(tile, q.k, 1), 0)[0]; l.Kernel == k.Name {
				break
			}
		}
	}
	if l.Kernel != k.Name {
		t.Fatalf("%v is made by %s, not %s", e, l.Kernel, k.Name)
	}
	if argument >= 0 {
		l.Args[argument]++
	}
	_, err := k.Run(ptx.Launch{Grid: l.Grid, Block: l.Block, Args: l.Args, Seed: 3, Memory: p.memory})
	return err
}
