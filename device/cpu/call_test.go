package cpu

import (
	"slices"
	"testing"

	"tensile/device"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/plan/program"
)

// A kernel is called with the job's seed and the iteration of its section, and does what it does when called by hand.
func TestKernelCall(t *testing.T) {
	b := graph.NewBuilder("dropped")
	x := b.Persistent("x", graph.Parameter, graph.Shape{16, 8}, graph.Init{Kind: graph.InitZero})
	y := b.Op("y", graph.Dropout, graph.Attrs{Rate: 0.5, Key: 3}, x)[0]
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	d := open(t)
	seen := map[string]bool{}
	for _, seed := range []uint64{1, 2} {
		place, err := d.Open(g, device.JobOptions{Name: "dropped", Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		k := &bed{t: t, job: place.(*job)}
		k.bind(g)
		k.reserve(8 * align)
		from, to := program.Address{Offset: align}, program.Address{Offset: 4 * align}
		s := section(program.Command{Kind: program.Kernel, Op: g.Ops[0].ID, Scratch: program.Nowhere,
			Inputs: []program.Address{from}, Outputs: []program.Address{to}})
		in := k.job.elementsAt(from, 128)
		for i := range in {
			in[i] = float32(i + 1)
		}
		for _, iteration := range []int{0, 1, 5} {
			k.issue(s, iteration, true)
			next(t, d, 1, k)
			want := make([]float32, 128)
			kernel.Run(&kernel.Call[float32]{Kind: graph.Dropout, Attrs: g.Ops[0].Attrs, In: [][]float32{in},
				Out:      [][]float32{want},
				InShapes: g.Shapes([]graph.TensorID{x}), OutShapes: g.Shapes([]graph.TensorID{y}), Seed: seed,
				Iteration: iteration})
			if got := k.job.elementsAt(to, 128); !slices.Equal(got, want) {
				t.Errorf("seed %d, iteration %d: %v, want %v", seed, iteration, got, want)
			}
			seen[string(k.bytesAt(to, 512))] = true
		}
		k.close()
	}
	if len(seen) != 6 {
		t.Errorf("%d different masks of 6", len(seen))
	}
}

func (b *bed) bytesAt(a program.Address, size graph.Bytes) []byte {
	return b.bytes(a, size)
}
