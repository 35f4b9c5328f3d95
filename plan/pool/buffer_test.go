package pool

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackRefusesBadBuffers(t *testing.T) {
	one := []Span{{0, 1}}
	later := []Span{{1, 2}}
	for _, c := range []struct {
		name    string
		buffers []Buffer
		want    []string
	}{
		{"negative size", []Buffer{{Size: 1, Spans: one}, {Size: -1, Spans: one}},
			[]string{"buffer 1: size -1 is negative"}},
		{"negative alignment", []Buffer{{Size: 1, Spans: one, Align: -8}},
			[]string{"buffer 0: alignment -8 is not a power of two"}},
		{"alignment 12", []Buffer{{Size: 1, Spans: one, Align: 12}}, []string{"buffer 0: alignment 12 is not a " +
			"power of two"}},
		{"smallest alignment", []Buffer{{Size: 1, Spans: one, Align: math.MinInt64}},
			[]string{"is not a power of two"}},
		{"no span", []Buffer{{Size: 1, Spans: nil}}, []string{"buffer 0: no span"}},
		{"empty span", []Buffer{{Size: 1, Spans: []Span{{3, 3}}}}, []string{"buffer 0: span 0 [3, 3) is empty"}},
		{"backward span", []Buffer{{Size: 0, Spans: []Span{{3, 2}}}}, []string{"buffer 0: span 0 [3, 2) is empty"}},
		{"overlap", []Buffer{{Size: 1, Spans: []Span{{0, 3}, {2, 4}}}},
			[]string{"buffer 0: span 1 [2, 4) begins before"}},
		{"unsorted", []Buffer{{Size: 1, Spans: []Span{{3, 4}, {0, 1}}}},
			[]string{"buffer 0: span 1 [0, 1) begins before"}},
		{"every problem", []Buffer{{Size: -1, Spans: one}, {Size: 1, Spans: one, Align: 3}, {Size: 1, Spans: nil}},
			[]string{"buffer 0: size", "buffer 1: alignment", "buffer 2: no span"}},
		{"sum", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: 0, Spans: one}, {Size: 1, Spans: one}},
			[]string{"buffer 2: the sizes and alignments"}},
		{"sum over time", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: 1, Spans: later}},
			[]string{"buffer 1: the sizes"}},
		{"sum told once", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: 1, Spans: one}, {Size: 1, Spans: one}},
			[]string{"buffer 1: the sizes"}},
		{"sum wraps twice", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: math.MaxInt64, Spans: one},
			{Size: math.MaxInt64, Spans: one}},
			[]string{"buffer 1: the sizes"}},
		{"sum wraps with an alignment", []Buffer{{Size: math.MaxInt64, Spans: one}, {Size: math.MaxInt64, Spans: one,
			Align: 1 << 62}},
			[]string{"buffer 1: the sizes"}},
		{"sum of fixed and others", []Buffer{{Size: 2, Spans: one}, {Size: 4, Spans: later, Fixed: true,
			At: math.MaxInt64 - 5}},
			[]string{"buffer 0: the sizes"}}, // what is fixed goes first
		{"alignment", []Buffer{{Size: 1, Spans: one}, {Size: 1, Spans: one, Align: 1 << 62},
			{Size: 1 << 62, Spans: one}}, []string{"buffer 2: the sizes"}},
		{"fixed below 0", []Buffer{{Size: 1, Spans: one, Fixed: true, At: -8}},
			[]string{"buffer 0: fixed offset -8 is negative"}},
		{"fixed too high", []Buffer{{Size: 2, Spans: one, Fixed: true, At: math.MaxInt64 - 1}},
			[]string{"buffer 0: fixed offset"}},
		{"fixed between", []Buffer{{Size: 2, Spans: one, Fixed: true, At: 12, Align: 8}},
			[]string{"buffer 0: fixed offset 12 is not a multiple of its alignment 8"}},
		{"nothing fixed between", []Buffer{{Size: 0, Spans: one, Fixed: true, At: 12, Align: 8}},
			[]string{"buffer 0: fixed offset 12 is not a multiple of its alignment 8"}},
		{"two places for a group", []Buffer{
			{Size: 2, Spans: one, Fixed: true, At: 8, Alias: 3}, {Size: 2, Spans: one, Alias: 3},
			{Size: 2, Spans: one, Fixed: true, At: 16, Alias: 3}},
			[]string{"buffer 2: fixed offset 16, but buffer 0 of the same group is fixed at 8"}},
		{"alignment of the group, later", []Buffer{{Size: 2, Spans: one, Fixed: true, At: 8, Alias: -3},
			{Size: 2, Spans: one, Align: 16, Alias: -3}},
			[]string{"buffer 1: its group is fixed at 8, which is not a multiple of the alignment 16"}},
		{"alignment of the group, earlier", []Buffer{{Size: 0, Spans: one, Align: 16, Alias: -3},
			{Size: 2, Spans: one, Fixed: true, At: 8, Alias: -3}},
			[]string{"buffer 1: its group is fixed at 8, which is not a multiple of the alignment 16"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, method := range Methods() {
				l, err := Pack(c.buffers, Options{Method: method})
				checkError(t, method, err, c.want)
				if diff := cmp.Diff(Layout{}, l); diff != "" {
					t.Errorf("%s: with the error came %s", method, diff)
				}
			}
			checkError(t, "Validate", Validate(c.buffers, Layout{Offsets: make([]int64, len(c.buffers))}), c.want[:1])
		})
	}
}

