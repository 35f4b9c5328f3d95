package draft

import "tensile/graph"

// account is what drafts that are made together may still swap to the host. A nil account has no limit.
type account struct {
	left   graph.Bytes
	denied *bool // set when something was not allowed
}

// use takes bytes of the host, or gives some back.
func (a *account) use(b graph.Bytes) {
	if a != nil {
		a.left -= b
	}
}

// allows reports whether there is room for bytes.
func (a *account) allows(b graph.Bytes) bool {
	if a == nil || b <= max(0, a.left) {
		return true
	}
	*a.denied = true
	return false
}

func (a *account) clone() *account {
	if a == nil {
		return nil
	}
	c := *a
	return &c
}

// Together has drafts of all jobs, or of all groups, share what the request's budget of host memory leaves beside what
// they have there already. It belongs before any of them is decided about. Drafts of some jobs, or groups, share the
// part of it that these would need if they swapped all.
func (s *Session) Together(jobs []*Draft) {
	if s.Request.HostBudget == 0 {
		return
	}
	a := &account{s.hostOf(jobs), &s.denied}
	for _, d := range jobs {
		a.use(d.copies * (d.home + d.job.OnHost))
		for storage, n := range d.swapped {
			if n > 0 {
				a.use(d.copies * d.spills[storage])
			}
		}
		d.host = a
	}
}

// hostOf is the part of the budget of host memory that is for some jobs.
func (s *Session) hostOf(jobs []*Draft) graph.Bytes {
	var ours, all, home, theirs graph.Bytes
	count := graph.Bytes(0)
	for _, d := range jobs {
		count += d.copies
		home += d.copies * (d.home + d.job.OnHost)
		for _, b := range d.spills {
			ours += d.copies * b
		}
	}
	if count == graph.Bytes(len(s.Request.Jobs)) {
		return s.Request.HostBudget
	}
	for i, w := range s.wirings {
		theirs += w.home + s.Request.Jobs[i].OnHost
		for _, b := range w.spills {
			all += b
		}
	}
	return home + Portion(max(0, s.Request.HostBudget-theirs), ours, max(1, all))
}

// Denied reports whether a swap was not made for want of host memory.
func (s *Session) Denied() bool { return s.denied }
