package layer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/models"
	"tensile/models/nettest"

	_ "tensile/internal/long" // the flag -long
)

// Every backward op of every network has a forward op, and the layer of that; layers share no op; and those of batch
// norms have three forward ops.
func TestLayers(t *testing.T) {
	norms := 0
	for _, name := range models.Names() {
		g, err := nettest.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		layers, of := Find(g)
		count := 0
		for i := range layers {
			l := &layers[i]
			count += len(l.Forward) + len(l.Backward)
			if len(l.Forward) == 0 || !slices.IsSorted(l.Forward) || !slices.IsSorted(l.Backward) ||
				len(l.X) == 0 && !readsParameters(g, l) {
				t.Errorf("%s: layer %d is %+v", name, i, *l)
			}
			if i > 0 && layers[i-1].Forward[0] >= l.Forward[0] {
				t.Errorf("%s: layer %d begins before the one before it", name, i)
			}
			for _, op := range slices.Concat(l.Forward, l.Backward) {
				if of[op] != i {
					t.Errorf("%s: %s is of layer %d, and listed in %d", name, g.Ops[op].Name, of[op], i)
				}
			}
			if l.Kind == graph.BatchNorm {
				if norms++; len(l.Forward) != 3 {
					t.Errorf("%s: batch norm %s has %d forward ops", name, g.Ops[l.Forward[0]].Name, len(l.Forward))
				}
			}
		}
		for i := range g.Ops {
			op := &g.Ops[i]
			if want := op.Phase != graph.Optimize; want != (of[i] >= 0) || want && op.Phase == graph.Backward &&
				op.Forward == graph.NoOp {
				t.Errorf("%s: %s, %s, forward op %d, is of layer %d", name, op.Name, op.Phase, op.Forward, of[i])
			}
			if of[i] >= 0 {
				count--
			}
		}
		if count != 0 {
			t.Errorf("%s: %d ops are listed in more than one layer", name, count)
		}
	}
	if norms == 0 {
		t.Error("no batch norm was seen")
	}
}

// readsParameters reports whether the first forward op of a layer reads nothing but parameters.
func readsParameters(g *graph.Graph, l *Layer) bool {
	return !slices.ContainsFunc(g.Ops[l.Forward[0]].Inputs, func(t graph.TensorID) bool {
		return g.Storages[g.Tensors[t].Storage].Role != graph.Parameter
	})
}

// The layers of a residual network up to its first sum, by hand.
func TestLayersOfBlock(t *testing.T) {
	g, err := nettest.Build("resnet18")
	if err != nil {
		t.Fatal(err)
	}
	layers, _ := Find(g)
	var b strings.Builder
	for i := range 10 {
		l := &layers[i]
		fmt.Fprintf(&b, "%s:", l.Kind)
		for _, s := range l.X {
			b.WriteString(" " + g.Storages[s].Name)
		}
		b.WriteString(";")
		for _, op := range l.Backward {
			b.WriteString(" " + string(g.Ops[op].Kind))
		}
		b.WriteString("\n")
	}
	const want = `conv2d: input; conv2d_dw
batch_norm: conv1; batch_norm_grad
relu: conv1.bn; relu_dx
max_pool: conv1.relu; max_pool_dx
conv2d: pool1; conv2d_dw conv2d_dx add
batch_norm: stage1.block1.conv1; batch_norm_grad
relu: stage1.block1.bn1; relu_dx
conv2d: stage1.block1.relu1; conv2d_dw conv2d_dx
batch_norm: stage1.block1.conv2; batch_norm_grad
add: stage1.block1.bn2 pool1;
`
	if b.String() != want {
		t.Errorf("layers:\n%s, want\n%s", b.String(), want)
	}
}
