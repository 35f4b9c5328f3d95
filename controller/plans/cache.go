package plans

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// Cache keeps plans, so that they are made once for equal jobs on equal devices, whatever the jobs' names and the
// order in which they came. Any goroutine may use it.
type Cache struct {
	// limit is how many commands all programs may have together.
	limit int
	// mu protects the fields below.
	mu      sync.Mutex
	entries map[key]*list.Element
	// recent holds the planSets of entries, the most recently used first.
	recent *list.List
	// size is how many commands all programs have, and one for each entry.
	size int
}

// NewCache returns a store of plans of up to so many commands together, each of which takes some hundred bytes. The
// plans that were not asked for for the longest time are dropped first.
func NewCache(commands int) *Cache {
	return &Cache{limit: commands, entries: make(map[key]*list.Element), recent: list.New()}
}

// key is a digest of all that plans depend on.
type key [sha256.Size]byte

// planSet is what became of a scheduler's request: plans and what their jobs claim, or why there are none.
type planSet struct {
	key     key
	planned *planner.Planned
	// claims has one claim per job. nil: the job claims its arena.
	claims []*memory.Claim
	// err unwraps to scheduler.ErrNoPlan where it is kept. nil: there are plans.
	err error
}

// countCommands is how many commands the programs have.
func (m *planSet) countCommands() (n int) {
	if m.planned == nil {
		return 0
	}
	for _, p := range m.planned.Programs {
		for _, s := range p.Program().Sections() {
			n += len(s.Commands)
		}
	}
	return n
}

// lookUp finds what became of an equal request. nil: none was made.
func (p *Cache) lookUp(k key) *planSet {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[k]
	if e == nil {
		return nil
	}
	p.recent.MoveToFront(e)
	return e.Value.(*planSet)
}

// store keeps what became of a request.
func (p *Cache) store(m *planSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[m.key] != nil {
		return
	}
	p.entries[m.key] = p.recent.PushFront(m)
	for p.size += 1 + m.countCommands(); p.size > p.limit; {
		oldest := p.recent.Back()
		old := p.recent.Remove(oldest).(*planSet)
		delete(p.entries, old.key)
		p.size -= 1 + old.countCommands()
	}
}

// findOrMake finds the plans for a scheduler's request, or makes them. They are made for the jobs in the order of their
// content, so that they are the same whether they are found or not.
func (w *planJob) findOrMake(r scheduler.Request) (*planSet, error) {
	own := func(c Candidate) bool { return c.Spec.Script || c.LastReport != nil }
	if w.Cache == nil || slices.ContainsFunc(w.message.Jobs[:len(r.Jobs)], own) {
		m := w.planWithinBudget(r)
		return m, m.err
	}
	keys := make([]key, len(r.Jobs))
	order := make([]int, len(r.Jobs))
	for i := range r.Jobs {
		keys[i], order[i] = w.candidateKey(&r.Jobs[i], w.message.Jobs[i].Spec.Graph), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	sorted := r
	sorted.Jobs = nil
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %v %v %v %v %v %d %s %d %d %d %v %v %v %+v", w.Device.Identity, w.Device.Align,
		w.Device.Out, w.Device.In,
		w.Device.Sharing, w.Device.Gates, w.Device.Turns, w.Device.Page, r.Policy, r.Budget,
		r.HostBudget, len(r.Jobs), r.Together,
		r.Reports, r.Explain, r.Options)
	for _, i := range order {
		sorted.Jobs = append(sorted.Jobs, r.Jobs[i])
		h.Write(keys[i][:])
	}
	k := key(h.Sum(nil))
	if found := w.Cache.lookUp(k); found != nil {
		return found.forRequest(r, order)
	}
	m := w.planWithinBudget(sorted)
	if m.key = k; m.err == nil || errors.Is(m.err, scheduler.ErrNoPlan) {
		w.Cache.store(m)
	}
	if m.err != nil {
		return nil, m.err
	}
	return m.forRequest(r, order)
}

