// Package pool packs residencies into an arena before the run: which bytes each [Buffer] has, given when it is needed.
//
// A buffer is a number of bytes and the spans of slots in which it holds them; it keeps one offset over all its spans,
// so that a residency which wraps round the iteration is found in its place again. [Pack] returns a [Layout]; [Load] is
// what no layout can go below; [Validate] believes nothing and sweeps over all slots. The problem is that of packing
// rectangles whose place in time is fixed (dynamic storage allocation), which is NP-hard; Pack tries many orders and
// keeps the best.
//
//	bytes
//	  8 |     +--------+              height 8
//	    |     | c      |  +-----+
//	  5 +-----+--+-----+  | d   |
//	    | b      |        |     |     d fits under what c left
//	  2 +--------+--------+-----+
//	    | a, resident throughout|     at the bottom, where it is in nobody's way
//	  0 +--+--+--+--+--+--+--+--+
//	    0  1  2  3  4  5  6  7  8     slots
//
// Invariants: two buffers that share a slot share no byte; every offset is a multiple of the buffer's alignment; a
// buffer of size zero stands at 0; Height >= LowerBound; equal input gives equal offsets on every machine, since work
// is bounded by counted steps and ties are broken by the buffers' numbers.
//
// Inside, time is cut down to columns (columns.go), placed bytes stand in a list (flat.go) or, for many buffers, in a
// segment tree (index.go), a fit chooses among the gaps (fit.go), greedy places in an order (greedy.go, orders.go). A
// method (pack.go) makes or improves the layout of a search (search.go); another one is another entry in methods.
//
// [Online] and [Streams] are allocators that do not know what comes, to compare with.
package pool
