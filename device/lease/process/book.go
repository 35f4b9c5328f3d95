package process

import (
	"cmp"
	"slices"
	"time"

	"tensile/device/lease"
)

// book is what a client knows of its jobs: enough to tell a lease that knows nothing of them. It goes by what the
// jobs say, as the lease does: a job counts with what it was granted until it says that it holds less.
type book struct {
	client   string
	jobs     map[lease.Job]*entry
	capacity *lease.Capacity
}

// entry is a job of a book.
type entry struct {
	standing
	joining lease.Join  // as it was asked
	asking  *lease.Want // not granted yet
	ticks   int         // for which it has waited for an answer
	since   time.Time   // the first of them
}

// tick counts how long jobs wait, and reports whether one has waited so long that the lease may hang.
func (b *book) tick(now time.Time) (doubtful bool) {
	for _, e := range b.jobs {
		if e.Joined && e.asking == nil {
			e.ticks = 0
			continue
		}
		if e.ticks++; e.ticks == 1 {
			e.since = now
		}
		doubtful = doubtful || e.ticks%patience == 0
	}
	return doubtful
}

func newBook(client string) *book { return &book{client: client, jobs: make(map[lease.Job]*entry)} }

// told notes an input and returns what the lease is to be told. Nothing is to be told of an input that makes no
// sense: that one is refused.
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
		b.jobs[job] = &entry{standing: standing{Rejoin: lease.Rejoin{Join: *t.Join}}, joining: *t.Join}
	case e == nil:
		return out, &lease.Output{Kind: lease.Refuse, Job: job, Why: "it has not joined"}
	case t.Want != nil:
		e.want(*t.Want)
	case t.Passed != nil:
		if t.Passed.Seen == e.Ask && t.Passed.Hold >= 0 {
			e.Hold = min(e.Hold, t.Passed.Hold)
		}
	default:
		delete(b.jobs, job)
	}
	return request{Told: &t}, nil
}

func (e *entry) want(w lease.Want) {
	switch {
	case !e.Joined:
	case w.Ask > e.Ask:
		e.asking = &w
		if e.Seniority > 0 {
			e.Rest = w.Rest
		}
	case w.Hold >= 0: // it was granted already
		e.Hold = min(e.Hold, w.Hold)
	}
}

// heard notes an answer and returns what the job is to be told; false: nothing, since it comes late or twice.
func (b *book) heard(a answer) (lease.Output, bool) {
	e := b.jobs[a.Output.Job]
	if e == nil {
		return lease.Output{}, false
	}
	e.ticks = 0
	switch w := e.asking; {
	case a.Output.Kind == lease.Refuse && !e.Joined:
		delete(b.jobs, a.Output.Job)
	case a.Output.Kind != lease.Grant:
	case !e.Joined && a.Output.Ask == e.Ask:
		e.Joined, e.Hold = true, e.Base
	case e.Joined && w != nil && a.Output.Ask == w.Ask:
		e.Ask, e.Hold, e.Rest, e.asking = w.Ask, max(e.Hold, w.Hold), w.Rest, nil
		e.Group, e.InSnapshot = w.Group, w.Snapshot
		if w.First {
			e.Seniority = a.Output.Seniority
		}
		if w.Last {
			e.Seniority = 0
		}
	default:
		return lease.Output{}, false // of an earlier stay, or sent again
	}
	return a.Output, true
}

// requests are what a new connection is told first: all that the lease must know, and what it was asked already.
func (b *book) requests() []request {
	entries := make([]*entry, 0, len(b.jobs))
	for _, e := range b.jobs {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(x, y *entry) int { return cmp.Compare(x.Job, y.Job) })
	h := &hello{Version: version, Client: b.client, Capacity: b.capacity}
	out := []request{{Hello: h}}
	for _, e := range entries {
		h.Jobs = append(h.Jobs, e.standing)
		if !e.Joined {
			out = append(out, request{Told: &told{Join: &e.joining}})
		} else if e.asking != nil {
			out = append(out, request{Told: &told{Want: e.asking}})
		}
	}
	return out
}
