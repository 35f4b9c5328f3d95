package sim

import (
	"testing"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/cost"
)

// variantsOf returns the variants of a convolution and of its backward halves, in a graph of its own.
func variantsOf(t *testing.T, a graph.Attrs, x graph.Shape, filters int) (forward, dw, dx device.Variants) {
	t.Helper()
	b := graph.NewBuilder("convolution")
	image := b.Input("x", graph.Images, graph.Float32, x)
	w := b.Persistent("w", graph.Parameter, graph.Shape{filters, x[1], a.Kernel[0], a.Kernel[1]},
		graph.Init{Kind: graph.InitZero})
	y := b.Op("y", graph.Conv2D, a, image, w)
	back := a
	back.Extent = [2]int{x[2], x[3]}
	b.Op("dw", graph.Conv2DDW, a, image, y[0])
	b.Op("dx", graph.Conv2DDX, back, y[0], w)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	d := New(cost.Facts{Name: "test", Compute: 1, Bandwidth: 1, ComputeShare: 1, BandwidthShare: 1}, Options{})
	return d.Variants(g, 0), d.Variants(g, 1), d.Variants(g, 2)
}

func scratchOf(all device.Variants) map[string]graph.Bytes {
	of := map[string]graph.Bytes{}
	for _, v := range all {
		of[v.Name] = v.Scratch
	}
	return of
}

// Workspaces are those that cuDNN's users have logged, within 0.2 %.
func TestWorkspaces(t *testing.T) {
	near := func(what string, got, want graph.Bytes) {
		t.Helper()
		if off := got - want; off < -want/500 || off > want/500 {
			t.Errorf("%s: %d bytes, logged were %d", what, got, want)
		}
	}
	plain := func(r, s int) graph.Attrs {
		return graph.Attrs{Kernel: [2]int{r, s}, Stride: [2]int{1, 1}}
	}
	forward, _, _ := variantsOf(t, plain(32, 64), graph.Shape{12, 4, 256, 256}, 5)
	near("fft of 256 x 256", scratchOf(forward)["fft"], 37502976)
	forward, _, _ = variantsOf(t, plain(64, 64), graph.Shape{12, 4, 128, 128}, 5)
	near("fft of 128 x 128", scratchOf(forward)["fft"], 9445376)
	forward, dw, dx := variantsOf(t, plain(3, 3), graph.Shape{1, 32, 124, 124}, 64)
	near("winograd of 32 to 64 channels", scratchOf(forward)["winograd"], 131072)
	near("winograd of its gradient", scratchOf(dx)["winograd"], 131072)
	if _, ok := dw.Find("winograd"); ok {
		t.Error("the gradient of filters has winograd")
	}
	forward, _, _ = variantsOf(t, plain(5, 5), graph.Shape{1, 1, 28, 28}, 20)
	if got, want := scratchOf(forward)["gemm"], graph.Bytes(57600+align-1)/align*align; got != want { // 25 x 24 x 24
		t.Errorf("gemm: %d bytes, want %d", got, want)
	}
}

// What cuDNN cannot do, or is not faster with, is no variant, and the first needs no workspace.
func TestVariantsOfConvolutions(t *testing.T) {
	one, strided := graph.Attrs{Kernel: [2]int{1, 1}, Stride: [2]int{1, 1}}, graph.Attrs{Kernel: [2]int{3, 3},
		Stride: [2]int{2, 2}}
	five := graph.Attrs{Kernel: [2]int{5, 5}, Stride: [2]int{1, 1}, Pad: [2]int{2, 2}}
	for _, c := range []struct {
		a    graph.Attrs
		x    graph.Shape
		want int
	}{
		{one, graph.Shape{2, 64, 20, 20}, 1},
		{strided, graph.Shape{2, 64, 20, 20}, 2},
		{graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}}, graph.Shape{2, 16, 20, 20}, 2},
		{five, graph.Shape{2, 16, 20, 20}, 3},
		{five, graph.Shape{2, 16, 256, 20}, 2}, // 260 with its padding
	} {
		forward, _, _ := variantsOf(t, c.a, c.x, 64)
		if len(forward) != c.want || forward[0] != implicit {
			t.Errorf("%+v of %v: %+v, want %d", c.a, c.x, forward, c.want)
		}
	}
}
