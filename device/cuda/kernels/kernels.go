package kernels

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"tensile/graph"
)

// Call is one execution of an op of float32.
type Call struct {
	Kind  graph.Kind
	Attrs graph.Attrs
	// addresses of the operands on the device, in the kind's order; in Out, 0 is a fresh output that is not wanted
	In, Out             []uint64
	InShapes, OutShapes []graph.Shape
	Scratch             uint64 // address of at least Scratch(...) bytes of any content, at a multiple of 8
	Seed                uint64 // Seed of the job's random generator.
	Iteration           uint64 // address of an int64, the iteration from 0 on
}

// Launch is one launch of a kernel.
type Launch struct {
	Kernel string
	Grid   [3]uint32
	Block  [3]uint32
	Args   []uint64 // Eight bytes each: an address, an integer, or the bits of a float64.
}

// entry is how an op of a kind is executed.
type entry struct {
	launches func(c *Call) []Launch                                 // in their order
	scratch  func(a graph.Attrs, in, out []graph.Shape) graph.Bytes // nil: none
}

// families are all kinds. Each family has a file of its own, and its kernels one in src.
var families = []map[graph.Kind]entry{
	elementwise, moves, optimizers, pooling, embeddings, recurrent, sums, norms, attention, losses,
	products, convolutions,
}

var entries = func() map[graph.Kind]entry {
	all := make(map[graph.Kind]entry)
	for _, family := range families {
		for kind, e := range family {
			if _, ok := all[kind]; ok {
				panic(fmt.Sprintf("kernels: kind %s has two rows", kind))
			}
			all[kind] = e
		}
	}
	return all
}()

// Fit returns an error if there are no kernels for an op, whose operands are of float32 but for indices, or if it is
// too large for them.
func Fit(kind graph.Kind, a graph.Attrs, in, out []graph.Shape) (err error) {
	e, ok := entries[kind]
	if !ok {
		return fmt.Errorf("kernels: there is no kernel for %q", kind)
	}
	defer func() {
		if problem := recover(); problem != nil {
			if err, ok = problem.(tooLarge); !ok {
				panic(problem)
			}
		}
	}()
	const anywhere = 256 // no output is unwanted
	e.launches(&Call{Kind: kind, Attrs: a, InShapes: in, OutShapes: out, In: slices.Repeat([]uint64{anywhere}, len(in)),
		Out: slices.Repeat([]uint64{anywhere}, len(out)), Scratch: anywhere})
	return nil
}

// tooLarge is what entries panic with.
type tooLarge string

func (e tooLarge) Error() string { return "kernels: " + string(e) }

// refuse says of an op why its kernels cannot compute it.
func refuse(format string, args ...any) { panic(tooLarge(fmt.Sprintf(format, args...))) }

// Launches returns what is launched, one after the other, to execute an op. The kernels, grids and blocks follow from
// the kind, the attributes and the shapes, and which outputs are not wanted leaves the bits of the others as they are.
// An index or a label that is out of range makes NaN. It panics where Fit returns an error, as Scratch may.
func Launches(c *Call) []Launch {
	return entryOf(c.Kind).launches(c)
}

// Scratch is how many bytes of scratch an op needs, a multiple of 8.
func Scratch(kind graph.Kind, a graph.Attrs, in, out []graph.Shape) graph.Bytes {
	e := entryOf(kind)
	if e.scratch == nil {
		return 0
	}
	return e.scratch(a, in, out)
}

func entryOf(kind graph.Kind) entry {
	e, ok := entries[kind]
	if !ok {
		panic(fmt.Sprintf("kernels: there is no kernel for %q", kind))
	}
	return e
}

//go:embed ptx/*.ptx
var embedded embed.FS

// Text is a module of kernels.
type Text struct {
	Name    string // Name of the file in src, without .c.
	PTX     string
	Kernels []string // Kernels that the module defines; no other module defines them.
}

// Texts returns all modules, by name.
func Texts() []Text {
	files, err := embedded.ReadDir("ptx")
	if err != nil {
		panic(err)
	}
	texts := make([]Text, 0, len(files))
	for _, f := range files {
		ptx, err := embedded.ReadFile("ptx/" + f.Name())
		if err != nil {
			panic(err)
		}
		t := Text{Name: strings.TrimSuffix(f.Name(), ".ptx"), PTX: string(ptx)}
		for line := range strings.Lines(t.PTX) {
			if name, ok := strings.CutPrefix(line, ".visible .entry "); ok {
				name, _, _ = strings.Cut(name, "(")
				t.Kernels = append(t.Kernels, name)
			}
		}
		texts = append(texts, t)
	}
	return texts
}

// threads of the blocks of most kernels.
const threads = 256

// maxBlocks bounds the grids whose threads take several elements each. It is the same on every chip.
const maxBlocks = 8192

// launchEach is a launch of a kernel that treats n elements alike (EACH).
func launchEach(kernel string, n int, args ...any) Launch {
	blocks := min((n+threads-1)/threads, maxBlocks)
	return launch(kernel, blocks, threads, args...)
}

// launch is a launch of blocks in one dimension. Arguments are addresses (uint64), int, int64 and float64.
func launch(kernel string, blocks, threads int, args ...any) Launch {
	if blocks < 1 || blocks > math.MaxInt32 {
		refuse("%s in %d blocks, of which there may be %d", kernel, blocks, math.MaxInt32)
	}
	l := Launch{Kernel: kernel, Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}}
	for _, a := range args {
		switch a := a.(type) {
		case uint64:
			l.Args = append(l.Args, a)
		case int:
			l.Args = append(l.Args, uint64(a))
		case float64:
			l.Args = append(l.Args, math.Float64bits(a))
		default:
			panic(fmt.Sprintf("kernels: %s with an argument of type %T", kernel, a))
		}
	}
	return l
}
