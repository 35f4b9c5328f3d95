// Package memory counts what jobs may have of a device and of its host: claims and their sums, and what answers of a
// controller say of them.
package memory

import (
	"tensile/graph"
	"tensile/wire"
)

// Claim is what a job may have of the device: Base from when it leaves Home until it is back, and up to Arena within an
// iteration. Where gates share memory, jobs take turns in what lies between the two; elsewhere Base is Arena.
type Claim struct {
	Base  graph.Bytes `json:"base_bytes"`
	Arena graph.Bytes `json:"arena_bytes"`
}

// Exclusive is the claim of a job that has an arena for itself.
func Exclusive(arena graph.Bytes) Claim { return Claim{arena, arena} }

// ClaimOf is what a job claims by its record.
func ClaimOf(r *wire.Record) Claim {
	if r.Sharing == wire.NoSharing {
		return Exclusive(r.Claim)
	}
	return Claim{r.Base, r.Claim}
}

// WholePages is so many bytes in whole pages, as leases count. A page of 0 bytes: jobs share no memory, and the bytes
// count as they are.
func WholePages(bytes, page graph.Bytes) graph.Bytes {
	if page == 0 {
		return bytes
	}
	return (bytes + page - 1) / page * page
}

// Union is the claim of a job that has the one or the other. Beside other jobs it takes what the worse of the two
// would.
func (c Claim) Union(d Claim) Claim { return Claim{max(c.Base, d.Base), max(c.Arena, d.Arena)} }

// FitsIn reports whether a job that claims d may have c at once.
func (c Claim) FitsIn(d Claim) bool { return c.Base <= d.Base && c.Arena <= d.Arena }

// IsZero reports whether the job claims nothing.
func (c Claim) IsZero() bool { return c == Claim{} }

// headroom is what the job's largest group needs above the base.
func (c Claim) headroom() graph.Bytes { return c.Arena - c.Base }

// Sum adds claims. Jobs that share a device take the sum of their bases, and the largest headroom of one of them.
type Sum struct {
	base            graph.Bytes
	largest, second graph.Bytes // the two largest headrooms
}

// Add returns the sum with one more claim.
func (t Sum) Add(c Claim) Sum {
	t.base += c.Base
	switch rest := c.headroom(); {
	case rest > t.largest:
		t.largest, t.second = rest, t.largest
	case rest > t.second:
		t.second = rest
	}
	return t
}

// Remove returns the sum without one of its claims. No second claim can be removed from the result.
func (t Sum) Remove(c Claim) Sum {
	t.base -= c.Base
	if c.headroom() == t.largest {
		t.largest = t.second
	}
	return t
}

// Bytes is what the claims take together.
func (t Sum) Bytes() graph.Bytes { return t.base + t.largest }
