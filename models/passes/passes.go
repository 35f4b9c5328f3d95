package passes

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/peak"
)

// pass is one rewrite.
type pass struct {
	name string
	what string // Description for help texts.
	// run changes the graph, which is a copy of its own and valid, and notes what it did. Storages and tensors that no
	// op names any more may stay: they are removed afterwards.
	run func(*rewrite)
}

// table lists the passes in the order in which they run.
var table = []pass{
	{"pooling", "max-pooling keeps a byte per window, and gradients of pools read neither x nor y", pooling},
	{"activations", "gradients of ReLUs read y, not x; ReLU, add and other elementwise ops in place", activations},
	{"dropout", "dropout and its gradient in place", dropout},
	{"gradients", "additions of gradients in place; dx of elementwise ops and normalisations in place of dy",
		gradients},
	{"tiles", "gradients of parameters above 16 MiB are made, and the parameters updated, some rows at a time", tiles},
}

// Outcome says what one pass did to a graph. Bytes are what it needs less without a plan, negative if that is more.
type Outcome struct {
	Pass    string      `json:"pass"`
	Changed int         `json:"changed"`          // places in the graph
	Live    graph.Bytes `json:"saved_live_bytes"` // Saved from the peak with every tensor freed after its last use.
	All     graph.Bytes `json:"saved_all_bytes"`  // Saved from the peak with nothing freed during an iteration.
	Kept    int         `json:"refused_places"`
	Refused []Refusal   `json:"refused,omitempty"` // those places, and why; reports may leave them out
}

// Refusal is a place that a pass could not change.
type Refusal struct {
	Op     string `json:"op"`
	Reason string `json:"reason"`
}

// String is a line such as "activations: 114 changed, 576MiB less at the live peak, 923MiB less with nothing freed, 5
// refused".
func (o Outcome) String() string {
	less := func(b graph.Bytes) string {
		if b < 0 {
			return fmt.Sprintf("%v more", -b)
		}
		return fmt.Sprintf("%v less", b)
	}
	text := fmt.Sprintf("%s: %d changed, %s at the live peak, %s with nothing freed", o.Pass, o.Changed, less(o.Live),
		less(o.All))
	if o.Kept > 0 {
		text += fmt.Sprintf(", %d refused", o.Kept)
	}
	return text
}

// Names returns the names of all passes in the order in which they run.
func Names() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].name
	}
	return names
}

// None and All are what Parse reads as no pass and every pass.
const (
	None = "none"
	All  = "all"
)

// Parse reads a choice of passes: None or "", All, or a list of names with commas in between, in any order. It returns
// the names in the order in which the passes run.
func Parse(text string) ([]string, error) {
	switch text {
	case "", None:
		return nil, nil
	case All:
		return Names(), nil
	}
	return ordered(strings.Split(text, ","))
}

// ordered returns names in the order of the table, each once.
func ordered(names []string) ([]string, error) {
	all := Names()
	for _, name := range names {
		if name == All || name == None {
			return nil, fmt.Errorf("%q stands alone: leave it or the others out", name)
		}
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("unknown pass %q: choose %s, %s, or some of %s with commas in between", name, None,
				All, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(names, name) }), nil
}

// Apply returns the graph rewritten by the passes of these names, given in any order, and what each did. Passes that
// the graph has been through already are left out. The graph, which must be valid, is not changed; with no names it is
// returned as it is. The only error of a valid graph is an unknown name.
func Apply(g *graph.Graph, names []string) (*graph.Graph, []Outcome, error) {
	names, err := ordered(names)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return g, nil, nil
	}
	var outcomes []Outcome
	for _, name := range names {
		if slices.Contains(g.Passes, name) {
			continue
		}
		var o Outcome
		g, o = apply(g, &table[slices.Index(Names(), name)])
		outcomes = append(outcomes, o)
	}
	return g, outcomes, valid(g)
}

// valid reports a mistake of a pass.
func valid(g *graph.Graph) error {
	if err := g.Validate(); err != nil {
		return fmt.Errorf("one of the passes %s is wrong, please report this: %w", strings.Join(g.Passes, ", "), err)
	}
	return nil
}

// apply rewrites a copy of the graph by one pass.
func apply(g *graph.Graph, p *pass) (*graph.Graph, Outcome) {
	r := newRewrite(g)
	p.run(r)
	next := r.finish(p.name)
	all, live := peak.Vanilla(g)
	nextAll, nextLive := peak.Vanilla(next)
	return next, Outcome{Pass: p.name, Changed: r.changed, Live: live - nextLive, All: all - nextAll,
		Kept: len(r.refused), Refused: r.refused}
}
