package peak

import "tensile/graph"

// Curve is a footprint that changes a range of slots at a time: Algorithm 1 of TENSILE in incremental form. A gap that
// is decided frees its storage in some slots, and the peak after that is known in time logarithmic in the slots; [Of]
// is what it must agree with. The zero value has no slots.
type Curve struct {
	slots int
	width int           // a power of two, at least slots: leaf i is node width+i
	max   []graph.Bytes // per node: the largest footprint below it, what is pending above it left out
	plus  []graph.Bytes // per inner node: what was added to all below it
}

// NewCurve returns the curve with these footprints, which it copies. It takes linear time.
func NewCurve(slots []graph.Bytes) *Curve {
	c := &Curve{slots: len(slots), width: 1}
	for c.width < len(slots) {
		c.width *= 2
	}
	c.max = make([]graph.Bytes, 2*c.width)
	c.plus = make([]graph.Bytes, c.width)
	copy(c.max[c.width:], slots)
	for i := c.width + len(slots); i < 2*c.width; i++ {
		c.max[i] = lowest
	}
	for i := c.width - 1; i > 0; i-- {
		c.max[i] = max(c.max[2*i], c.max[2*i+1])
	}
	return c
}

// lowest is below any footprint, however often something is taken off it.
const lowest = -1 << 62

// Len is the number of slots.
func (c *Curve) Len() int { return c.slots }

// Add adds bytes, which may be negative, to the slots [from, to).
func (c *Curve) Add(from, to int, bytes graph.Bytes) {
	if from >= to {
		return
	}
	left, right := from+c.width, to+c.width-1
	for l, r := left, right; l <= r; l, r = l/2, r/2 {
		if l&1 == 1 {
			c.raise(l, bytes)
			l++
		}
		if r&1 == 0 {
			c.raise(r, bytes)
			r--
		}
	}
	c.recompute(left / 2)
	c.recompute(right / 2)
}

func (c *Curve) raise(node int, bytes graph.Bytes) {
	c.max[node] += bytes
	if node < c.width {
		c.plus[node] += bytes
	}
}

// recompute recomputes a node and all above it.
func (c *Curve) recompute(node int) {
	for ; node > 0; node /= 2 {
		c.max[node] = max(c.max[2*node], c.max[2*node+1]) + c.plus[node]
	}
}

// Peak returns the largest footprint and the first slot that has it.
func (c *Curve) Peak() (at int, bytes graph.Bytes) {
	if c.slots == 0 {
		return 0, 0
	}
	node := 1
	for node < c.width {
		if node *= 2; c.max[node+1] > c.max[node] {
			node++
		}
	}
	return node - c.width, c.max[1]
}

// At returns the footprint of a slot.
func (c *Curve) At(slot int) graph.Bytes {
	node := slot + c.width
	bytes := c.max[node]
	for node /= 2; node > 0; node /= 2 {
		bytes += c.plus[node]
	}
	return bytes
}

// Max returns the largest footprint of the slots [from, to), or 0 if there are none.
func (c *Curve) Max(from, to int) graph.Bytes {
	if from >= to {
		return 0
	}
	return c.highest(1, 0, c.width, from, to)
}

func (c *Curve) highest(node, low, high, from, to int) graph.Bytes {
	if to <= low || high <= from {
		return lowest
	}
	if from <= low && high <= to {
		return c.max[node]
	}
	middle := (low + high) / 2
	return c.plus[node] + max(c.highest(2*node, low, middle, from, to), c.highest(2*node+1, middle, high, from, to))
}

// Slots returns the footprint of every slot. It takes linear time.
func (c *Curve) Slots() []graph.Bytes {
	above := make([]graph.Bytes, 2*c.width) // per node: what is pending on it and above it
	slots := make([]graph.Bytes, c.slots)
	for node := 1; node < c.width; node++ {
		above[node] += c.plus[node]
		above[2*node], above[2*node+1] = above[node], above[node]
	}
	for slot := range slots {
		slots[slot] = c.max[c.width+slot] + above[c.width+slot]
	}
	return slots
}

// Clone returns a copy.
func (c *Curve) Clone() *Curve {
	d := *c
	d.max = append([]graph.Bytes(nil), c.max...)
	d.plus = append([]graph.Bytes(nil), c.plus...)
	return &d
}
