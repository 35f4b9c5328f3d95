package autoswap

import (
	"errors"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/pool"
	"tensile/plan/pool/trace"
	"tensile/scheduler/draft"
)

// Traced is the iteration of a recorded trace. Its slots are the events of the iteration, its variables the blocks.
type Traced struct {
	*Iteration
	Buffers []int // per pause: the buffer of its block in the lifetimes

	lifetimes *trace.Lifetimes
}

// OfTrace reads what AutoSwap knows from a trace and the lifetimes of its iteration (section V: "these read/write
// requests are recorded along with the malloc/free requests"). A trace has no times: the time that the iteration takes
// is divided among the accesses, by the bytes of the blocks. Blocks without a place in the lifetimes are left out. A
// trace without accesses is an error.
func OfTrace(t trace.Trace, l *trace.Lifetimes, took time.Duration, out, in cost.Link) (*Traced, error) {
	accesses, err := l.Accesses(t)
	if err != nil {
		return nil, err
	}
	n := l.Events
	it := &Traced{Iteration: &Iteration{Took: make([]time.Duration, n), Load: make([]graph.Bytes, n)}, lifetimes: l}
	accessed := make([]int64, n) // bytes
	var all int64
	for i, b := range l.Buffers {
		for _, span := range b.Spans {
			for slot := span.From; slot < span.To; slot++ {
				it.Load[slot] += graph.Bytes(b.Size)
			}
		}
		for _, slot := range accesses[i] {
			accessed[slot%n] += b.Size
			all += b.Size
		}
		it.addPauses(i, accesses[i], out, in)
	}
	if all == 0 {
		return nil, errors.New("the iteration has no reads and writes: record these as well; swaps are between two")
	}
	var before int64
	for slot, bytes := range accessed {
		from := draft.Portion(took, time.Duration(before), time.Duration(all))
		before += bytes
		it.Took[slot] = draft.Portion(took, time.Duration(before), time.Duration(all)) - from
	}
	it.prepare()
	return it, nil
}

// addPauses adds those of a buffer. That of a block which stays goes on into the next iteration after its last access.
func (it *Traced) addPauses(buffer int, accesses []int, out, in cost.Link) {
	b := &it.lifetimes.Buffers[buffer]
	bytes := graph.Bytes(b.Size)
	add := func(from, to int) {
		if to-from < 2 {
			return
		}
		if n := it.lifetimes.Events; from >= n { // the second half of a block's life is in the next iteration
			from, to = from-n, to-n
		}
		it.Pauses = append(it.Pauses, Pause{Bytes: bytes, From: from, To: to, Send: out.Time(bytes),
			Fetch: in.Time(bytes)})
		it.Buffers = append(it.Buffers, buffer)
	}
	for i := range len(accesses) - 1 {
		add(accesses[i], accesses[i+1])
	}
	stays := it.lifetimes.Residents[buffer].Slot < 0 && it.lifetimes.Repeats > 1
	if len(accesses) > 0 && stays {
		add(accesses[len(accesses)-1], accesses[0]+it.lifetimes.Events)
	}
}

// Stay is a stay of a block on the device, as a buffer that has a place of its own: a copy in is a malloc (section V:
// "AutoSwap calls additional Malloc and Free due to swap-out and swap-in").
type Stay struct {
	pool.Buffer
	Of     int // buffer in the lifetimes
	Number int // the number of the stay in the iteration, from 0
}

// Stays returns the stays of all blocks under a choice.
func (it *Traced) Stays(c *Choice) []Stay {
	n := it.lifetimes.Events
	swaps := make(map[int][]Swap) // by buffer
	for _, x := range c.Swaps {
		swaps[it.Buffers[x.Pause]] = append(swaps[it.Buffers[x.Pause]], x)
	}
	var all []Stay
	for i, b := range it.lifetimes.Buffers {
		if len(swaps[i]) == 0 {
			all = append(all, Stay{Buffer: b, Of: i})
			continue
		}
		here := make([]bool, n)
		for _, span := range b.Spans {
			for slot := span.From; slot < span.To; slot++ {
				here[slot] = true
			}
		}
		for _, x := range swaps[i] {
			for slot := x.Drop + 1; slot <= x.In; slot++ {
				here[slot%n] = false
			}
		}
		for number, spans := range runs(here) {
			all = append(all, Stay{pool.Buffer{Size: b.Size, Align: b.Align, Spans: spans}, i, number})
		}
	}
	return all
}

// runs returns the runs of slots in which a block is there, each in one or two spans: what goes on over the end of the
// iteration is one run. There is a slot in which it is not.
func runs(here []bool) [][]pool.Span {
	n := len(here)
	var all [][]pool.Span
	for from := 0; from < n; from++ {
		if !here[from] {
			continue
		}
		to := from
		for to < n && here[to] {
			to++
		}
		all = append(all, []pool.Span{{From: from, To: to}})
		from = to
	}
	if last := len(all) - 1; last > 0 && all[0][0].From == 0 && all[last][0].To == n {
		all[0] = append(all[0], all[last][0])
		all = all[:last]
	}
	return all
}
