package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"tensile/graph"
)

// The bound of several policies is above that of none of them where it has one, and rises as memory falls; the drawing
// is well-formed and names policies, budget and jobs.
func TestFrontierDraw(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := &Frontier{Jobs: []string{"a <b>"}, VanillaLive: 1000 * graph.MiB, WorkingSet: 10 * graph.MiB}
		for _, policy := range []string{"tensile", "capuchin"} {
			eor := 1.0
			for memory := 1000 - rng.IntN(50); memory > 20; memory -= 1 + rng.IntN(200) {
				bound := eor
				f.Points = append(f.Points, FrontierPoint{Policy: policy, Arena: graph.Bytes(memory) * graph.MiB,
					EOR: 1.1 * eor, BoundEOR: &bound})
				eor += rng.Float64() / 10
			}
		}
		f.Budget, f.Within = 500*graph.MiB, f.Points[:1]
		line := f.bound(drawnEOR)
		for i, at := range line {
			if i > 0 && (at.Y < line[i-1].Y || at.X > line[i-1].X) {
				t.Errorf("seed %d: the bound %v falls with less memory", seed, line)
			}
			for _, p := range f.Points {
				if mib(p.Arena) == at.X && at.Y > *p.BoundEOR {
					t.Errorf("seed %d: %v is above the bound %v of %s", seed, at, *p.BoundEOR, p.Policy)
				}
			}
		}
		if seed > 0 {
			continue
		}
		var out strings.Builder
		if err := f.Draw(&out); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for in := xml.NewDecoder(strings.NewReader(out.String())); ; {
			token, err := in.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, out.String())
			}
			if s, ok := token.(xml.CharData); ok {
				text.Write(s)
			}
		}
		for _, want := range []string{"a <b>: time over", "tensile", "capuchin", "the budget, 500MiB",
			"no plan is below"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the drawing does not say %q: %s", want, text.String())
			}
		}
	}
}
