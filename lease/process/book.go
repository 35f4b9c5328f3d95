package process

import (
	"cmp"
	"slices"

	"tensile/lease"
)

// book is what a client knows of its jobs: enough to tell a lease that knows nothing of them.
type book struct {
	client   string
	jobs     map[lease.Job]*entry
	stays    int64
	capacity *lease.Capacity
}

// entry is a job of a book.
type entry struct {
	standing
	asking *lease.Want // not granted yet
}

func newBook(client string) *book { return &book{client: client, jobs: make(map[lease.Job]*entry)} }

// told notes an input and returns what the lease is to be told. Nothing is to be told of an input that makes no sense:
// that one is refused.
func (b *book) told(in lease.Input) (out request, refused *lease.Output) {
	if c := in.Capacity; c != nil {
		if b.capacity == nil || c.Number >= b.capacity.Number {
			b.capacity = new(*c)
		}
		return request{Capacity: b.capacity}, nil
	}
	t := told{Join: in.Join, Want: in.Want, Passed: in.Passed, Leave: in.Leave}
	job, err := t.job()
	if err != nil {
		return out, &lease.Output{Kind: lease.Refuse, Why: err.Error()}
	}
	e := b.jobs[job]
	switch {
	case t.Join != nil && e != nil:
		return out, &lease.Output{Kind: lease.Refuse, Job: job, Why: "it has asked to join already"}
	case t.Join != nil:
		b.stays++
		e = &entry{standing: standing{Rejoin: lease.Rejoin{Join: *t.Join}, Stay: b.stays}}
		b.jobs[job] = e
	case e == nil:
		return out, &lease.Output{Kind: lease.Refuse, Job: job, Why: "it has not joined"}
	case t.Want != nil:
		e.asking = new(*t.Want)
		if e.Seniority > 0 {
			e.Rest = t.Want.Rest
		}
	case t.Passed != nil:
		if t.Passed.Hold >= 0 {
			e.Hold = min(e.Hold, t.Passed.Hold)
		}
	default:
		delete(b.jobs, job)
	}
	t.Stay, t.Seen = e.Stay, e.Seen
	return request{Told: &t}, nil
}

// heard notes an answer and returns what the job is to be told; false: nothing, since it comes late or twice.
func (b *book) heard(a answer) (lease.Output, bool) {
	e := b.jobs[a.Output.Job]
	if e == nil || e.Stay != a.Stay {
		return lease.Output{}, false
	}
	switch a.Output.Kind {
	case lease.Grant:
		if a.Count != e.Seen+1 {
			return lease.Output{}, false
		}
		e.Seen++
		switch w := e.asking; {
		case !e.Joined:
			e.Joined, e.Hold = true, e.Base
		case w == nil:
			return lease.Output{}, false // the lease would have to be wrong
		default:
			e.Hold, e.Rest, e.asking = max(e.Hold, w.Hold), w.Rest, nil
			if w.First {
				e.Seniority = a.Output.Seniority
			}
			if w.Last {
				e.Seniority = 0
			}
		}
	case lease.Refuse:
		if !e.Joined {
			delete(b.jobs, a.Output.Job)
		}
	}
	return a.Output, true
}

// requests are what a new connection is told first: all that the lease must know, and what it was asked already.
func (b *book) requests() []request {
	entries := make([]*entry, 0, len(b.jobs))
	for _, e := range b.jobs {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(x, y *entry) int { return cmp.Compare(x.Stay, y.Stay) })
	h := &hello{Version: version, Client: b.client, Capacity: b.capacity}
	out := []request{{Hello: h}}
	for _, e := range entries {
		h.Jobs = append(h.Jobs, e.standing)
		if !e.Joined {
			out = append(out, request{Told: &told{Stay: e.Stay, Seen: e.Seen, Join: &e.Join}})
		} else if e.asking != nil {
			out = append(out, request{Told: &told{Stay: e.Stay, Seen: e.Seen, Want: e.asking}})
		}
	}
	return out
}
