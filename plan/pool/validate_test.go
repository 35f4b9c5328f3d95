package pool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	buffers := []Buffer{
		{Size: 8, Spans: []Span{{0, 2}, {6, 8}}, Align: 8}, // 0 wraps round
		{Size: 4, Spans: []Span{{2, 6}}, Align: 4},         // 1 lives in its gap
		{Size: 4, Spans: []Span{{1, 7}}},                   // 2 meets both
		{Size: 0, Spans: []Span{{0, 8}}, Align: 8},         // 3 has no bytes
	}
	for _, c := range []struct {
		name    string
		offsets []int64
		height  int64
		want    []string // nil: the layout is right
	}{
		{"gap shared", []int64{0, 0, 8, 0}, 12, nil},
		{"apart", []int64{8, 0, 4, 0}, 16, nil},
		{"first span", []int64{0, 12, 6, 0}, 16, []string{"buffers 0 at [0, 8) and 2 at [6, 10) share"}},
		{"contained", []int64{0, 0, 2, 0}, 8, []string{"buffers 0 at [0, 8) and 2", "buffers 1 at [0, 4) and 2"}},
		{"alignment", []int64{4, 2, 12, 0}, 16, []string{
			"buffer 0: offset 4 is not a multiple of 8", "buffer 1: offset 2 is not a multiple of 4"}},
		{"height above", []int64{0, 0, 8, 0}, 13, []string{"height is 12, not 13"}},
		{"height below", []int64{0, 0, 8, 0}, 11, []string{"height is 12, not 11"}},
		{"nothing somewhere", []int64{0, 0, 8, 8}, 12, []string{"buffer 3: size 0 belongs at offset 0, not 8"}},
		{"negative", []int64{0, -4, 8, 0}, 12, []string{"buffer 1: offset -4 is negative"}},
		{"wrapped", []int64{0, 0, math.MaxInt64 - 3, 0}, 8, []string{"buffer 2: offset", "more than an int64"}},
		{"short", []int64{0, 0, 8}, 12, []string{"3 offsets for 4 buffers"}},
		{"many", []int64{4, 4, 4, 0}, 1, []string{"buffer 0: offset 4", "0 at [4, 12) and 2", "1 at [4, 8) and 2",
			"height"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Validate(buffers, Layout{Offsets: c.offsets, Height: c.height})
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, want %q", c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to say %q", err, want)
				}
			}
			if got := strings.Count(err.Error(), "\n") + 1; got != len(c.want) && c.name != "wrapped" {
				t.Errorf("%d problems, want %d: %v", got, len(c.want), err)
			}
		})
	}
}

func TestValidateNamesBadBuffers(t *testing.T) {
	err := Validate([]Buffer{{Size: -1, Spans: []Span{{0, 1}}}}, Layout{Offsets: []int64{0}})
	if err == nil || !strings.Contains(err.Error(), "buffer 0: size -1") {
		t.Errorf("got %v", err)
	}
}

func TestValidateCutsLongLists(t *testing.T) {
	buffers := make([]Buffer, 40)
	for i := range buffers {
		buffers[i] = Buffer{Size: 1, Spans: []Span{{0, 1}}}
	}
	err := Validate(buffers, Layout{Offsets: make([]int64, 40), Height: 1})
	if err == nil || !strings.HasSuffix(err.Error(), "and 716 more problems") { // 40*39/2 - 64
		t.Errorf("got %v", err)
	}
}

// paint finds two buffers that share a slot and a byte by painting every byte of every slot.
func paint(buffers []Buffer, offsets []int64) bool {
	type cell struct {
		slot int
		byte int64
	}
	painted := make(map[cell]int)
	for i, b := range buffers {
		for _, s := range b.Spans {
			for slot := s.From; slot < s.To; slot++ {
				for byte := offsets[i]; byte < offsets[i]+b.Size; byte++ {
					j, ok := painted[cell{slot, byte}]
					if ok && (b.Alias == 0 || buffers[j].Alias != b.Alias) {
						return true
					}
					painted[cell{slot, byte}] = i
				}
			}
		}
	}
	return false
}

