package pool

import (
	"math/rand/v2"
	"slices"
)

// randomBuffers are a few small buffers with everything that is allowed: several spans, touching ones too, size zero,
// equal lifetimes, residents, mixed alignments.
func randomBuffers(rng *rand.Rand) []Buffer {
	slots, largest := 1+rng.IntN(24), 1+rng.Int64N(40)
	aligns := [][]int64{{0}, {1, 0}, {8}, {0, 2, 4, 16}}[rng.IntN(4)]
	buffers := make([]Buffer, rng.IntN(40))
	for i := range buffers {
		b := Buffer{Size: rng.Int64N(largest + 1), Align: aligns[rng.IntN(len(aligns))]}
		switch at := rng.IntN(10); {
		case at == 0:
			b.Spans = []Span{{0, slots}}
		case at == 1 && i > 0:
			b.Spans = buffers[i-1].Spans
		default:
			for from := rng.IntN(slots); from < slots && (len(b.Spans) == 0 || rng.IntN(2) == 0); {
				to := from + 1 + rng.IntN(slots-from)
				b.Spans = append(b.Spans, Span{from, to})
				from = to + rng.IntN(3)
			}
		}
		buffers[i] = b
	}
	return buffers
}

// trainingStep is shaped like an iteration: activations that nest, gradients that live for a few slots, parameters, and
// residencies that wrap round the boundary. Sizes are of few kinds, as in a network.
func trainingStep(n int, seed uint64) []Buffer {
	rng := rand.New(rand.NewPCG(seed, 0))
	buffers := make([]Buffer, n)
	for i := range buffers {
		size := int64(512) << rng.IntN(14) * int64(1+rng.IntN(9))
		var spans []Span
		switch at := rng.IntN(n); rng.IntN(10) {
		case 0, 1, 2, 3:
			spans = []Span{{at / 2, n - at/2}}
		case 4, 5, 6, 7:
			spans = []Span{{at, at + 1 + rng.IntN(6)}}
		case 8:
			spans = []Span{{0, n + 6}}
		default:
			spans = []Span{{0, at/2 + 1}, {n - rng.IntN(n/2), n + 6}}
		}
		buffers[i] = Buffer{Size: size, Spans: spans}
	}
	return buffers
}

// scattered has intervals and sizes without any pattern.
func scattered(n int, seed uint64) []Buffer {
	rng := rand.New(rand.NewPCG(seed, 1))
	buffers := make([]Buffer, n)
	for i := range buffers {
		from := rng.IntN(n)
		buffers[i] = Buffer{Size: 1 + rng.Int64N(1000), Spans: []Span{{from, from + 1 + rng.IntN(n-from)}}}
	}
	return buffers
}

// jigsaw cuts a rectangle of slots and bytes into n pieces: a perfect packing exists, and is hard to find.
func jigsaw(n int, seed uint64) (buffers []Buffer, height int64) {
	type piece struct {
		span  Span
		bytes byteRange
	}
	height = 1 << 20
	rng := rand.New(rand.NewPCG(seed, 2))
	pieces := []piece{{Span{0, 4 * n}, byteRange{0, height}}}
	for len(pieces) < n {
		i := rng.IntN(len(pieces))
		one, other := pieces[i], pieces[i]
		if s := one.span; rng.IntN(2) == 0 && s.To-s.From > 1 {
			at := s.From + 1 + rng.IntN(s.To-s.From-1)
			one.span.To, other.span.From = at, at
		} else if r := one.bytes; r.hi-r.lo > 1 {
			at := r.lo + 1 + rng.Int64N(r.hi-r.lo-1)
			one.bytes.hi, other.bytes.lo = at, at
		} else {
			continue
		}
		pieces[i] = one
		pieces = append(pieces, other)
	}
	rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	for _, p := range pieces {
		buffers = append(buffers, Buffer{Size: p.bytes.hi - p.bytes.lo, Spans: []Span{p.span}})
	}
	return buffers, height
}

// pinned adds groups and fixed offsets to buffers, so that a layout exists: nothing that is fixed meets anything else
// that is, a group standing with its largest size wherever any of it is resident.
func pinned(rng *rand.Rand, buffers []Buffer) []Buffer {
	groups, share := 1+rng.IntN(4), rng.IntN(4)
	for i := range buffers {
		if rng.IntN(4) < share {
			buffers[i].Alias = rng.IntN(2*groups+1) - groups
		}
	}
	var total int64
	for _, b := range buffers {
		total += b.Size + b.align()
	}
	merged, members := mergeGroups(buffers)
	share = rng.IntN(5)
	var done []int
	for i, b := range merged {
		at := alignUp(rng.Int64N(total), b.align())
		meets := func(j int) bool {
			m := &merged[j]
			return at < m.At+m.Size && m.At < at+b.Size && shareSlot(&b, m)
		}
		if rng.IntN(8) >= share || slices.ContainsFunc(done, meets) {
			continue
		}
		done = append(done, i)
		merged[i].At = at
		for k, n := range members[i] {
			if k == 0 || rng.IntN(2) == 0 { // the others of a group stand there too
				buffers[n].Fixed, buffers[n].At = true, at
			}
		}
	}
	return buffers
}
