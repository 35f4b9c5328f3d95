package capuchin

import (
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

const ms = time.Millisecond

// TestLane books the link by hand.
func TestLane(t *testing.T) {
	var l lane
	l.book(10*ms, 10*ms)
	l.book(30*ms, 5*ms)
	for _, c := range []struct {
		earliest, end, takes, want time.Duration // want below 0: there is no time
	}{
		{0, 5 * ms, 3 * ms, 2 * ms},    // before what is booked
		{0, 10 * ms, 10 * ms, 0},       // up to it
		{0, 22 * ms, 2 * ms, 20 * ms},  // right behind
		{0, 22 * ms, 3 * ms, 7 * ms},   // not behind: before
		{8 * ms, 22 * ms, 3 * ms, -1},  // nor there
		{0, 40 * ms, 5 * ms, 35 * ms},  // behind all
		{0, 34 * ms, 10 * ms, 20 * ms}, // between
		{20 * ms, 34 * ms, 10 * ms, 20 * ms},
		{21 * ms, 34 * ms, 10 * ms, -1},
	} {
		got, ok := l.latestBegin(c.earliest, c.end, c.takes)
		if ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("from %v to %v for %v: %v, %v, want %v", c.earliest, c.end, c.takes, got, ok, c.want)
		}
	}
}

// fiveOps is an iteration of five ops of 1 ms, with storages whose copies take 1 ms.
func fiveOps() *observed {
	link := cost.Link{Rate: cost.BytesPerSecond(1 << 20 * 1000)}
	g := &graph.Graph{Storages: []graph.Storage{{ID: 0, Bytes: 1 << 20}, {ID: 1, Bytes: 1 << 20}}}
	o := &observed{facts: &facts{g: g, in: link, out: link}, guide: newGuide(5), window: 0}
	for k := range time.Duration(5) {
		o.start, o.end = append(o.start, k*ms), append(o.end, (k+1)*ms)
	}
	return o
}

// TestHides: a copy in is hidden between the end of the copy out, or of the peak, and the back-access.
func TestHides(t *testing.T) {
	for _, c := range []struct {
		from, back, window int
		want               bool
	}{
		{1, 3, 0, false}, // out from 2 to 3 ms
		{1, 4, 0, true},  // out from 2 to 3, in from 3 to 4 ms
		{1, 4, 3, false}, // the peak ends at 4 ms
		{0, 4, 2, true},
		{0, 4, 4, false},
	} {
		o := fiveOps()
		o.window = c.window
		if _, got := o.hides(&candidate{from: c.from, back: c.back}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestTriggers: copies in end one before the other, and each is triggered by the last op that ends before it begins,
// but by none before the one after the evicted-access.
func TestTriggers(t *testing.T) {
	o := fiveOps()
	o.swapped = []*candidate{{storage: 0, from: 1, back: 3}, {storage: 1, from: 0, back: 3}}
	o.triggers() // 0 from 2 to 3 ms, 1 from 1 to 2 ms
	for k, want := range [][]graph.StorageID{{}, {1}, {0}, {}, {}} {
		if !slices.Equal(o.guide.bring[k], want) {
			t.Errorf("op %d triggers %v, want %v", k, o.guide.bring[k], want)
		}
	}
}
