package compile

import (
	"math/rand/v2"
	"testing"

	"tensile/graph"
	"tensile/plan/program"
)

// checkOccupancy compares the pieces with a plain array of who used each byte last.
func checkOccupancy(t testing.TB, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 71))
	size := 1 + rng.IntN(4000)
	plain := make([]*uses, size)
	var o occupancy
	for count := range 600 {
		from := rng.IntN(size)
		to := from + 1 + rng.IntN(min(size-from, 1+rng.IntN(40)))
		by := &uses{write: program.Point{Stream: program.Stream(program.Compute), Count: count + 1}}
		var got, want need
		for i := from; i < to; i++ {
			if plain[i] != nil {
				want.toWrite(plain[i])
			}
			plain[i] = by
		}
		o.occupy(graph.Bytes(from), graph.Bytes(to), by, &got)
		if got != want {
			t.Fatalf("seed %d: bytes %d to %d were used by %v, want %v", seed, from, to, got, want)
		}
	}
	var end graph.Bytes
	for i, piece := range o.pieces {
		if len(piece) == 0 || len(piece) > longestPiece+2 {
			t.Fatalf("seed %d: piece %d of %d has %d ranges", seed, i, len(o.pieces), len(piece))
		}
		for _, r := range piece {
			if r.from < end || r.from >= r.to {
				t.Fatalf("seed %d: range %d to %d after one that ends at %d", seed, r.from, r.to, end)
			}
			for b := end; b < r.to; b++ {
				if want := plain[b]; b < r.from && want != nil || b >= r.from && want != r.by {
					t.Fatalf("seed %d: byte %d is not that of its last user", seed, b)
				}
			}
			end = r.to
		}
	}
}

func TestOccupancy(t *testing.T) {
	for seed := range uint64(300) {
		checkOccupancy(t, seed)
	}
}

func FuzzOccupancy(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkOccupancy(t, seed) })
}
