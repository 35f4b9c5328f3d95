package passes

import (
	"slices"
	"testing"

	"tensile/graph"
)

// net is a graph under construction.
type net struct {
	*graph.Builder
	t *testing.T
}

func newNet(t *testing.T) net { return net{graph.NewBuilder("net"), t} }

func (n net) one(name string, kind graph.Kind, a graph.Attrs, in ...graph.TensorID) graph.TensorID {
	return n.Op(name, kind, a, in...)[0]
}

func (n net) images(name string) graph.TensorID {
	return n.Input(name, graph.Anything, graph.Float32, graph.Shape{2, 1, 4, 4})
}

// backward appends the ops that follow to the backward phase.
func (n net) backward() { n.SetPhase(graph.Backward) }

// after returns the valid graph rewritten by one pass, and what that did.
func (n net) after(pass string) (*graph.Graph, Outcome) {
	n.t.Helper()
	g, err := n.Graph()
	if err == nil {
		err = g.Validate()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	rewritten, outcomes, err := Apply(g, []string{pass})
	if err != nil {
		n.t.Fatal(err)
	}
	return rewritten, outcomes[0]
}

// opOf returns an op by its name.
func opOf(t *testing.T, g *graph.Graph, name string) *graph.Op {
	t.Helper()
	i := slices.IndexFunc(g.Ops, func(op graph.Op) bool { return op.Name == name })
	if i < 0 {
		t.Fatalf("there is no op %s", name)
	}
	return &g.Ops[i]
}

// wantInPlace fails unless the first output of an op is the next version of an operand, or with operand -1 a storage of
// its own.
func wantInPlace(t *testing.T, g *graph.Graph, name string, operand int) {
	t.Helper()
	op := opOf(t, g, name)
	if got := g.Updated(op.ID, 0); got != operand || op.Attrs.InPlace != operand+1 {
		t.Errorf("%s is made in place of operand %d, attribute %d; want operand %d", name, got, op.Attrs.InPlace,
			operand)
	}
}

// wantRefused fails unless a pass has refused exactly these ops, each for its reason.
func wantRefused(t *testing.T, o Outcome, want ...Refusal) {
	t.Helper()
	if !slices.Equal(o.Refused, want) {
		t.Errorf("pass %s refused %q, want %q", o.Pass, o.Refused, want)
	}
}
