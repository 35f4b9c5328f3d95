package program

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// set is the slow form of Pages.
type set map[int]bool

// pages writes a set down the slow way.
func (s set) pages() Pages {
	var p Pages
	for n := range 64 {
		switch {
		case !s[n]:
		case s[n-1]:
			p[len(p)-1].To++
		default:
			p = append(p, PageRange{n, n + 1})
		}
	}
	return p
}

func randomSet(rng *rand.Rand) set {
	s := make(set)
	for range rng.IntN(6) {
		from := rng.IntN(60)
		for n := from; n < min(from+1+rng.IntN(9), 60); n++ {
			s[n] = true
		}
	}
	return s
}

// Every operation gives what it gives on sets of numbers, in the one form that a set has, and changes no operand.
func TestPages(t *testing.T) {
	for seed := range uint64(20000) {
		rng := rand.New(rand.NewPCG(seed, 17))
		a, b := randomSet(rng), randomSet(rng)
		union, without, contains := make(set), make(set), true
		for n := range 64 {
			union[n], without[n] = a[n] || b[n], a[n] && !b[n]
			contains = contains && (a[n] || !b[n])
		}
		p, q := a.pages(), b.pages()
		same := func(what string, got, want Pages) {
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v %s %v is %v, want %v", seed, p, what, q, got, want)
			}
		}
		same("united with", p.Union(q), union.pages())
		same("without", p.Without(q), without.pages())
		same("itself beside", p, a.pages())
		same("itself before", q, b.pages())
		if got := p.Contains(q); got != contains {
			t.Fatalf("seed %d: %v contains %v is %v, want %v", seed, p, q, got, contains)
		}
		size := 0
		for _, in := range a {
			if in {
				size++
			}
		}
		if got := p.Count(); got != size {
			t.Fatalf("seed %d: %v counts %d, want %d", seed, p, got, size)
		}
		var parts []PageRange // of a, overlapping, in any order
		for n := range a {
			parts = append(parts, PageRange{n, n + 1})
		}
		parts = append(parts, p...)
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		same("made of its parts, beside", PagesOf(parts), a.pages())
	}
}
