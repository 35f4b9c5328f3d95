package pool

// index holds placed byte ranges by column so that the bytes taken anywhere in a span are found without looking at the
// buffers one by one: a segment tree over the columns. A node knows two unions of byte ranges: those of the spans that
// cover the whole node but not its parent (cover), and those of all spans that meet the node's columns from within or
// cover it (within). The bytes taken in a span are then the union of within over the few nodes that make it up and of
// cover over the nodes above them. Buffers stand mostly on top of one another, so that the unions stay short.
type index struct {
	columns int
	nodes   []node
}

type node struct{ cover, within byteSet }

func newIndex(columns int) *index {
	size := 1
	for size < columns {
		size *= 2
	}
	return &index{columns: size, nodes: make([]node, 2*size)}
}

// clear empties the index and keeps its memory.
func (x *index) clear() {
	for i := range x.nodes {
		x.nodes[i].cover = x.nodes[i].cover[:0]
		x.nodes[i].within = x.nodes[i].within[:0]
	}
}

// add takes the bytes in a span of columns.
func (x *index) add(s Span, r byteRange) { x.addBelow(1, Span{0, x.columns}, s, r) }

func (x *index) addBelow(at int, here, s Span, r byteRange) {
	n := &x.nodes[at]
	n.within.add(r)
	if s.From <= here.From && here.To <= s.To {
		n.cover.add(r)
		return
	}
	left, right := here.halves()
	if s.Overlaps(left) {
		x.addBelow(2*at, left, s, r)
	}
	if s.Overlaps(right) {
		x.addBelow(2*at+1, right, s, r)
	}
}

// taken appends to a query the sets whose union is what is taken in spans of columns.
func (x *index) taken(q *query, spans []Span) {
	for _, s := range spans {
		x.takenBelow(q, 1, Span{0, x.columns}, s)
	}
}

func (x *index) takenBelow(q *query, at int, here, s Span) {
	n := &x.nodes[at]
	if len(n.within) == 0 {
		return
	}
	q.steps++
	if s.From <= here.From && here.To <= s.To {
		q.sets = append(q.sets, n.within)
		return
	}
	if len(n.cover) > 0 {
		q.sets = append(q.sets, n.cover)
	}
	left, right := here.halves()
	if s.Overlaps(left) {
		x.takenBelow(q, 2*at, left, s)
	}
	if s.Overlaps(right) {
		x.takenBelow(q, 2*at+1, right, s)
	}
}

// halves divides a span of an even number of columns.
func (s Span) halves() (left, right Span) {
	middle := s.From + (s.To-s.From)/2
	return Span{s.From, middle}, Span{middle, s.To}
}
