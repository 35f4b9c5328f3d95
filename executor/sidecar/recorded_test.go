package sidecar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/golden"
	"tensile/models/external"
)

// TestRecordedGraph shows the plan of a recorded graph in 60 % of what it needs: a perceptron of three layers on torch
// 1.13, with momentum, as tensile models graph prints it.
func TestRecordedGraph(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "mlp.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := external.ReadFile(f)
	if err != nil {
		t.Fatal(err)
	}
	r := file.Recorded
	e := Errand{Number: 1, Graph: r.Graph, Latency: r.Latency, Held: r.Held, Device: file.Hello.Device}
	plain := Make(context.Background(), &e)
	if plain.Err != nil || len(plain.Lines.Boundaries) > 0 {
		t.Fatalf("without a limit: %v, %d boundaries", plain.Err, len(plain.Lines.Boundaries))
	}
	e.Budget = plain.Lines.Bytes * 60 / 100
	made := Make(context.Background(), &e)
	if made.Err != nil || made.Lines.Bytes > e.Budget {
		t.Fatalf("in %d: %v, %d bytes", e.Budget, made.Err, made.Lines.Bytes)
	}
	head := fmt.Sprintf("%d of %d bytes, in %d\n", made.Lines.Bytes, plain.Lines.Bytes, e.Budget)
	golden.Compare(t, filepath.Join("testdata", "mlp-60.txt"), head+listed(r.Graph, &made.Lines))
}

// listed lists the ops of a graph, with what a plan does before each.
func listed(g *graph.Graph, p *external.Plan) string {
	var b strings.Builder
	b.WriteString("on the device at the start:")
	for _, s := range p.Entry {
		fmt.Fprintf(&b, " %s", g.Storages[s].Name)
	}
	b.WriteString("\n")
	next := p.Boundaries
	for op := 0; op <= len(g.Ops); op++ {
		if len(next) > 0 && int(next[0].Before) == op {
			for _, a := range next[0].Do {
				if a.Do == external.Again {
					fmt.Fprintf(&b, "    again %s\n", g.Ops[*a.Op].Name)
				} else {
					s := g.Storages[*a.Storage]
					fmt.Fprintf(&b, "    %s %s, %d\n", a.Do, s.Name, s.Bytes)
				}
			}
			next = next[1:]
		}
		if op < len(g.Ops) {
			fmt.Fprintf(&b, "%s\n", g.Ops[op].Name)
		}
	}
	return b.String()
}
