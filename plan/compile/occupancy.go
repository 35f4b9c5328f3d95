package compile

import (
	"slices"
	"sort"

	"tensile/graph"
)

// occupancy says who used each byte of a region last. Ranges are disjoint and ascending. They lie in pieces of bounded
// length, so that a change moves few of them however many there are.
type occupancy struct {
	pieces [][]occupied // none is empty
}

type occupied struct {
	from, to graph.Bytes
	by       *uses
}

// longestPiece is the length at which a piece is divided.
const longestPiece = 256

// occupy gives [from, to) to by and adds the accesses of everyone who was there before to n.
func (o *occupancy) occupy(from, to graph.Bytes, by *uses, n *need) {
	at := max(0, sort.Search(len(o.pieces), func(i int) bool { return o.pieces[i][0].from > from })-1)
	if at < len(o.pieces) && o.pieces[at][len(o.pieces[at])-1].to <= from && at+1 < len(o.pieces) {
		at++
	}
	given := make([]occupied, 0, 3)
	var tail occupied
	place := 0
	for i := at; i < len(o.pieces); i++ {
		piece := o.pieces[i]
		first := sort.Search(len(piece), func(k int) bool { return piece[k].to > from })
		last := first
		for ; last < len(piece) && piece[last].from < to; last++ {
			r := piece[last]
			n.toWrite(r.by)
			if r.from < from {
				given = append(given, occupied{r.from, from, r.by})
			}
			if r.to > to {
				tail = occupied{to, r.to, r.by}
			}
		}
		if i == at {
			place = first
		}
		o.pieces[i] = slices.Delete(piece, first, last)
		if last < len(piece) {
			break
		}
	}
	given = append(given, occupied{from, to, by})
	if tail.by != nil {
		given = append(given, tail)
	}
	if len(o.pieces) == 0 {
		o.pieces = append(o.pieces, nil)
	}
	o.pieces[at] = slices.Insert(o.pieces[at], place, given...)
	o.tidy(at)
}

// tidy takes empty pieces after a changed one away, and divides that if it has become too long.
func (o *occupancy) tidy(at int) {
	next := at + 1
	for next < len(o.pieces) && len(o.pieces[next]) == 0 {
		next++
	}
	if next > at+1 {
		o.pieces = slices.Delete(o.pieces, at+1, next)
	}
	if piece := o.pieces[at]; len(piece) > longestPiece {
		half := slices.Clone(piece[len(piece)/2:])
		o.pieces[at] = piece[:len(piece)/2]
		o.pieces = slices.Insert(o.pieces, at+1, half)
	}
}
