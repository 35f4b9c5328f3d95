package controller

import (
	"cmp"
	"fmt"
	"sync"

	"tensile/graph"
	"tensile/wire"
)

const (
	maxAsked     = 128       // the most requests of one user that wait for their answers, and as many for a refusal
	maxAskedSize = 256 << 20 // the most bytes that these have, with their graphs unpacked
)

// askers bounds the requests of each user, so that nobody's keep others from an answer. The zero value is ready, for
// any goroutine.
type askers struct {
	mu sync.Mutex
	of map[string]*asker
}

// asker is a user with requests that wait.
type asker struct {
	// all guards the fields that follow.
	all                      *askers
	name                     string
	waiting, bytes, refusing int

	// work is held while a request of this user is read or its answer written: one at a time.
	work sync.Mutex
}

// ask is a request that waits for its answer.
type ask struct {
	user    *asker
	bytes   int
	refusal string // is its answer; "": the request is taken
}

// enter takes in a request of a user, or refuses it, which the user is to be told. nil: as many refusals as may wait to
// be told do, and this one is not.
func (a *askers) enter(user string, bytes int) *ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.of[user]
	if u == nil {
		u = &asker{all: a, name: user}
	}
	switch {
	case u.waiting < maxAsked && u.bytes+bytes <= maxAskedSize:
		if a.of == nil {
			a.of = make(map[string]*asker)
		}
		a.of[user] = u
		u.waiting++
		u.bytes += bytes
		return &ask{user: u, bytes: bytes}
	case u.refusing < maxAsked:
		u.refusing++
		return &ask{user: u, refusal: fmt.Sprintf("%d requests of %s with %s wait for their answers, and no more are "+
			"taken: wait for some", u.waiting, cmp.Or(user, "administrators"), graph.Bytes(u.bytes))}
	}
	return nil
}

// grow counts bytes of a graph for a request, or returns why the user may not have them.
func (q *ask) grow(bytes int) error {
	q.user.all.mu.Lock()
	defer q.user.all.mu.Unlock()
	if q.user.bytes+bytes > maxAskedSize {
		return fmt.Errorf("the graphs of requests that wait for their answers would have more than %s: submit fewer "+
			"networks at once", graph.Bytes(maxAskedSize))
	}
	q.user.bytes += bytes
	q.bytes += bytes
	return nil
}

// leave ends a request.
func (q *ask) leave() {
	q.user.all.mu.Lock()
	defer q.user.all.mu.Unlock()
	if q.refusal != "" {
		q.user.refusing--
		return
	}
	q.user.waiting--
	q.user.bytes -= q.bytes
	if q.user.waiting == 0 {
		delete(q.user.all.of, q.user.name)
	}
}

// serve answers a request of a user. It does not wait for anything, so that requests of others come next.
func (r *runner) serve(user string, data []byte, reply func([]byte)) {
	q := r.askers.enter(user, len(data))
	if q == nil {
		return
	}
	r.background.Go(func() {
		defer q.leave()
		if q.refusal == "" {
			reply(r.answer(user, data, q))
			return
		}
		r.logIgnored("requests of "+user, "a request is refused: "+q.refusal)
		reply(wire.Encode(wire.Answer{Error: q.refusal}))
	})
}

// answer returns the answer to a request of a user, as a message.
func (r *runner) answer(user string, data []byte, by *ask) []byte {
	by.user.work.Lock()
	defer by.user.work.Unlock()
	q, err := wire.DecodeAs[wire.Request](data)
	if err != nil {
		r.logIgnored("requests", fmt.Sprintf("a request is refused: %v", err))
		return wire.Encode(wire.Answer{Error: err.Error()})
	}
	in, known := r.readRequest(user, &q, by)
	if known == nil {
		by.user.work.Unlock()
		a := r.askMachine(&q, in)
		by.user.work.Lock()
		known = &a
	}
	return encodeAnswer(&q, known)
}

// maxPage is the most jobs of an answer to a request for all.
const maxPage = 2000

// encodeAnswer encodes an answer. Of one with all jobs it leaves out those after a page.
func encodeAnswer(q *wire.Request, a *wire.Answer) []byte {
	if q.Verb != wire.Jobs {
		text := wire.Encode(*a)
		if len(text) > wire.MaxMessage {
			text = wire.Encode(wire.Answer{Error: fmt.Sprintf("the answer has %d bytes, and %d at most: tensile "+
				"jobs lists what has changed", len(text), wire.MaxMessage)})
		}
		return text
	}
	page := *a
	for n := min(maxPage, len(a.Jobs)); ; n /= 2 {
		page.Jobs, page.More = a.Jobs[:n], n < len(a.Jobs)
		if text := wire.Encode(page); len(text) <= wire.MaxMessage || n <= 1 {
			return text
		}
	}
}
