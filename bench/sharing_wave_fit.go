package bench

import (
	"slices"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/compile"
	"tensile/scheduler/planner"
)

// memorized is what a job needs by which it is known whether jobs fit together.
type memorized struct {
	streamed   *streamed
	base, peak graph.Bytes // by gates
	page       graph.Bytes
}

// memory is what a job needs that moves nothing, planned once: who looks for the largest batches asks again.
func (b *sharingBench) memory(device string, n trained) (*memorized, error) {
	key := memoryKey{device, arenaKey{n.model, n.optimizer, n.batch}}
	b.mutex.Lock()
	m, known := b.memories[key]
	b.mutex.Unlock()
	if known {
		return m, nil
	}
	m, err := b.planned(device, n)
	if err != nil {
		return nil, err
	}
	b.mutex.Lock()
	b.memories[key] = m
	b.mutex.Unlock()
	return m, nil
}

// memoryKey is what decides how much memory a job needs.
type memoryKey struct {
	device string
	arenaKey
}

// planned plans a job.
func (b *sharingBench) planned(device string, n trained) (*memorized, error) {
	tasks, err := task.Load([]string{n.model}, n.settings())
	if err != nil {
		return nil, err
	}
	d := sim.New(sharingFacts(device), sim.Options{})
	r, err := planner.Describe(d, planner.Roofline(d.Facts())).FirstRequest(tasks)
	if err != nil {
		return nil, err
	}
	r.Policy, r.Budget = "none-live", 0
	planned, err := planner.Plan(b.ctx, r)
	if err != nil {
		return nil, err
	}
	p := planned.Programs[0].Program()
	groups := compile.Divide(p, d.Page(), 0)
	return &memorized{streamed: streamedOf(p.Graph, p.Plan), page: d.Page(),
		base: graph.Bytes(groups.Base.Count()) * d.Page(), peak: graph.Bytes(groups.Peak()) * d.Page()}, nil
}

// fit reports whether jobs fit a device's memory in a way. Splits are in bytes: the jobs fit if they do by one of them.
func fit(way string, capacity graph.Bytes, splits []int64, jobs ...*memorized) bool {
	if way == byGates {
		var bases, spread graph.Bytes
		for _, j := range jobs {
			bases, spread = bases+j.base, max(spread, j.peak-j.base)
		}
		return bases+spread <= capacity/jobs[0].page*jobs[0].page
	}
	var all []*streamed
	for _, j := range jobs {
		all = append(all, j.streamed)
	}
	return slices.ContainsFunc(splits, func(split int64) bool {
		return round(all, int64(capacity), split).Fits
	})
}

// splitsOf are the split sizes of a way.
func splitsOf(way string) (splits []int64) {
	if way == byHalves {
		return []int64{1 << 50}
	}
	for _, gb := range waveSplitSizes {
		splits = append(splits, int64(gb)*1e9)
	}
	return splits
}

// largestCopies returns the largest batch of some copies that fit in a way.
func (b *sharingBench) largestCopies(device, way string, splits []int64, n trained, alone int) (int, error) {
	return largest(alone, way == byWaterwave, func(batch int) (bool, error) {
		n.batch = batch
		m, err := b.memory(device, n)
		if err != nil {
			return false, err
		}
		return fit(way, percent(device, 100), splits, slices.Repeat([]*memorized{m}, max(1, n.copies))...), nil
	})
}

// largest returns the largest number up to some that fits, 0 if none was found. If there are dips, a number may fit
// though less does not, as with blocks that an allocator places one after the other: then every 50th part of the most
// is tried from the top, too.
func largest(most int, dips bool, fits func(int) (bool, error)) (int, error) {
	low, high := 0, most+1
	for low+1 < high {
		at := (low + high) / 2
		if first := max(1, most*9/10); low == 0 && first < high { // most of it fits
			at = first
		}
		ok, err := fits(at)
		if err != nil {
			return 0, err
		}
		if ok {
			low = at
		} else {
			high = at
		}
	}
	for parts := 50; dips && most*parts/50 > low; parts-- {
		if ok, err := fits(most * parts / 50); ok || err != nil {
			return most * parts / 50, err
		}
	}
	return low, nil
}
