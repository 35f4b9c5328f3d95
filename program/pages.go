package program

// PageRange is page numbers [From, To).
type PageRange struct{ From, To int }

// Pages is a set of pages of an arena: ranges in ascending order that neither overlap nor touch.
type Pages []PageRange

// Count is how many pages there are.
func (p Pages) Count() int {
	n := 0
	for _, r := range p {
		n += r.To - r.From
	}
	return n
}

// Union returns the pages that are in p or in q.
func (p Pages) Union(q Pages) Pages {
	var all Pages
	for len(p) > 0 || len(q) > 0 {
		if len(p) == 0 || len(q) > 0 && q[0].From < p[0].From {
			p, q = q, p
		}
		next := p[0]
		p = p[1:]
		if n := len(all); n > 0 && next.From <= all[n-1].To {
			all[n-1].To = max(all[n-1].To, next.To)
		} else {
			all = append(all, next)
		}
	}
	return all
}

// Without returns the pages of p that are not in q.
func (p Pages) Without(q Pages) Pages {
	var rest Pages
	for _, r := range p {
		for len(q) > 0 && q[0].To <= r.From {
			q = q[1:]
		}
		for _, x := range q {
			if x.From >= r.To {
				break
			}
			if x.From > r.From {
				rest = append(rest, PageRange{r.From, x.From})
			}
			r.From = min(x.To, r.To)
		}
		if r.From < r.To {
			rest = append(rest, r)
		}
	}
	return rest
}

// Contains reports whether all pages of q are in p.
func (p Pages) Contains(q Pages) bool { return len(q.Without(p)) == 0 }
