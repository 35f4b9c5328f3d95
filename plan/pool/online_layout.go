package pool

import (
	"cmp"
	"fmt"
	"slices"
)

// onlineLayout returns the offsets that an [Online] gives the buffers, asked in the order of time: at a slot, what ends
// there is freed before what begins there is allocated, in the order of the buffers' numbers. A buffer is held from its
// first slot to its last, since one that was given back would come back elsewhere; a group of aliases is one block. It
// expects buffers that check finds nothing wrong with; the error is for a fixed offset, which cannot be promised.
func onlineLayout(buffers []Buffer) ([]int64, error) {
	if i := slices.IndexFunc(buffers, func(b Buffer) bool { return b.Fixed }); i >= 0 {
		return nil, fmt.Errorf("pool: buffer %d is fixed at %d, and the online method takes what comes: use another "+
			"method", i, buffers[i].At)
	}
	blocks, members := mergeGroups(buffers)
	type event struct{ slot, block int } // a free has the complement of the block's number, and so comes first
	var events []event
	for i, b := range blocks {
		if b.Size > 0 {
			events = append(events, event{b.Spans[0].From, i}, event{b.Spans[len(b.Spans)-1].To, ^i})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.block, b.block))
	})
	o, offsets := NewOnline(0), make([]int64, len(buffers))
	for _, e := range events {
		if e.block < 0 {
			o.Free(offsets[members[^e.block][0]])
			continue
		}
		at, err := o.Alloc(blocks[e.block].Size, blocks[e.block].Align)
		if err != nil {
			return nil, err
		}
		for _, i := range members[e.block] {
			offsets[i] = at
		}
	}
	return offsets, nil
}
