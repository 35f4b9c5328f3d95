package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTileRows(t *testing.T) {
	for _, test := range []struct {
		shape Shape
		want  int
	}{
		{Shape{}, 1},
		{Shape{1 << 23}, 1 << 22}, // of one element each
		{Shape{4096, 1024}, 4096}, // 16 MiB
		{Shape{4097, 1024}, 4096},
		{Shape{4096, 25088}, 160}, // fc6 of vgg16: 167 fit
		{Shape{50257, 768}, 5456}, // tokens of gpt2: 5461 fit
		{Shape{20, 15 << 16}, 4},  // too few fit for a multiple of 16
		{Shape{3, 1 << 23}, 1},    // none fits
		{Shape{1 << 11, 64, 3, 16}, 1 << 22 / 64 / 3 / 16 / 16 * 16}, // a row of more than one dimension
	} {
		if got := test.shape.TileRows(); got != test.want {
			t.Errorf("%v: tiles of %d rows, want %d", test.shape, got, test.want)
		}
	}
}

// rowsOf builds one op that makes some rows of a gradient.
func rowsOf(t *testing.T, kind Kind, attrs Attrs, in ...Shape) *Graph {
	t.Helper()
	g, err := use(kind, attrs, in).Graph()
	if err == nil {
		err = g.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A tile of a gradient costs its part: of the arithmetic, of dy, and of what is written. A product reads all of x.
func TestTileCost(t *testing.T) {
	for _, test := range []struct {
		kind  Kind
		attrs Attrs
		in    []Shape
		out   Shape
		want  Cost
	}{
		{LinearDW, Attrs{Begin: 4, Length: 2}, []Shape{{3, 5}, {3, 7}}, Shape{2, 5},
			Cost{FLOPs: 2 * 3 * 2 * 5, Bytes: (3*5 + 3*2 + 2*5) * ElementBytes}},
		{EmbeddingDW, Attrs{Extent: [2]int{8}, Length: 2}, []Shape{{12}, {12, 3}}, Shape{2, 3},
			Cost{FLOPs: 12 * 3 / 4, Bytes: 12*8 + (12*3/4+2*3)*ElementBytes}},
	} {
		g := rowsOf(t, test.kind, test.attrs, test.in...)
		if diff := cmp.Diff([]Shape{test.out}, g.Shapes(g.Ops[0].Outputs)); diff != "" {
			t.Errorf("%s makes (-want +got):\n%s", test.kind, diff)
		}
		if got := g.Cost(0); got != test.want {
			t.Errorf("%s costs %+v, want %+v", test.kind, got, test.want)
		}
	}
}

// Tiles of one size cost the same wherever they begin, so that what one takes is known of all.
func TestTileSignature(t *testing.T) {
	sign := func(begin, length int) Signature {
		return rowsOf(t, LinearDW, Attrs{Begin: begin, Length: length}, Shape{3, 5}, Shape{3, 7}).Signature(0, "")
	}
	if sign(0, 2) != sign(4, 2) {
		t.Error("two tiles of one size have two signatures")
	}
	if sign(0, 2) == sign(0, 3) || sign(0, 7) == sign(0, 0) {
		t.Error("gradients of two sizes, or the whole and one of as many rows, have one signature")
	}
}
