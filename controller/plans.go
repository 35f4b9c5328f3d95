package controller

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

	"tensile/graph"
	planproof "tensile/plan/proof" // proof is a type here
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// Plans keeps plans that were made, so that they are made once for equal jobs on equal devices, whatever their names
// and the order in which they came. Any goroutine may use it.
type Plans struct {
	limit int // of commands of all programs
	mu    sync.Mutex
	made  map[key]*list.Element // of makings
	used  *list.List            // most lately first
	size  int
}

// NewPlans returns a store of plans of up to so many commands together, each of which takes some hundred bytes. What
// was not asked for for longest is dropped first.
func NewPlans(commands int) *Plans {
	return &Plans{limit: commands, made: make(map[key]*list.Element), used: list.New()}
}

// key stands for all that plans depend on.
type key [sha256.Size]byte

// making is what became of a request: plans with what their jobs count with, or why there are none.
type making struct {
	key     key
	planned *planner.Planned
	claims  []*Claim
	err     error // unwraps to scheduler.ErrNoPlan
}

// commands is how many the programs have.
func (m *making) commands() (n int) {
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

func (p *Plans) find(k key) *making {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.made[k]
	if e == nil {
		return nil
	}
	p.used.MoveToFront(e)
	return e.Value.(*making)
}

func (p *Plans) keep(m *making) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made[m.key] != nil {
		return
	}
	p.made[m.key] = p.used.PushFront(m)
	for p.size += 1 + m.commands(); p.size > p.limit; {
		oldest := p.used.Back()
		old := p.used.Remove(oldest).(*making)
		delete(p.made, old.key)
		p.size -= 1 + old.commands()
	}
}

// plans makes the plans for a request, or finds them. They are made for the jobs in the order of their content, so that
// they are the same whether they are found or not.
func (w *work) plans(r scheduler.Request) (*making, error) {
	own := func(c Candidate) bool { return c.Spec.Script || c.Last != nil }
	if w.Plans == nil || slices.ContainsFunc(w.plan.Jobs[:len(r.Jobs)], own) {
		m := w.make(r)
		return m, m.err
	}
	keys := make([]key, len(r.Jobs))
	order := make([]int, len(r.Jobs))
	for i := range r.Jobs {
		keys[i], order[i] = w.keyOf(&r.Jobs[i], w.plan.Jobs[i].Spec.Graph), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	sorted := r
	sorted.Jobs = nil
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %v %v %v %v %v %d %s %d %d %d %v %v %v %+v", w.On.Identity, w.On.Align, w.On.Out, w.On.In,
		w.On.Sharing, w.On.Gates, w.On.Turns, w.On.Page, r.Policy, r.Budget, r.HostBudget, len(r.Jobs), r.Together,
		r.Reports, r.Explain, r.Options)
	for _, i := range order {
		sorted.Jobs = append(sorted.Jobs, r.Jobs[i])
		h.Write(keys[i][:])
	}
	k := key(h.Sum(nil))
	if found := w.Plans.find(k); found != nil {
		return found.of(r, order)
	}
	m := w.make(sorted)
	if m.key = k; m.err == nil || errors.Is(m.err, scheduler.ErrNoPlan) {
		w.Plans.keep(m)
	}
	if m.err != nil {
		return nil, m.err
	}
	return m.of(r, order)
}

// keyOf stands for what plans depend on of a job.
func (w *work) keyOf(j *scheduler.Job, digest graph.Digest) key {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %v %d %d %d %v", digest, j.Worth(), j.MaxSwapRate, j.Held, j.Least, j.OnHost,
		j.Measured && w.On.Loaded != nil)
	write(h, j.Latency)
	write(h, j.Slack)
	for _, variants := range j.Variants {
		write(h, int64(len(variants)))
		for _, v := range variants {
			h.Write([]byte(v.Name))
			write(h, []int64{int64(v.Scratch), int64(v.Latency), int64(v.Share)})
		}
	}
	return key(h.Sum(nil))
}

func write(to hash.Hash, numbers any) {
	if err := binary.Write(to, binary.LittleEndian, numbers); err != nil {
		panic(fmt.Sprintf("controller: %v", err))
	}
}

// of returns the plans for the jobs of a request, of which they were made for an order.
func (m *making) of(r scheduler.Request, order []int) (*making, error) {
	over, ok := errors.AsType[*scheduler.OverBudgetError](m.err)
	if ok {
		return nil, &scheduler.OverBudgetError{Need: over.Need, Budget: over.Budget, Why: "by the plans for such jobs"}
	} else if m.err != nil {
		return nil, m.err
	}
	p := *m.planned
	own := &making{planned: &p, claims: make([]*Claim, len(order))}
	p.Jobs, p.Programs = make([]scheduler.Scheduled, len(order)), make([]planproof.Proven, len(order))
	if p.Expected != nil {
		expected := *p.Expected
		expected.Jobs, expected.Iterations = slices.Clone(expected.Jobs), slices.Clone(expected.Iterations)
		p.Expected = &expected
	}
	for at, i := range order {
		j := &r.Jobs[i]
		p.Jobs[i], own.claims[i] = m.planned.Jobs[at], m.claims[at]
		p.Programs[i] = m.planned.Programs[at].As(j.Name, j.Epoch)
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

// make has plans made until what jobs claim by their programs fits the budget. Policies reckon with whole pages, too,
// but pack arenas last: one that ends in another page needs a second attempt with so much less.
func (w *work) make(r scheduler.Request) *making {
	budget := r.Budget
	for range maxAttempts {
		p, err := w.made(r)
		if _, over := errors.AsType[*scheduler.OverBudgetError](err); over && r.Budget < budget {
			break // it is of the attempt
		}
		if err != nil {
			return &making{err: err}
		}
		m := &making{planned: p}
		var sum Together
		for i := range p.Programs {
			m.claims = append(m.claims, w.claim(i, p.Programs[i].Program()))
			if c := m.claims[i]; c != nil {
				sum = sum.With(*c)
			}
		}
		over := sum.Bytes() - budget
		if budget == 0 || !w.shares() || over <= 0 {
			return m
		}
		r.Budget = max(1, r.Budget-over)
	}
	return &making{err: &scheduler.OverBudgetError{Need: budget + w.Page, Budget: budget,
		Why: fmt.Sprintf("in whole pages of %s", w.Page)}}
}

// maxAttempts is how often at most plans are made for one request.
const maxAttempts = 3
