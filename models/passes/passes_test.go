package passes

import (
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/models"
)

// TestParse reads choices of passes, and refuses what is none.
func TestParse(t *testing.T) {
	all := Names()
	for text, want := range map[string][]string{
		"": nil, "none": nil, "all": all, strings.Join(all, ","): all,
	} {
		if got, err := Parse(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"fast": "unknown pass", "all,none": "stands alone", ",": "unknown pass",
		" all": "unknown pass", "pooling,none": "stands alone"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestApply runs passes in the order of the table, whatever order they are named in, once each, and leaves the graph as
// it was.
func TestApply(t *testing.T) {
	g, err := models.Build("lenet", models.Config{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	before := g.Digest()
	if same, outcomes, err := Apply(g, nil); same != g || outcomes != nil || err != nil {
		t.Errorf("no passes: %v, %v", outcomes, err)
	}
	if _, _, err := Apply(g, []string{"pooling", "fast"}); err == nil || !strings.Contains(err.Error(), `"fast"`) {
		t.Errorf("an unknown pass: %v", err)
	}
	first, outcomes, err := Apply(g, []string{"gradients", "pooling"})
	if err != nil || len(outcomes) != 2 || outcomes[0].Pass != "pooling" || outcomes[1].Pass != "gradients" {
		t.Fatalf("%v, %v", outcomes, err)
	}
	rest, outcomes, err := Apply(first, Names())
	if err != nil || len(outcomes) != len(Names())-2 || len(rest.Passes) != len(Names()) {
		t.Errorf("the other passes: %v, %v, %v", outcomes, rest.Passes, err)
	}
	if again, outcomes, err := Apply(rest, Names()); again != rest || len(outcomes) > 0 || err != nil {
		t.Errorf("all passes again: %v, %v", outcomes, err)
	}
	if g.Digest() != before || g.Passes != nil || rest.Digest() == first.Digest() || first.Digest() == before {
		t.Error("digests do not tell graphs apart, or the first graph was changed")
	}
}

// TestOutcomeText is the line that users see.
func TestOutcomeText(t *testing.T) {
	o := Outcome{Pass: "pooling", Changed: 3, Live: 2 * graph.MiB, All: -8}
	want := "pooling: 3 changed, 2MiB less at the live peak, 8B more with nothing freed"
	if got := o.String(); got != want {
		t.Error(got)
	}
	o.Kept = 2
	if got := o.String(); got != want+", 2 refused" {
		t.Error(got)
	}
}
