package task

import (
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
)

// SettingsOf are the flags of a command line that say how large a graph is and what updates its parameters, as far as
// the graph tells: such as "--batch 4 --channels 1 --image 28 --classes 10 --optimizer adam --lr 0.001".
func SettingsOf(g *graph.Graph) string {
	var flags []string
	add := func(flag string, value any) { flags = append(flags, fmt.Sprintf("--%s %v", flag, value)) }
	if c, ok := findClassifier(g); ok {
		add("batch", c.shape[0])
		add("channels", c.shape[1])
		if c.shape[2] == c.shape[3] {
			add("image", c.shape[2])
		}
		add("classes", c.classes)
	} else if r := newReader(g, 0); r != nil {
		add("batch", r.batch)
		for _, s := range g.Storages {
			if in, found := r.inputs[s.ID]; found && (s.Holds == graph.Tokens || s.Holds == graph.SourceTokens) {
				add("sequence", in.size)
				add("vocabulary", in.classes)
			}
		}
	}
	for _, op := range g.Ops {
		if name := optimizerOf(op.Kind); name != "" {
			add("optimizer", name)
			add("lr", op.Attrs.LearningRate)
			break
		}
	}
	add("replicas", g.Replicas())
	return strings.Join(flags, " ")
}

// OtherSettings are those of two lists of SettingsOf that are not the same: what the one has, and the other.
func OtherSettings(one, other string) (has, hasNot string) {
	return missingSettings(one, other), missingSettings(other, one)
}

// missingSettings are the settings of a list that another one does not have.
func missingSettings(list, other string) string {
	pairs := func(list string) (all []string) {
		for pair := range slices.Chunk(strings.Fields(list), 2) {
			all = append(all, strings.Join(pair, " "))
		}
		return all
	}
	others := pairs(other)
	return strings.Join(slices.DeleteFunc(pairs(list), func(pair string) bool {
		return slices.Contains(others, pair)
	}), " ")
}
