package draft

import "time"

// freeList holds free stretches of time, ascending and apart, as a treap whose nodes know the longest stretch below
// them: the first and the last one that something fits into are found in logarithmic time. Priorities come from a
// counter, so equal uses give equal trees.
type freeList struct {
	nodes []freeNode // node 0 stands for none
	root  int32
	last  int32 // of a removed node that can be used again; 0: none. It is linked by left.
}

type freeNode struct {
	from, to    time.Duration
	longest     time.Duration
	left, right int32
	priority    uint32
}

func newFreeList(from, to time.Duration) *freeList {
	f := &freeList{nodes: make([]freeNode, 1, 64)}
	f.root = f.node(from, to)
	return f
}

func (f *freeList) node(from, to time.Duration) int32 {
	n := f.last
	if n != 0 {
		f.last = f.nodes[n].left
	} else {
		n = int32(len(f.nodes))
		f.nodes = append(f.nodes, freeNode{})
	}
	f.nodes[n] = freeNode{from: from, to: to, longest: to - from,
		priority: scramble(uint32(len(f.nodes)) ^ uint32(from))}
	return n
}

// scramble spreads numbers over 32 bits.
func scramble(x uint32) uint32 {
	x = (x ^ x>>16) * 0x7feb352d
	x = (x ^ x>>15) * 0x846ca68b
	return x ^ x>>16
}

func (f *freeList) update(n int32) {
	x := &f.nodes[n]
	x.longest = max(x.to-x.from, f.nodes[x.left].longest, f.nodes[x.right].longest)
}

// firstFree returns the first start, at from or later, of a free stretch of this length.
func (f *freeList) firstFree(from, length time.Duration) (time.Duration, bool) {
	return f.firstIn(f.root, from, length)
}

func (f *freeList) firstIn(n int32, from, length time.Duration) (time.Duration, bool) {
	for n != 0 && f.nodes[n].longest >= length {
		x := &f.nodes[n]
		if x.to > from {
			if at, ok := f.firstIn(x.left, from, length); ok {
				return at, true
			}
			if at := max(x.from, from); x.to-at >= length {
				return at, true
			}
		}
		n = x.right
	}
	return 0, false
}

// final returns the last start of a free stretch of this length that ends at to or before.
func (f *freeList) final(to, length time.Duration) (time.Duration, bool) {
	return f.finalIn(f.root, to, length)
}

func (f *freeList) finalIn(n int32, to, length time.Duration) (time.Duration, bool) {
	for n != 0 && f.nodes[n].longest >= length {
		x := &f.nodes[n]
		if x.from < to {
			if at, ok := f.finalIn(x.right, to, length); ok {
				return at, true
			}
			if end := min(x.to, to); end-x.from >= length {
				return end - length, true
			}
		}
		n = x.left
	}
	return 0, false
}

// book takes [from, to) away; what is not free of it is passed over.
func (f *freeList) book(from, to time.Duration) {
	for from < to {
		free, end, ok := f.nextFree(from)
		if !ok || free >= to {
			return
		}
		head, tail := max(free, from), min(end, to)
		switch {
		case free < head && tail < end:
			f.root = f.change(f.root, free, free, head)
			f.root = f.insert(f.root, f.node(tail, end))
		case free < head:
			f.root = f.change(f.root, free, free, head)
		default:
			f.root = f.change(f.root, free, tail, end)
		}
		from = tail
	}
}

// release makes [from, to) free again, all of which was taken in one piece.
func (f *freeList) release(from, to time.Duration) {
	if before, ok := f.endingAt(from); ok {
		if after, end, ok := f.nextFree(from); ok && after == to {
			f.root = f.change(f.root, after, end, end)
			to = end
		}
		f.root = f.change(f.root, before, before, to)
		return
	}
	if after, end, ok := f.nextFree(from); ok && after == to {
		f.root = f.change(f.root, after, from, end)
		return
	}
	f.root = f.insert(f.root, f.node(from, to))
}

// endingAt returns the begin of the free stretch that ends at a time.
func (f *freeList) endingAt(to time.Duration) (from time.Duration, ok bool) {
	for n := f.root; n != 0; {
		x := &f.nodes[n]
		switch {
		case x.to == to:
			return x.from, true
		case x.to < to:
			n = x.right
		default:
			n = x.left
		}
	}
	return 0, false
}

// nextFree returns the first free stretch that ends after a time.
func (f *freeList) nextFree(from time.Duration) (begin, end time.Duration, ok bool) {
	for n := f.root; n != 0; {
		if x := &f.nodes[n]; x.to > from {
			begin, end, ok = x.from, x.to, true
			n = x.left
		} else {
			n = x.right
		}
	}
	return begin, end, ok
}

// change gives the stretch that begins at old other ends, in the same place of the order; an empty one goes away.
func (f *freeList) change(n int32, old, from, to time.Duration) int32 {
	x := &f.nodes[n]
	switch {
	case old < x.from:
		child := f.change(x.left, old, from, to)
		f.nodes[n].left = child
	case old > x.from:
		child := f.change(x.right, old, from, to)
		f.nodes[n].right = child
	case from == to:
		joined := f.join(x.left, x.right)
		f.nodes[n].left, f.last = f.last, n
		return joined
	default:
		x.from, x.to = from, to
	}
	f.update(n)
	return n
}

func (f *freeList) join(a, b int32) int32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	case f.nodes[a].priority > f.nodes[b].priority:
		f.nodes[a].right = f.join(f.nodes[a].right, b)
		f.update(a)
		return a
	}
	f.nodes[b].left = f.join(a, f.nodes[b].left)
	f.update(b)
	return b
}

func (f *freeList) insert(n, added int32) int32 {
	if n == 0 {
		return added
	}
	if f.nodes[added].priority > f.nodes[n].priority {
		f.nodes[added].left, f.nodes[added].right = f.split(n, f.nodes[added].from)
		f.update(added)
		return added
	}
	if f.nodes[added].from < f.nodes[n].from {
		f.nodes[n].left = f.insert(f.nodes[n].left, added)
	} else {
		f.nodes[n].right = f.insert(f.nodes[n].right, added)
	}
	f.update(n)
	return n
}

// split divides a tree into the stretches that begin before a time and the others.
func (f *freeList) split(n int32, at time.Duration) (before, after int32) {
	if n == 0 {
		return 0, 0
	}
	if f.nodes[n].from < at {
		f.nodes[n].right, after = f.split(f.nodes[n].right, at)
		before = n
	} else {
		before, f.nodes[n].left = f.split(f.nodes[n].left, at)
		after = n
	}
	f.update(n)
	return before, after
}