// One buffer of a layout is moved, and the error says whether it now meets another.
func TestValidateAgainstPaint(t *testing.T) {
	var right, wrong int
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 41))
		buffers := fewBuffers(rng)
		for i := range buffers {
			if rng.IntN(3) == 0 {
				buffers[i].Alias = 1 + rng.IntN(2)
			}
		}
		l := packedBy(t, fmt.Sprintf("seed %d", seed), buffers, Options{Method: "size"})
		moved := &buffers[rng.IntN(len(buffers))]
		by := moved.align() * rng.Int64N(4)
		for i := range buffers {
			if b := &buffers[i]; b == moved || b.Alias != 0 && b.Alias == moved.Alias {
				l.Offsets[i] = alignUp(l.Offsets[i]+by, 8)
			}
		}
		l.Height, l.LowerBound = 0, 0
		for i, b := range buffers {
			l.Height = max(l.Height, l.Offsets[i]+b.Size)
		}
		err := Validate(buffers, l)
		if want := paint(buffers, l.Offsets); want != (err != nil) || err != nil && !strings.Contains(err.Error(),
			"share a slot and a byte") {
			t.Fatalf("seed %d: a byte is shared: %v, and Validate says %v", seed, want, err)
		}
		if err == nil {
			right++
		} else {
			wrong++
		}
	}
	if right < 300 || wrong < 300 {
		t.Errorf("%d layouts are right, %d are wrong", right, wrong)
	}
}

// Of each thing that Validate is to find there is one, in a layout that is right otherwise.
func TestValidateRejectsMutations(t *testing.T) {
	buffers := []Buffer{
		{Size: 8, Spans: []Span{{0, 4}}, Align: 8, Fixed: true, At: 16},
		{Size: 3, Spans: []Span{{0, 2}}, Alias: 1},
		{Size: 5, Spans: []Span{{1, 4}}, Alias: 1},
		{Size: 0, Spans: []Span{{1, 4}}, Fixed: true, At: 7},
		{Size: 0, Spans: []Span{{1, 4}}, Alias: 1},
		{Size: 4, Spans: []Span{{2, 9}}, Align: 4},
	}
	right := func() Layout { return Layout{Offsets: []int64{16, 0, 0, 7, 0, 8}, Height: 24, LowerBound: 17} }
	if err := Validate(buffers, right()); err != nil {
		t.Fatal(err)
	}
	for want, mutate := range map[string]func(l *Layout){
		"buffer 0: offset 24 is not the fixed one, 16":            func(l *Layout) { l.Offsets[0], l.Height = 24, 32 },
		"buffer 3: offset 0 is not the fixed one, 7":              func(l *Layout) { l.Offsets[3] = 0 },
		"buffers 1 at 0 and 2 at 1 are of one group":              func(l *Layout) { l.Offsets[2] = 1 },
		"buffers 1 at 0 and 4 at 1 are of one group":              func(l *Layout) { l.Offsets[4] = 1 },
		"buffers 2 at [0, 5) and 5 at [4, 8) share":               func(l *Layout) { l.Offsets[5] = 4 },
		"buffers 0 at [16, 24) and 5 at [20, 24) share":           func(l *Layout) { l.Offsets[5] = 20 },
		"buffer 5: offset 10 is not a multiple of 4":              func(l *Layout) { l.Offsets[5] = 10 },
		"height 24 is below the lower bound 25":                   func(l *Layout) { l.LowerBound = 25 },
		"height is 24, not 25":                                    func(l *Layout) { l.Height = 25 },
		"buffer 5: offset -4 is negative":                         func(l *Layout) { l.Offsets[5] = -4 },
		"offset 9223372036854775804 + size 4 is more than an int": func(l *Layout) { l.Offsets[5] = math.MaxInt64 - 3 },
	} {
		l := right()
		mutate(&l)
		err := Validate(buffers, l)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want only %s", err, want)
		}
	}
}
