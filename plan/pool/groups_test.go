package pool

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowLoads are the bytes of each slot: of a group, its largest member that is resident then.
func slowLoads(buffers []Buffer) map[int]int64 {
	largest := make(map[[2]int]int64) // by slot and group
	loads := make(map[int]int64)
	for i, b := range buffers {
		group := b.Alias
		if group == 0 {
			group = 1000 + i
		}
		for _, s := range b.Spans {
			for slot := s.From; slot < s.To; slot++ {
				if key := [2]int{slot, group}; b.Size > largest[key] {
					loads[slot] += b.Size - largest[key]
					largest[key] = b.Size
				}
			}
		}
	}
	return loads
}

// A group gives way to pieces that are apart in time and have its load in every slot.
func TestEnvelope(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 34))
		var group []Buffer
		for _, b := range randomBuffers(rng) {
			if b.Size > 0 {
				b.Alias = 1
				group = append(group, b)
			}
		}
		pieces := envelope(group)
		if diff := cmp.Diff(slowLoads(group), slowLoads(pieces)); diff != "" {
			t.Fatalf("seed %d: %v: (-want +got):\n%s", seed, group, diff)
		}
		for i, p := range pieces {
			if badSpans(p.Spans) != "" || len(p.Spans) != 1 || p.Size <= 0 || p.Alias != 0 ||
				i > 0 && p.Spans[0].From < pieces[i-1].Spans[0].To {
				t.Fatalf("seed %d: piece %d of %v", seed, i, pieces)
			}
		}
	}
}

// Many members, where one larger than the last begins in the middle of it, or ends with it.
func TestEnvelopeOfStairs(t *testing.T) {
	var up, down []Buffer
	for i := range 50 {
		up = append(up, Buffer{Size: int64(1 + i), Spans: []Span{{i, 100}}, Alias: 1})
		down = append(down, Buffer{Size: int64(50 - i), Spans: []Span{{0, i + 1}}, Alias: 1})
	}
	for _, group := range [][]Buffer{up, down, slices.Concat(up, down)} {
		if diff := cmp.Diff(slowLoads(group), slowLoads(envelope(group))); diff != "" {
			t.Errorf("%v: (-want +got):\n%s", group, diff)
		}
	}
}

// Without groups the loads are the same, and so is the lower bound.
func TestApart(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 35))
		buffers := pinned(rng, randomBuffers(rng))
		want := slowLoads(buffers)
		pieces := apart(buffers)
		if diff := cmp.Diff(want, slowLoads(pieces)); diff != "" {
			t.Fatalf("seed %d: %v: (-want +got):\n%s", seed, buffers, diff)
		}
		if slices.ContainsFunc(pieces, func(b Buffer) bool { return b.Alias != 0 }) {
			t.Fatalf("seed %d: a piece is in a group: %v", seed, pieces)
		}
		var largest int64
		for _, load := range want {
			largest = max(largest, load)
		}
		if got := Load(buffers); got != largest {
			t.Fatalf("seed %d: Load = %d, want %d", seed, got, largest)
		}
	}
}

func TestUnion(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 36))
		var spans []Span
		var resident [40]bool
		for range 1 + rng.IntN(8) {
			from := rng.IntN(38)
			s := Span{from, from + 1 + rng.IntN(min(6, 39-from))}
			spans = append(spans, s)
			for slot := s.From; slot < s.To; slot++ {
				resident[slot] = true
			}
		}
		var want []Span
		for slot, is := range resident {
			switch {
			case is && resident[max(slot-1, 0)] && slot > 0:
				want[len(want)-1].To = slot + 1
			case is:
				want = append(want, Span{slot, slot + 1})
			}
		}
		if got := union(slices.Clone(spans)); !slices.Equal(want, got) {
			t.Fatalf("seed %d: union of %v = %v, want %v", seed, spans, got, want)
		}
	}
}

// A merged group is as large, as aligned and as long resident as all its members need. The buffers stay as they are.
func TestMergeGroups(t *testing.T) {
	for seed := range uint64(800) {
		rng := rand.New(rand.NewPCG(seed, 37))
		buffers := pinned(rng, randomBuffers(rng))
		before := cloneBuffers(buffers)
		merged, members := mergeGroups(buffers)
		if diff := cmp.Diff(before, buffers); diff != "" {
			t.Fatalf("seed %d: the buffers are no longer the same (-want +got):\n%s", seed, diff)
		}
		var all []int
		for i, m := range merged {
			want, fixed := Buffer{Alias: m.Alias, At: m.At}, false
			for _, n := range members[i] {
				b := buffers[n]
				if b.Alias != m.Alias || b.Alias == 0 && len(members[i]) > 1 || b.Fixed && (!m.Fixed || b.At != m.At) {
					t.Fatalf("seed %d: buffer %+v is in %+v", seed, b, m)
				}
				want.Size, want.Align = max(want.Size, b.Size), max(want.Align, b.Align)
				want.Spans = append(want.Spans, b.Spans...)
				fixed = fixed || b.Fixed
			}
			if want.Fixed = fixed; len(members[i]) > 1 {
				want.Spans = union(want.Spans)
			}
			if diff := cmp.Diff(want, m); diff != "" {
				t.Fatalf("seed %d: group %d (-want +got):\n%s", seed, m.Alias, diff)
			}
			all = append(all, members[i]...)
		}
		slices.Sort(all)
		for i := range buffers {
			if len(all) != len(buffers) || all[i] != i {
				t.Fatalf("seed %d: members %v of %d buffers", seed, members, len(buffers))
			}
		}
	}
}

func cloneBuffers(buffers []Buffer) []Buffer {
	clones := slices.Clone(buffers)
	for i := range clones {
		clones[i].Spans = slices.Clone(clones[i].Spans)
	}
	return clones
}