// checkError wants as many problems as wanted, or at least that many of Validate, which also looks at offsets.
func checkError(t *testing.T, from string, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want %q", from, want)
		return
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(want) && from != "Validate" {
		t.Errorf("%s: %d problems, want %d: %v", from, got, len(want), err)
	}
	for _, want := range want {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, want it to say %q", from, err, want)
		}
	}
}

func TestPackRefusesUnknownMethods(t *testing.T) {
	for _, method := range []string{"Search", "best", " search"} {
		_, err := Pack(nil, Options{Method: method})
		checkError(t, "Pack", err, []string{fmt.Sprintf("there is no method %q; the methods are area, ", method)})
	}
}

// Of what is fixed, no two may be in each other's way, whatever else there is.
func TestPackRefusesClashes(t *testing.T) {
	one, both, later := []Span{{0, 1}}, []Span{{0, 1}, {2, 3}}, []Span{{2, 4}}
	for _, c := range []struct {
		name    string
		buffers []Buffer
		want    string // empty: there is no clash
	}{
		{"same place", []Buffer{{Size: 4, Spans: one, Fixed: true}, {Size: 4, Spans: both, Fixed: true}},
			"buffers 0 and 1 are fixed at 0 and 0, where they share a slot and a byte"},
		{"last byte", []Buffer{{Size: 4, Spans: later, Fixed: true, At: 3}, {Size: 9, Spans: one},
			{Size: 4, Spans: both, Fixed: true}},
			"buffers 0 and 2 are fixed at 3 and 0, where they share a slot and a byte"},
		{"inside", []Buffer{{Size: 9, Spans: one, Fixed: true}, {Size: 1, Spans: one, Fixed: true, At: 20},
			{Size: 1, Spans: one, Fixed: true, At: 4}},
			"buffers 0 and 2 are fixed at 0 and 4, where they share a slot and a byte"},
		{"group", []Buffer{{Size: 9, Spans: one, Alias: 2}, {Size: 9, Spans: one, Fixed: true, At: 8, Alias: 2},
			{Size: 1, Spans: one, Fixed: true, At: 16}},
			"buffers 0 and 2 are fixed at 8 and 16, where they share a slot and a byte"},
		{"one above the other", []Buffer{{Size: 4, Spans: one, Fixed: true, At: 3},
			{Size: 3, Spans: both, Fixed: true}}, ""},
		{"one after the other", []Buffer{{Size: 4, Spans: one, Fixed: true}, {Size: 4, Spans: later, Fixed: true}}, ""},
		{"nothing", []Buffer{{Size: 4, Spans: one, Fixed: true}, {Size: 0, Spans: one, Fixed: true, At: 2}}, ""},
		{"one group", []Buffer{{Size: 4, Spans: one, Fixed: true, At: 2, Alias: 1}, {Size: 9, Spans: both, Fixed: true,
			At: 2, Alias: 1}}, ""},
		{"odd sizes, aligned", []Buffer{{Size: 5, Spans: one, Fixed: true, Align: 8}, {Size: 5, Spans: one, Fixed: true,
			At: 8, Align: 8}}, ""},
	} {
		for _, method := range Methods() {
			_, err := Pack(c.buffers, Options{Method: method})
			switch {
			case c.want != "":
				checkError(t, c.name+": "+method, err, []string{c.want})
			case method != "online" && err != nil:
				t.Errorf("%s: %s: %v", c.name, method, err)
			}
		}
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
		{{Size: 1 << 61, Spans: one, Align: 1 << 61}, {Size: 5, Spans: one, Align: 1 << 61},
			{Size: 1 << 60, Spans: later}},
		{{Size: 3, Spans: []Span{{math.MinInt, math.MaxInt}}},
			{Size: 4, Spans: []Span{{math.MaxInt - 1, math.MaxInt}}}},
		{{Size: 3, Spans: one, Fixed: true, At: math.MaxInt64 - 12}, {Size: 6, Spans: later}},
		{{Size: 0, Spans: one, Fixed: true, At: math.MaxInt64}},
	} {
		checkMethodsNear(t, fmt.Sprint(buffers), buffers)
	}
}

