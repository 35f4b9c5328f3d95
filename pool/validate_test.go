package pool

import (
	"math"
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
		{"many", []int64{4, 4, 4, 0}, 1, []string{"buffer 0: offset 4", "0 at [4, 12) and 2", "1 at [4, 8) and 2", "height"}},
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
