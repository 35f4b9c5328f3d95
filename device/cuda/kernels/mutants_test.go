package kernels

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tensile/device/ptx"
	"tensile/graph"
)

// barrierKernels are the texts of the kernels of some modules that have barriers.
func barrierKernels(modules ...string) map[string]string {
	all := make(map[string]string)
	for _, text := range Texts() {
		for _, name := range text.Kernels {
			if alone := kernelAlone(text.PTX, name); slices.Contains(modules, text.Name) &&
				strings.Contains(alone, "bar.sync") {
				all[name] = alone
			}
		}
	}
	return all
}

// without comments out occurrence k of an instruction.
func without(text, instruction string, k int) string {
	parts := strings.Split(text, instruction)
	return strings.Join(parts[:k+1], instruction) + "// " + instruction + strings.Join(parts[k+1:], instruction)
}

// A block sum that lacks any one of its barriers is found: the interpreter objects to a race, or to a number that is
// read before another warp has written it. Blocks have several warps here, and several rows.
func TestBarrierMutants(t *testing.T) {
	texts := barrierKernels("attention", "loss", "norm", "sums")
	found := make(map[string]map[int]bool) // per kernel, the barriers whose absence was found
	for name := range texts {
		found[name] = make(map[int]bool)
	}
	forEachExample(t, func(t *testing.T, _ generator, e example) {
		launches := Launches(&e.prepare(t).call)
		for at, l := range launches {
			text, ok := texts[l.Kernel]
			if !ok {
				continue
			}
			for k := range strings.Count(text, "bar.sync") {
				if found[l.Kernel][k] {
					continue
				}
				m, err := ptx.Parse(without(text, "bar.sync", k))
				if err != nil {
					t.Fatal(err)
				}
				p := e.prepare(t)
				launches := Launches(&p.call)
				interpret(t, p.memory, launches[:at])
				l := launches[at]
				l.Block[0], l.Grid[0] = max(64, l.Block[0]), min(3, l.Grid[0])
				_, err = m.Kernel(l.Kernel).Run(onMemory(l, p.memory))
				fault, ok := errors.AsType[*ptx.Fault](err)
				found[l.Kernel][k] = ok && (fault.Kind == ptx.Race || fault.Kind == ptx.Unwritten)
				p = e.prepare(t)
				interpret(t, p.memory, append(Launches(&p.call)[:at:at], l)) // with its barriers it is fine
			}
		}
	})
	for name, text := range texts {
		for k := range strings.Count(text, "bar.sync") {
			if !found[name][k] {
				t.Errorf("%s: nothing objects when barrier %d is missing", name, k)
			}
		}
		t.Logf("%s: %d barriers", name, len(found[name]))
	}
}

// An element too many is found: it lies beyond an operand.
func TestBoundMutants(t *testing.T) {
	kernels, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, family := range []map[graph.Kind]generator{elementwiseGenerators, optimizerGenerators} {
		for kind, g := range family {
			attrs, in := g.make(rand.New(rand.NewPCG(1, 7)), 3)
			p := example{kind: kind, attrs: attrs, in: in}.prepare(t)
			n := uint64(in[0].shape.Elements())
			for _, l := range Launches(&p.call) {
				bound := slices.Index(l.Args, n)
				l.Args[bound]++
				_, err := kernels[l.Kernel].Run(onMemory(l, p.memory))
				if fault, ok := errors.AsType[*ptx.Fault](err); !ok || fault.Kind != ptx.BadAddress {
					t.Errorf("%s of %d elements for %d: %v", l.Kernel, n+1, n, err)
				}
				tested++
			}
		}
	}
	if tested == 0 {
		t.Error("nothing tested")
	}
}
