package passes

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
)

// pass is one rewrite.
type pass struct {
	name string
	what string // for help texts
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

// Outcome says what one pass did to a graph.
type Outcome struct {
	Pass    string      `json:"pass"`
	Changed int         `json:"changed"`     // places in the graph
	Saved   graph.Bytes `json:"saved_bytes"` // sum of the storages before, less that of those after
	Refused []Refusal   `json:"refused,omitempty"`
}

// Refusal is a place that a pass could not change.
type Refusal struct {
	Op     string `json:"op"`
	Reason string `json:"reason"`
}

// String is a line such as "relu: 49 changed, 512MiB saved, 2 refused".
func (o Outcome) String() string {
	text := fmt.Sprintf("%s: %d changed, %v saved", o.Pass, o.Changed, o.Saved)
	if len(o.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(o.Refused))
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

// What says in a few words what the pass of a name does; "" if there is none.
func What(name string) string {
	if i := slices.Index(Names(), name); i >= 0 {
		return table[i].what
	}
	return ""
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
	var outcomes []Outcome
	for _, name := range names {
		if slices.Contains(g.Passes, name) {
			continue
		}
		var o Outcome
		if g, o, err = apply(g, &table[slices.Index(Names(), name)]); err != nil {
			return nil, nil, err
		}
		outcomes = append(outcomes, o)
	}
	return g, outcomes, nil
}

// apply rewrites a copy of the graph by one pass.
func apply(g *graph.Graph, p *pass) (*graph.Graph, Outcome, error) {
	r := newRewrite(g)
	p.run(r)
	next := r.finish(p.name)
	if err := next.Validate(); err != nil {
		return nil, Outcome{}, fmt.Errorf("pass %s is wrong, please report this: %w", p.name, err)
	}
	return next, Outcome{Pass: p.name, Changed: r.changed, Saved: size(g) - size(next), Refused: r.refused}, nil
}

// size is the sum of all storages.
func size(g *graph.Graph) (sum graph.Bytes) {
	for _, s := range g.Storages {
		sum += s.Bytes
	}
	return sum
}
