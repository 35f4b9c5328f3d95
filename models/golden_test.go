package models

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/golden"
)

// TestGolden keeps the ops of small networks, in order, with what they read and make.
func TestGolden(t *testing.T) {
	tests := []struct {
		file, model string
		c           Config
	}{
		{"lenet", "lenet", Config{Batch: 2}},
		{"alexnet", "alexnet", Config{Image: 67, Batch: 2, Optimizer: autodiff.SGD{}}},
		{"vgg", "vgg16", Config{Image: 32, Batch: 2, Optimizer: autodiff.SGD{}}},
		{"resnet", "resnet:1,1,1,1", Config{Image: 32, Batch: 2, Optimizer: autodiff.SGD{}}},
		{"gpt", "gpt:1,8,2", Config{Sequence: 4, Vocabulary: 9, Batch: 2, Optimizer: autodiff.SGD{}}},
		{"rhn", "rhn:2,4", Config{Sequence: 2, Vocabulary: 9, Batch: 2, Optimizer: autodiff.SGD{}}},
	}
	for _, test := range tests {
		golden.Compare(t, filepath.Join("testdata", test.file+".txt"), listing(build(t, test.model, test.c)))
	}
}

// listing prints a graph: sources, then a line per op under its layer and phase.
func listing(g *graph.Graph) string {
	var out strings.Builder
	for _, s := range g.Storages {
		if s.Role.FromHost() {
			fmt.Fprintf(&out, "%s %s %v", s.Role, s.Name, s.Bytes)
			if s.Init != nil {
				fmt.Fprintf(&out, " %s", s.Init.Kind)
				if s.Init.Scale != 0 {
					fmt.Fprintf(&out, " %.4f", s.Init.Scale)
				}
			}
			out.WriteByte('\n')
		}
	}
	at := ""
	for _, op := range g.Ops {
		if now := string(op.Phase) + " " + op.Layer; now != at {
			fmt.Fprintf(&out, "%s\n", now)
			at = now
		}
		fmt.Fprintf(&out, "  %s = %s %s", tensors(g, op.Outputs), op.Kind, tensors(g, op.Inputs))
		if op.Attrs != (graph.Attrs{}) {
			attrs, _ := json.Marshal(op.Attrs)
			fmt.Fprintf(&out, " %s", attrs)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func tensors(g *graph.Graph, ids []graph.TensorID) string {
	var words []string
	for _, id := range ids {
		t := g.Tensors[id]
		word := t.Name
		if s := g.Storages[t.Storage]; s.Role.Persistent() {
			word += fmt.Sprintf("@%d", t.Version)
		} else if s.Name != t.Name {
			word += " of " + s.Name
		}
		words = append(words, word+strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ","))
	}
	return strings.Join(words, ", ")
}
