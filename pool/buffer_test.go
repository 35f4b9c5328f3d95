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
		{"negative size", []Buffer{{Size: 1, Spans: one}, {Size: -1, Spans: one}}, []string{"buffer 1: size -1 is negative"}},
		{"negative alignment", []Buffer{{Size: 1, Spans: one, Align: -8}}, []string{"buffer 0: alignment -8 is not a power of two"}},
		{"alignment 12", []Buffer{{Size: 1, Spans: one, Align: 12}}, []string{"buffer 0: alignment 12 is not a power of two"}},
		{"smallest alignment", []Buffer{{Size: 1, Spans: one, Align: math.MinInt64}}, []string{"is not a power of two"}},
		{"no span", []Buffer{{Size: 1, Spans: nil}}, []string{"buffer 0: no span"}},
		{"empty span", []Buffer{{Size: 1, Spans: []Span{{3, 3}}}}, []string{"buffer 0: span 0 [3, 3) is empty"}},
		{"backward span", []Buffer{{Size: 0, Spans: []Span{{3, 2}}}}, []string{"buffer 0: span 0 [3, 2) is empty"}},
		{"overlap", []Buffer{{Size: 1, Spans: []Span{{0, 3}, {2, 4}}}}, []string{"buffer 0: span 1 [2, 4) begins before"}},
		{"unsorted", []Buffer{{Size: 1, Spans: []Span{{3, 4}, {0, 1}}}}, []string{"buffer 0: span 1 [0, 1) begins before"}},
		{"every problem", []Buffer{{Size: -1, Spans: one}, {Size: 1, Spans: one, Align: 3}, {Size: 1, Spans: nil}},
			[]string{"buffer 0: size", "buffer 1: alignment", "buffer 2: no span"}},
		{"sum", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: 0, Spans: one}, {Size: 1, Spans: one}}, []string{"buffer 2: the sizes and alignments"}},
		{"sum over time", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: 1, Spans: later}}, []string{"buffer 1: the sizes"}},
		{"sum told once", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: 1, Spans: one}, {Size: 1, Spans: one}}, []string{"buffer 1: the sizes"}},
		{"sum wraps twice", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: math.MaxInt64, Spans: one}, {Size: math.MaxInt64, Spans: one}},
			[]string{"buffer 1: the sizes"}},
		{"alignment", []Buffer{{Size: 1, Spans: one}, {Size: 1, Spans: one, Align: 1 << 62}, {Size: 1 << 62, Spans: one}}, []string{"buffer 2: the sizes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Pack(c.buffers, Options{})
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
		{{Size: math.MaxInt64, Spans: one}},
		{{Size: math.MaxInt64 - 1, Spans: one}, {Size: 1, Spans: one}},
		{{Size: 1 << 62, Spans: one}, {Size: 1<<62 - 1, Spans: later}},
		{{Size: 1, Spans: one}, {Size: 1 << 61, Spans: one, Align: 1 << 62}},
		{{Size: 1 << 61, Spans: one, Align: 1 << 61}, {Size: 5, Spans: one, Align: 1 << 61}, {Size: 1 << 60, Spans: later}},
		{{Size: 3, Spans: []Span{{math.MinInt, math.MaxInt}}}, {Size: 4, Spans: []Span{{math.MaxInt - 1, math.MaxInt}}}},
	} {
		l, err := Pack(buffers, Options{})
		if err != nil {
			t.Errorf("%v: %v", buffers, err)
			continue
		}
		if err := Validate(buffers, l); err != nil {
			t.Errorf("%v: %v", buffers, err)
		}
	}
}
