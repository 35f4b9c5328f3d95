package pool

import (
	"math"
	"strings"
	"testing"
)

func TestPackRefusesBadBuffers(t *testing.T) {
	one := []Span{{0, 1}}
	later := []Span{{1, 2}}
	for _, c := range []struct {
		name    string
		buffers []Buffer
		want    []string
	}{
		{"negative size", []Buffer{{1, one, 0}, {-1, one, 0}}, []string{"buffer 1: size -1 is negative"}},
		{"negative alignment", []Buffer{{1, one, -8}}, []string{"buffer 0: alignment -8 is not a power of two"}},
		{"alignment 12", []Buffer{{1, one, 12}}, []string{"buffer 0: alignment 12 is not a power of two"}},
		{"smallest alignment", []Buffer{{1, one, math.MinInt64}}, []string{"is not a power of two"}},
		{"no span", []Buffer{{1, nil, 0}}, []string{"buffer 0: no span"}},
		{"empty span", []Buffer{{1, []Span{{3, 3}}, 0}}, []string{"buffer 0: span 0 [3, 3) is empty"}},
		{"backward span", []Buffer{{0, []Span{{3, 2}}, 0}}, []string{"buffer 0: span 0 [3, 2) is empty"}},
		{"overlap", []Buffer{{1, []Span{{0, 3}, {2, 4}}, 0}}, []string{"buffer 0: span 1 [2, 4) begins before"}},
		{"unsorted", []Buffer{{1, []Span{{3, 4}, {0, 1}}, 0}}, []string{"buffer 0: span 1 [0, 1) begins before"}},
		{"every problem", []Buffer{{-1, one, 0}, {1, one, 3}, {1, nil, 0}},
			[]string{"buffer 0: size", "buffer 1: alignment", "buffer 2: no span"}},
		{"sum", []Buffer{{math.MaxInt64, one, 0}, {0, one, 0}, {1, one, 0}}, []string{"buffer 2: the sizes and alignments"}},
		{"sum over time", []Buffer{{math.MaxInt64, one, 0}, {1, later, 0}}, []string{"buffer 1: the sizes"}},
		{"sum told once", []Buffer{{math.MaxInt64, one, 0}, {1, one, 0}, {1, one, 0}}, []string{"buffer 1: the sizes"}},
		{"sum wraps twice", []Buffer{{math.MaxInt64, one, 0}, {math.MaxInt64, one, 0}, {math.MaxInt64, one, 0}},
			[]string{"buffer 1: the sizes"}},
		{"alignment", []Buffer{{1, one, 0}, {1, one, 1 << 62}, {1 << 62, one, 0}}, []string{"buffer 2: the sizes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Pack(c.buffers)
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.Count(err.Error(), "\n") + 1; got != len(c.want) {
				t.Errorf("%d problems, want %d: %v", got, len(c.want), err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to say %q", err, want)
				}
			}
		})
	}
}

// Sizes as large as they may be are packed without wrapping.
func TestPackNearTheLargestSize(t *testing.T) {
	one, later := []Span{{0, 1}}, []Span{{1, 2}}
	for _, buffers := range [][]Buffer{
		{{math.MaxInt64, one, 0}},
		{{math.MaxInt64 - 1, one, 0}, {1, one, 0}},
		{{1 << 62, one, 0}, {1<<62 - 1, later, 0}},
		{{1, one, 0}, {1 << 61, one, 1 << 62}},
		{{1 << 61, one, 1 << 61}, {5, one, 1 << 61}, {1 << 60, later, 0}},
		{{3, []Span{{math.MinInt, math.MaxInt}}, 0}, {4, []Span{{math.MaxInt - 1, math.MaxInt}}, 0}},
	} {
		l, err := Pack(buffers)
		if err != nil {
			t.Errorf("%v: %v", buffers, err)
			continue
		}
		if err := Validate(buffers, l); err != nil {
			t.Errorf("%v: %v", buffers, err)
		}
	}
}
