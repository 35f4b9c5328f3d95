package pool

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowOnlineLayout walks through every slot and asks the slow allocator.
func slowOnlineLayout(t *testing.T, buffers []Buffer) []int64 {
	offsets := make([]int64, len(buffers))
	mates := func(i int) (group []int, lead Buffer, span Span) { // those at i's offset, and what all of them need
		span = Span{math.MaxInt, math.MinInt}
		for j, b := range buffers {
			if j == i || b.Alias != 0 && b.Alias == buffers[i].Alias {
				group = append(group, j)
				lead.Size, lead.Align = max(lead.Size, b.Size), max(lead.Align, b.Align, 1)
				for _, s := range b.Spans {
					span = Span{min(span.From, s.From), max(span.To, s.To)}
				}
			}
		}
		return group, lead, span
	}
	slow := &slowOnline{capacity: math.MaxInt64}
	for slot := range 100 {
		for i := range buffers {
			if group, lead, span := mates(i); lead.Size > 0 && group[0] == i && span.To == slot {
				slow.free(offsets[i])
			}
		}
		for i := range buffers {
			if group, lead, span := mates(i); lead.Size > 0 && group[0] == i && span.From == slot {
				at, err := slow.alloc(lead.Size, lead.Align)
				if err != nil {
					t.Fatal(err)
				}
				for _, j := range group {
					offsets[j] = at
				}
			}
		}
	}
	if len(slow.blocks) > 0 {
		t.Fatalf("blocks %v are left", slow.blocks)
	}
	return offsets
}

func TestOnlineLayout(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 15))
		buffers := randomBuffers(rng)
		for i := range buffers {
			if buffers[i].Fixed = false; seed%2 == 0 {
				buffers[i].Alias = max(0, rng.IntN(20)-10)
			}
		}
		got, err := onlineLayout(buffers)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(slowOnlineLayout(t, buffers), got); diff != "" {
			t.Fatalf("seed %d: %v: (-want +got):\n%s", seed, buffers, diff)
		}
		l := Layout{Offsets: got}
		for i, b := range buffers {
			l.Height = max(l.Height, got[i]+b.Size)
		}
		if err := Validate(buffers, l); err != nil {
			t.Fatalf("seed %d: %v: %v", seed, buffers, err)
		}
	}
}

// A residency that wraps round the iteration is held from its first slot to its last, though it is away in between.
func TestOnlineLayoutHolds(t *testing.T) {
	got, err := onlineLayout([]Buffer{
		{Size: 4, Spans: []Span{{0, 1}, {9, 10}}},
		{Size: 4, Spans: []Span{{2, 3}}},
		{Size: 0, Spans: []Span{{2, 3}}},
		{Size: 2, Spans: []Span{{3, 4}}, Align: 8},
		{Size: 3, Spans: []Span{{10, 12}}},
	})
	if diff := cmp.Diff([]int64{0, 4, 0, 8, 0}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestOnlineLayoutFixed(t *testing.T) {
	_, err := onlineLayout([]Buffer{{Size: 4, Spans: []Span{{0, 1}}}, {Size: 4, Spans: []Span{{2, 3}}, Fixed: true,
		At: 8}})
	if err == nil || !strings.Contains(err.Error(), "buffer 1 is fixed at 8, and the online method") {
		t.Errorf("error %v", err)
	}
}
