package bench

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// result is a scene as all contenders had it, in the order of the repeats.
type result struct {
	scene      PaperScene
	stages     []*stage
	contenders []contender
	outcomes   [][]*outcome // per contender, per repeat
}

func newResult(scene PaperScene, contenders []contender, stages []*stage) *result {
	r := &result{scene: scene, stages: stages, contenders: contenders, outcomes: make([][]*outcome, len(contenders))}
	for k := range r.outcomes {
		r.outcomes[k] = make([]*outcome, len(stages))
	}
	return r
}

func (r *result) prepare() error {
	for _, s := range r.stages {
		if err := s.prepare(); err != nil {
			return err
		}
	}
	return nil
}

// measure has a contender train the jobs on all stages, within the budget of the first.
func (r *result) measure(k int) error {
	c := &r.contenders[k]
	budget, err := r.stages[0].budget(c)
	for i, s := range r.stages {
		if err == nil {
			r.outcomes[k][i], err = s.measure(c, budget)
		}
	}
	return err
}

// all has all contenders train the jobs of all scenes. The scenes with most jobs come first, so that no processor is
// left with much to do at the end.
func (m *measuring) all(results []*result) error {
	for _, r := range results {
		m.work += float64(len(r.stages) * len(r.contenders) * r.scene.jobs())
	}
	results = slices.Clone(results)
	slices.SortStableFunc(results, func(a, b *result) int { return cmp.Compare(b.scene.jobs(), a.scene.jobs()) })
	for _, r := range results {
		m.do(0, r.prepare, func() {
			var searching []int // one after the other: what the first tries helps the others
			for k := range r.contenders {
				if r.contenders[k].goal == leastMemory {
					searching = append(searching, k)
				}
			}
			m.inTurn(r, searching)
			for k := range r.contenders {
				if r.contenders[k].goal != leastMemory {
					m.inTurn(r, []int{k})
				}
			}
		})
	}
	m.waiting.Wait()
	return context.Cause(m.ctx)
}

// inTurn has contenders of a scene train the jobs, one after the other.
func (m *measuring) inTurn(r *result, contenders []int) {
	if len(contenders) > 0 {
		m.do(float64(len(r.stages)*r.scene.jobs()), func() error { return r.measure(contenders[0]) },
			func() { m.inTurn(r, contenders[1:]) })
	}
}

// measuring does work on all processors.
type measuring struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	slots    chan struct{}
	waiting  sync.WaitGroup
	progress func(float64)

	mu         sync.Mutex
	done, work float64
}

// do has work done when a processor is free, and then what follows from it. The first error ends all.
func (m *measuring) do(weight float64, work func() error, then func()) {
	m.waiting.Go(func() {
		select {
		case m.slots <- struct{}{}:
		case <-m.ctx.Done():
			return
		}
		err := work()
		<-m.slots
		if err != nil {
			m.cancel(err)
			return
		}
		m.mu.Lock()
		m.done += weight
		if m.progress != nil {
			m.progress(m.done / max(1, m.work))
		}
		m.mu.Unlock()
		if then != nil {
			then()
		}
	})
}
