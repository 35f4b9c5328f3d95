package memory

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
)

// Claims take the sum of their bases and the largest of their rests; one can be taken out again; and a job that has one
// of two claims takes, beside any others, what the worse of the two does.
func TestTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 17))
	random := func() Claim {
		base := graph.Bytes(rng.IntN(6))
		return Claim{base, base + graph.Bytes(rng.IntN(6))}
	}
	sum := func(claims ...Claim) Sum {
		var s Sum
		for _, c := range claims {
			s = s.Add(c)
		}
		return s
	}
	for range long.Rounds(2000, 20000) {
		claims := make([]Claim, 1+rng.IntN(5))
		var bases, rest graph.Bytes
		for i := range claims {
			claims[i] = random()
			bases, rest = bases+claims[i].Base, max(rest, claims[i].Arena-claims[i].Base)
		}
		if got := sum(claims...).Bytes(); got != bases+rest {
			t.Fatalf("%v take %d, want %d", claims, got, bases+rest)
		}
		others := slices.Delete(slices.Clone(claims), 0, 1)
		if got, want := sum(claims...).Remove(claims[0]).Bytes(), sum(others...).Bytes(); got != want {
			t.Fatalf("%v without the first take %d, want %d", claims, got, want)
		}
		c, d := random(), random()
		worse := max(sum(others...).Add(c).Bytes(), sum(others...).Add(d).Bytes())
		if got := sum(others...).Add(c.Union(d)).Bytes(); got != worse {
			t.Fatalf("%v beside %v or %v take %d, the worse of the two is %d", others, c, d, got, worse)
		}
		if c.FitsIn(d) != (sum(others...).Add(c.Union(d)) == sum(others...).Add(d) && c.Union(d) == d) {
			t.Fatalf("%v within %v: %v", c, d, c.FitsIn(d))
		}
	}
}
