package program

import (
	"fmt"
	"slices"
	"sort"
)

// PageRange is the pages [From, To) of an arena. Page n is the bytes from n times the page's size on, one page long;
// the arena may end within its last page.
type PageRange struct{ From, To int }

func (r PageRange) String() string {
	if r.To == r.From+1 {
		return fmt.Sprint(r.From)
	}
	return fmt.Sprintf("%d-%d", r.From, r.To-1)
}

// Pages is a set of pages: ranges that are not empty, ascending, disjoint and not touching, so that equal sets are
// equal slices. The zero value is the empty set. Operations leave their operands as they are and may share memory with
// them.
type Pages []PageRange

// Count returns the number of pages.
func (p Pages) Count() int {
	n := 0
	for _, r := range p {
		n += r.To - r.From
	}
	return n
}

// Union returns the pages of p, of q, or of both.
func (p Pages) Union(q Pages) Pages {
	switch {
	case len(p) == 0:
		return q
	case len(q) == 0:
		return p
	}
	union := make(Pages, 0, len(p)+len(q))
	for len(p) > 0 || len(q) > 0 {
		next := &p
		if len(p) == 0 || len(q) > 0 && q[0].From < p[0].From {
			next = &q
		}
		union = union.with((*next)[0])
		*next = (*next)[1:]
	}
	return union
}

// with adds a range that begins nowhere before the last one. It changes p.
func (p Pages) with(r PageRange) Pages {
	if n := len(p); n > 0 && r.From <= p[n-1].To {
		p[n-1].To = max(p[n-1].To, r.To)
		return p
	}
	return append(p, r)
}

// Without returns the pages of p that are not in q.
func (p Pages) Without(q Pages) Pages {
	var left Pages
	for _, r := range p {
		for ; len(q) > 0 && q[0].To <= r.From; q = q[1:] {
		}
		for _, s := range q {
			if s.From >= r.To {
				break
			}
			if r.From < s.From {
				left = append(left, PageRange{r.From, s.From})
			}
			r.From = s.To
		}
		if r.From < r.To {
			left = append(left, r)
		}
	}
	return left
}

// Contains reports whether all pages of q are in p.
func (p Pages) Contains(q Pages) bool {
	for _, r := range q {
		if at := p.from(r.From); at == len(p) || p[at].From > r.From || p[at].To < r.To {
			return false
		}
	}
	return true
}

// from returns the first range that ends after a page; len(p) if none does.
func (p Pages) from(page int) int {
	return sort.Search(len(p), func(i int) bool { return p[i].To > page })
}

// PagesOf returns the set of ranges in any order, which it sorts. They may overlap, and none is empty.
func PagesOf(ranges []PageRange) Pages {
	slices.SortFunc(ranges, func(a, b PageRange) int { return a.From - b.From })
	var p Pages
	for _, r := range ranges {
		p = p.with(r)
	}
	return p
}
