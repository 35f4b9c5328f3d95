package draft

import "tensile/graph"

// account is what drafts that are made together may still swap to the host. A nil account has no limit.
type account struct {
	left   graph.Bytes
	denied *bool // set when something was not allowed
}

// take takes bytes of the host, or gives some back.
func (a *account) take(b graph.Bytes) {
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
// they have there already. It belongs before any of them is decided about.
func (s *Session) Together(jobs []*Draft) {
	if s.Request.HostBudget == 0 {
		return
	}
	a := &account{s.Request.HostBudget, &s.denied}
	for _, d := range jobs {
		a.take(d.copies * (d.home + d.job.OnHost))
		for storage, n := range d.swapped {
			if n > 0 {
				a.take(d.copies * d.spills[storage])
			}
		}
		d.host = a
	}
}

// Denied reports whether a swap was not made for want of host memory.
func (s *Session) Denied() bool { return s.denied }
