package pool

// placeSteps is what placing one buffer costs beside the search, in steps of a query.
const placeSteps = 100

// flatItems is up to how many items the flat list is faster than the index.
const flatItems = 1500

// placed is what has been placed so far. flat and index do the same at different cost.
type placed interface {
	clear()
	// add takes a range of bytes in a span of columns.
	add(s Span, r byteRange)
	// taken appends to the query sets that hold the bytes taken anywhere in the spans, until the next add.
	taken(q *query, spans []Span)
}

// greedy places buffers one after another, each where a fit says among those placed before it.
type greedy struct {
	problem *problem
	placed  placed
	offsets []int64 // bytes, per item; of the last run
	query   query
	ask     func() bool // asked every asking items: whether to give a run up; nil: never
}

// asking is how many items are looked at between two questions whether to stop: some tenths of a millisecond.
const asking = 256

func newGreedy(p *problem) *greedy {
	g := &greedy{problem: p, placed: &flat{}, offsets: make([]int64, len(p.items))}
	if len(p.items) > flatItems {
		g.placed = newIndex(p.columns)
	}
	return g
}

// run is one sequence of placements.
type run struct {
	order []int // item numbers
	fit   fit
	at    []int64 // bytes, per item: where it is to stand, or -1; nil leaves all to the fit
	limit int64   // bytes; the run stops at the first item that would end above it
	steps int     // work after which only the uppermost gaps are searched, which costs little
}

// place does a run. It returns the height, and the position in the order at which the run stopped or -1 if it did not.
func (g *greedy) place(r run) (height int64, stopped int) {
	g.placed.clear()
	g.query.steps = 0
	for _, n := range g.problem.fixed {
		height = max(height, g.put(n, g.problem.items[n].at))
	}
	if r.at != nil {
		for _, n := range r.order {
			if r.at[n] >= 0 && !g.problem.items[n].fixed {
				height = max(height, g.put(n, r.at[n]))
			}
		}
	}
	for i, n := range r.order {
		it := &g.problem.items[n]
		if it.fixed || r.at != nil && r.at[n] >= 0 {
			continue
		}
		if i%asking == asking-1 && g.ask != nil && g.ask() {
			return 0, i
		}
		at := g.find(it, r)
		if it.size > r.limit-at {
			return 0, i
		}
		height = max(height, g.put(n, at))
	}
	return height, -1
}

// put places an item and returns its end.
func (g *greedy) put(n int, at int64) (end int64) {
	it := &g.problem.items[n]
	g.offsets[n] = at
	for _, s := range it.spans {
		g.placed.add(s, byteRange{at, at + it.room})
	}
	return at + it.size
}

// find chooses an item's offset among those placed.
func (g *greedy) find(it *item, r run) int64 {
	q := &g.query
	q.steps += placeSteps
	q.sets, q.size, q.align, q.floor = q.sets[:0], it.room, it.align, 0
	g.placed.taken(q, it.spans)
	if q.steps > r.steps {
		q.raise()
	}
	return r.fit(q)
}
