package data

import (
	"math"
	"testing"
)

// Tokens are within the vocabulary, those of a topic mostly equal, and those of different topics, voices and seeds
// mostly not.
func TestSentencesHaveTopics(t *testing.T) {
	const vocabulary, places, examples = 100, 50, 60
	s, other := NewSentences(1), NewSentences(2)
	share := func(token func(place int) bool) float64 {
		n := 0.0
		for place := range places {
			if token(place) {
				n += 1. / places
			}
		}
		return n
	}
	for a := range examples {
		for b := range a {
			equal := share(func(p int) bool {
				x, y := s.Token(a, 0, p, vocabulary, false), s.Token(b, 0, p, vocabulary, false)
				if x < 1 || x >= vocabulary {
					t.Fatalf("token %d of %d", x, vocabulary)
				}
				return x == y
			})
			if same := s.topicOf(a) == s.topicOf(b); same && equal < 0.5 || !same && equal > 0.2 {
				t.Errorf("examples %d and %d: %.0f %% of the tokens are equal, same topic: %v", a, b, 100*equal, same)
			}
		}
		for what, equal := range map[string]float64{
			"voices": share(func(p int) bool {
				return s.Token(a, 0, p, vocabulary, false) == s.Token(a, 1, p, vocabulary, false)
			}),
			"seeds": share(func(p int) bool {
				return s.Token(a, 0, p, vocabulary, false) == other.Token(a, 0, p, vocabulary, false)
			}),
		} {
			if equal > 0.2 {
				t.Errorf("example %d: %.0f %% of the tokens are equal in two %s", a, 100*equal, what)
			}
		}
	}
}

// The second text of an example goes with the first in half of them; one place in seven is hidden.
func TestSentencesInPairs(t *testing.T) {
	const examples, places = 400, 50
	s := NewSentences(3)
	follows, hidden := 0, 0
	for e := range examples {
		same := 0
		for p := range places {
			if s.Token(e, 0, p, 1000, false) == s.Token(e, 0, p, 1000, true) {
				same++
			}
			if s.Hidden(e, p) {
				hidden++
			}
		}
		if s.Follows(e) {
			follows++
		}
		if s.Follows(e) != (same == places) {
			t.Errorf("example %d: %d of %d tokens are those of its topic, follows: %v", e, same, places, s.Follows(e))
		}
	}
	if share := float64(follows) / examples; math.Abs(share-0.5) > 0.1 {
		t.Errorf("%.2f of the second texts follow", share)
	}
	if share := float64(hidden) / (examples * places); math.Abs(share-1./7) > 0.01 {
		t.Errorf("%.3f of the places are hidden", share)
	}
}

// Sounds have mean 0 and deviation 1; what those of a topic share is most of it.
func TestSentencesSound(t *testing.T) {
	s := NewSentences(4)
	var sum, squares, n float64
	for e := range 40 {
		for i := range 500 {
			v := float64(s.Frame(e, i/10, i%10))
			sum, squares, n = sum+v, squares+v*v, n+1
		}
	}
	if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 0.03 || math.Abs(deviation-1) > 0.05 {
		t.Errorf("mean %.3f, deviation %.3f", mean, deviation)
	}
	for a := range 40 {
		for b := range a {
			var products float64
			for i := range 500 {
				products += float64(s.Frame(a, i/10, i%10)*s.Frame(b, i/10, i%10)) / 500
			}
			if same := s.topicOf(a) == s.topicOf(b); same && products < 0.5 || !same && products > 0.25 {
				t.Errorf("sounds %d and %d: product %.2f, same topic: %v", a, b, products, same)
			}
		}
	}
}

func TestSentencesPanicWithoutWords(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a vocabulary of one token is accepted")
		}
	}()
	NewSentences(1).Token(0, 0, 0, 1, false)
}