// candidateKey is a digest of what plans depend on of a job.
func (w *planJob) candidateKey(j *scheduler.Job, digest graph.Digest) key {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %v %d %d %d %v", digest, j.Worth(), j.MaxSwapRate, j.Held, j.Least, j.OnHost,
		j.Measured && w.Device.Loaded != nil)
	hashNumbers(h, j.Latency)
	hashNumbers(h, j.Slack)
	for _, variants := range j.Variants {
		hashNumbers(h, int64(len(variants)))
		for _, v := range variants {
			h.Write([]byte(v.Name))
			hashNumbers(h, []int64{int64(v.Scratch), int64(v.Latency), int64(v.Share)})
		}
	}
	return key(h.Sum(nil))
}

// hashNumbers adds numbers, or a slice of them, to a hash.
func hashNumbers(to hash.Hash, numbers any) {
	if err := binary.Write(to, binary.LittleEndian, numbers); err != nil {
		panic(fmt.Sprintf("controller: %v", err))
	}
}

// forRequest returns the plans for the jobs of a request. The set was made for these jobs in another order, which is
// given.
func (m *planSet) forRequest(r scheduler.Request, order []int) (*planSet, error) {
	over, ok := errors.AsType[*scheduler.OverBudgetError](m.err)
	if ok {
		return nil, &scheduler.OverBudgetError{Need: over.Need, Budget: over.Budget,
			Reason: "by the plans for such jobs"}
	} else if m.err != nil {
		return nil, m.err
	}
	p := *m.planned
	own := &planSet{planned: &p, claims: make([]*memory.Claim, len(order))}
	p.Jobs, p.Programs = make([]scheduler.Scheduled, len(order)), make([]proof.Proven, len(order))
	if p.Expected != nil {
		expected := *p.Expected
		expected.Jobs, expected.Iterations = slices.Clone(expected.Jobs), slices.Clone(expected.Iterations)
		p.Expected = &expected
	}
	for at, i := range order {
		j := &r.Jobs[i]
		p.Jobs[i], own.claims[i] = m.planned.Jobs[at], m.claims[at]
		p.Programs[i] = m.planned.Programs[at].Rename(j.Name, j.Epoch)
		p.Jobs[i].Plan = p.Programs[i].Program().Plan
		if p.Jobs[i].Latencies = scheduler.ColdStart; j.Measured {
			p.Jobs[i].Latencies = scheduler.Updated
		}
		if p.Expected != nil {
			all := m.planned.Expected
			p.Expected.Jobs[i], p.Expected.Iterations[i] = all.Jobs[at], all.Iterations[at]
		}
	}
	return own, nil
}

// planWithinBudget makes plans until what jobs claim by their programs fits the budget. Policies plan with whole pages,
// too, but pack arenas last: an arena that ends in another page needs a second attempt with so much less.
func (w *planJob) planWithinBudget(r scheduler.Request) *planSet {
	budget := r.Budget
	for range maxAttempts {
		p, err := w.findKnownOrPlan(r)
		if _, over := errors.AsType[*scheduler.OverBudgetError](err); over && r.Budget < budget {
			break // the error is about the smaller budget of this attempt
		}
		if err != nil {
			return &planSet{err: err}
		}
		m := &planSet{planned: p}
		var sum memory.Sum
		for i := range p.Programs {
			m.claims = append(m.claims, w.claimOfCandidate(i, p.Programs[i].Program()))
			if c := m.claims[i]; c != nil {
				sum = sum.Add(*c)
			}
		}
		over := sum.Bytes() - budget
		if budget == 0 || !w.sharesMemory() || over <= 0 {
			return m
		}
		r.Budget = max(1, r.Budget-over)
	}
	return &planSet{err: &scheduler.OverBudgetError{Need: budget + w.Page, Budget: budget,
		Reason: fmt.Sprintf("in whole pages of %s", w.Page)}}
}

// maxAttempts is how many times plans are made for one request at most.
const maxAttempts = 3
