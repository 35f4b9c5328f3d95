package text

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	known := []string{"none-all", "none-live", "vdnn-all", "vdnn-conv", "tensile", "dtr", "dtr-eq"}
	for name, want := range map[string]string{
		"vdnn": " did you mean vdnn-all, vdnn-conv?", "dtr": " did you mean dtr, dtr-eq?",
		"tensil": " did you mean tensile?", "tensiel": " did you mean tensile?", "non-live": " did you mean none-live?",
		"best": "", "": "", "xy": "",
	} {
		if got := Suggest(name, known); got != want {
			t.Errorf("%q:%s, want%s", name, got, want)
		}
	}
	if got, want := Suggest("a", strings.Fields("ab ac ad ae af ag ah ai aj")),
		" did you mean ab, ac, ad, ae, af, ag, ah, ai?"; got != want {
		t.Errorf("%s, want%s", got, want)
	}
	if got := Suggest("a", nil); got != "" {
		t.Errorf("of no names%s", got)
	}
}

func TestDistance(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		word := func() string {
			var w strings.Builder
			for range r.IntN(6) {
				w.WriteByte("abc"[r.IntN(3)])
			}
			return w.String()
		}
		a, b := word(), word()
		if got, want := distance(a, b), slowDistance(a, b); got != want {
			t.Fatalf("seed %d: distance(%q, %q) = %d, want %d", seed, a, b, got, want)
		}
	}
}

func slowDistance(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	case a[0] == b[0]:
		return slowDistance(a[1:], b[1:])
	}
	return 1 + min(slowDistance(a[1:], b), slowDistance(a, b[1:]), slowDistance(a[1:], b[1:]))
}