// What is small enough to be understood is as it was when all sizes are multiplied, up to the last byte that fits.
func TestPackScaledToTheLargestSize(t *testing.T) {
	for seed := range uint64(160) {
		rng := rand.New(rand.NewPCG(seed, 40))
		buffers := fewBuffers(rng)
		switch seed % 4 {
		case 0:
			buffers = pinned(rng, buffers)
		case 1:
			buffers = randomBuffers(rng)
		}
		optimum := int64(0)
		if seed%4 != 1 {
			optimum = slowOptimum(buffers)
		}
		var highest, need int64
		for _, b := range buffers {
			if b.Fixed {
				highest = max(highest, b.At+b.Size)
			}
			need += b.Size + b.align()
		}
		if highest += need; highest == 0 {
			continue
		}
		factor := int64(1) << (bits.Len64(uint64(math.MaxInt64/highest)) - 1)
		for i := range buffers {
			b := &buffers[i]
			b.Size, b.Align, b.At = b.Size*factor, b.align()*factor, b.At*factor
		}
		checkMethodsNear(t, fmt.Sprintf("seed %d", seed), buffers)
		if optimum > 0 && !outlined(buffers) {
			if l := packed(t, fmt.Sprintf("seed %d", seed), buffers); l.Height != optimum*factor {
				t.Errorf("seed %d: height %d, the optimum is %d", seed, l.Height, optimum*factor)
			}
		}
		last := &buffers[rng.IntN(len(buffers))]
		if last.Size = math.MaxInt64; last.Fixed {
			last.At = 0
		}
		for _, method := range Methods() {
			if l, err := Pack(buffers, Options{Method: method}); err == nil && len(buffers) > 1 {
				t.Errorf("seed %d: %s: no error but %v for %+v", seed, method, l, buffers)
			}
		}
	}
}

func checkMethodsNear(t *testing.T, name string, buffers []Buffer) {
	t.Helper()
	for _, method := range Methods() {
		if method != "online" || !slices.ContainsFunc(buffers, func(b Buffer) bool { return b.Fixed }) {
			packedBy(t, name+": "+method, buffers, Options{Method: method})
		}
	}
}
