package superneurons

import (
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/scheduler"
)

// machine is what a plan is made for.
type machine struct {
	job     *scheduler.Job
	out, in cost.Link
	align   graph.Bytes
	count   func(int) // is told of the work
}

// memory goes through the steps of an iteration with so many bytes, and writes down the moves.
type memory struct {
	*network
	machine
	options  Options
	capacity graph.Bytes
	grows    bool // the capacity, where a step needs more
	steps    []step
	choice   []int               // per step: the variant
	early    []bool              // per storage: copied out as soon as it is made, since the cache evicts it
	bytes    []graph.Bytes       // per storage, rounded up
	touched  [][]graph.StorageID // per step
	dies     [][]graph.StorageID // per step: what is not used after it, or made again before it is
	uses     [][]int32           // per storage: the steps that touch it, ascending
	windows  []window

	resident []bool
	device   []int // per storage: the version there
	host     []int // per storage: the version on the host, or absent
	used     graph.Bytes
	moves    []plan.Move
	free     []graph.Bytes // per step: what its storages leave
	final    []int         // per storage: its last version
	evicted  []int         // per storage: the step before which the cache evicted it last, or absent
	cache    lru
	offloads []offload         // under way, by their ends
	fetches  []graph.StorageID // to be prefetched as soon as they fit

	now, outFree, inFree time.Duration
	arrives              []time.Duration // per storage
	sent                 []time.Duration // per storage: the end of its last copy out
}

// offload is a copy out after which a storage leaves (3.3.1).
type offload struct {
	storage graph.StorageID
	until   int // the last forward step that reads it
	end     time.Duration
}

// window is the time from a checkpoint's backward pass on, or from the first backward op on, to the end of that of the
// checkpoint before: what that one needs is prefetched when it begins (3.3.1).
type window struct {
	from, to int // steps
	storages []graph.StorageID
}

// newMemory prepares a walk over the steps.
func newMemory(n *network, m machine, o Options, steps []step) *memory {
	storages := len(n.g.Storages)
	r := &memory{network: n, machine: m, options: o, steps: steps, choice: make([]int, len(steps)),
		early: make([]bool, storages), bytes: make([]graph.Bytes, storages),
		touched: make([][]graph.StorageID, len(steps)), dies: make([][]graph.StorageID, len(steps)),
		uses: make([][]int32, storages), free: make([]graph.Bytes, len(steps)), final: n.g.LastVersions()}
	for s := range r.bytes {
		r.bytes[s] = scheduler.RoundUp(n.g.Storages[s].Bytes, m.align)
	}
	for k, s := range steps {
		r.touched[k] = n.touches(s)
		for _, x := range r.touched[k] {
			r.uses[x] = append(r.uses[x], int32(k))
		}
		r.choice[k] = m.leastScratch(s.op)
	}
	m.count(8 * len(steps))
	r.findDeaths()
	r.findWindows()
	return r
}

// leastScratch returns the variant of an op that needs the least scratch, the fastest of these.
func (m *machine) leastScratch(op graph.OpID) int {
	best := 0
	for k := range m.variants(op) {
		a, b := m.job.Variant(op, k), m.job.Variant(op, best)
		if a.Scratch < b.Scratch || a.Scratch == b.Scratch && a.Latency < b.Latency {
			best = k
		}
	}
	return best
}

// variants is the number of an op's variants.
func (m *machine) variants(op graph.OpID) int {
	if m.job.Variants == nil {
		return 1
	}
	return len(m.job.Variants[op])
}

// findDeaths finds what each step is the last to use (3.2).
func (r *memory) findDeaths() {
	for x, uses := range r.uses {
		s := graph.StorageID(x)
		if r.g.Storages[s].Role.Persistent() {
			continue
		}
		for i, k := range uses {
			if i+1 == len(uses) || r.makesFirst(r.steps[uses[i+1]], s) {
				r.dies[k] = append(r.dies[k], s)
			}
		}
	}
}

// findWindows finds where the backward passes of checkpoints begin and end.
func (r *memory) findWindows() {
	layer := absent
	begin := absent // the slot of the first backward step
	for k, s := range r.steps {
		if s.want >= 0 || int(s.op) < r.forward {
			continue
		}
		if begin == absent {
			begin = k
			r.windows = append(r.windows, window{from: k, to: k})
		}
		l := r.of[s.op]
		if l >= 0 && l != layer && (r.conv[l] || r.fc[l]) {
			layer = l
			if k > begin {
				r.windows = append(r.windows, window{from: k, to: k})
			}
		}
		if last := len(r.windows) - 1; l >= 0 && l == layer {
			for i := max(0, last-1); i <= last; i++ {
				r.windows[i].to = k
			}
		}
	}
	if len(r.windows) > 0 {
		r.windows[len(r.windows)-1].to = len(r.steps) - 1
	}
	for i := range r.windows {
		w := &r.windows[i]
		for k := w.from + 1; k <= w.to; k++ {
			for _, x := range r.touched[k] {
				if !r.pinned(x) && int(r.uses[x][0]) < w.from && !slices.Contains(w.storages, x) {
					w.storages = append(w.storages, x)
				}
			}
		}
		r.count(len(w.storages))
	}
}

// pinned reports whether a storage stays on the device as long as it lives: it is in nobody's list.
func (r *memory) pinned(s graph.StorageID) bool {
	role := r.g.Storages[s].Role
	return role.Persistent() || role == graph.Output
}

// walk goes through an iteration.
func (r *memory) walk() error {
	storages := len(r.g.Storages)
	r.resident, r.used, r.moves = make([]bool, storages), 0, r.moves[:0]
	r.device, r.host = slices.Repeat([]int{absent}, storages), slices.Repeat([]int{absent}, storages)
	r.evicted, r.cache = slices.Repeat([]int{absent}, storages), newLRU(storages)
	r.offloads, r.fetches = nil, nil
	r.now, r.outFree, r.inFree = 0, 0, 0
	r.arrives, r.sent = make([]time.Duration, storages), make([]time.Duration, storages)
	for i := range r.g.Storages {
		s := &r.g.Storages[i]
		if s.Role.FromHost() {
			r.host[i] = 0
		}
		if s.Role.Persistent() && len(r.uses[i]) > 0 {
			r.resident[i], r.device[i] = true, 0
			r.used += r.bytes[i]
		}
	}
	windows := r.windows
	for k := range r.steps {
		r.count(16 + 4*len(r.touched[k]))
		r.freeOffloaded(k)
		if err := r.prepare(k); err != nil {
			return err
		}
		if len(windows) > 0 && windows[0].from == k {
			r.request(windows[0])
			windows = windows[1:]
		}
		r.prefetch(k)
		r.execute(k)
	}
	return nil
}

// freeOffloaded frees before step k what was offloaded by now, once no layer of the forward pass needs it (3.3.1). What
// the backward pass needs already stays.
func (r *memory) freeOffloaded(k int) {
	r.offloads = slices.DeleteFunc(r.offloads, func(o offload) bool {
		if o.until >= k {
			return false
		}
		wanted := slices.Contains(r.touched[k], o.storage)
		if !wanted && o.end <= r.now {
			r.leave(o.storage, k-1)
			return true
		}
		return wanted
	})
}

// checkpoint reports whether a storage is offloaded as soon as it is made: an output of a convolution (3.3.1). Where
// layers are executed again, joins and forks are as well: with these on the device the peak would not be that of one
// layer (3.4).
func (r *memory) checkpoint(x graph.StorageID) bool {
	return r.convolved(x) || !r.options.NoRecompute && r.isKept(x)
}

// offload begins the copy out of what a checkpoint has made in step k: if there is no cache, or if that will evict it.
func (r *memory) offload(x graph.StorageID, k int) {
	if uses := r.uses[x]; !r.checkpoint(x) || int(uses[len(uses)-1]) < r.forward {
		return
	}
	switch {
	case r.early[x]:
		r.send(x, k)
	case r.options.NoCache && !r.options.NoOffload:
		r.send(x, k)
		behind, _ := slices.BinarySearch(r.uses[x], int32(r.forward))
		r.offloads = append(r.offloads, offload{x, int(r.uses[x][behind-1]), r.sent[x]})
	}
}

// prepare makes room for what a step touches and brings in what is absent.
func (r *memory) prepare(k int) error {
	s := r.steps[k]
	need := r.scratch(k)
	for _, x := range r.touched[k] {
		if !r.resident[x] {
			need += r.bytes[x]
		}
	}
	for r.used+need > r.capacity && r.makeRoom(k) {
	}
	if r.used+need > r.capacity {
		if !r.grows {
			return &scheduler.OverBudgetError{Need: r.used + need, Budget: r.capacity,
				Reason: fmt.Sprintf("%s of job %s needs that beside parameters and what cannot leave",
					r.g.Ops[s.op].Name, r.job.Name)}
		}
		r.capacity = r.used + need
	}
	for _, x := range r.touched[k] {
		if r.resident[x] {
			continue
		}
		if r.makesFirst(s, x) {
			r.resident[x] = true
			r.used += r.bytes[x]
		} else {
			r.fetch(x, k)
		}
	}
	return nil
}

func (r *memory) scratch(k int) graph.Bytes {
	return scheduler.RoundUp(r.job.Variant(r.steps[k].op, r.leastScratch(r.steps[k].op)).Scratch, r.align)
}

// makeRoom has something leave before step k. It reports false if nothing can.
func (r *memory) makeRoom(k int) bool {
	for i, o := range r.offloads {
		if o.until < k { // wait for a copy that is under way; settle has left none that this step touches
			r.now = max(r.now, o.end)
			r.leave(o.storage, k-1)
			r.offloads = slices.Delete(r.offloads, i, i+1)
			return true
		}
	}
	if r.options.NoOffload || r.options.NoCache {
		return false
	}
	victim := r.cache.leastRecent(func(x graph.StorageID) bool { return !slices.Contains(r.touched[k], x) })
	if victim < 0 {
		return false
	}
	r.evict(victim, k)
	return true
}

// evict offloads the least recently used storage that no step locks (algorithm 2).
func (r *memory) evict(x graph.StorageID, k int) {
	if r.host[x] != r.device[x] {
		r.send(x, k-1)
	}
	r.now = max(r.now, r.sent[x])
	r.evicted[x] = k
	r.leave(x, k-1)
}

// send copies a storage out after a step.
func (r *memory) send(x graph.StorageID, after int) {
	r.moves = append(r.moves, plan.Move{Kind: plan.Out, Storage: x, After: after})
	r.host[x] = r.device[x]
	r.outFree = max(r.outFree, r.now) + r.out.Time(r.g.Storages[x].Bytes)
	r.sent[x] = r.outFree
}

// leave drops a storage after a step.
func (r *memory) leave(x graph.StorageID, after int) {
	r.moves = append(r.moves, plan.Move{Kind: plan.Drop, Storage: x, After: after})
	r.resident[x] = false
	r.used -= r.bytes[x]
	r.cache.remove(x)
}

// fetch copies a storage in before step k.
func (r *memory) fetch(x graph.StorageID, k int) {
	r.moves = append(r.moves, plan.Move{Kind: plan.In, Storage: x, After: k - 1})
	r.resident[x], r.device[x] = true, r.host[x]
	r.used += r.bytes[x]
	r.inFree = max(r.inFree, r.now, r.sent[x]) + r.in.Time(r.g.Storages[x].Bytes)
	r.arrives[x] = r.inFree
	r.list(x)
}

// list puts a storage at the front of the cache's list.
func (r *memory) list(x graph.StorageID) {
	if !r.pinned(x) {
		r.cache.front(x)
	}
}

// request asks for what is absent in a window, in the order in which it is used. What is on its way out stays. What was
// asked for before and never fitted is forgotten.
func (r *memory) request(w window) {
	r.fetches = r.fetches[:0]
	r.offloads = slices.DeleteFunc(r.offloads, func(o offload) bool { return slices.Contains(w.storages, o.storage) })
	for _, x := range w.storages {
		if !r.resident[x] && r.host[x] != absent {
			r.fetches = append(r.fetches, x)
		}
	}
}

// prefetch brings in what was asked for, as far as it fits beside step k, and the inputs of the step after it.
func (r *memory) prefetch(k int) {
	room := r.capacity - r.scratch(k)
	if k+1 < len(r.steps) {
		for _, x := range r.touched[k+1] {
			if r.g.Storages[x].Role == graph.Input && !r.resident[x] && int(r.uses[x][0]) == k+1 &&
				r.used+r.bytes[x] <= room {
				r.fetch(x, k)
			}
		}
	}
	rest := r.fetches[:0]
	for _, x := range r.fetches {
		switch {
		case r.resident[x]:
		case r.used+r.bytes[x] > room || r.evicted[x] == k:
			rest = append(rest, x)
		case r.nextUse(x, k) != absent:
			r.fetch(x, k)
		}
	}
	r.fetches = rest
	r.count(len(rest))
}

// nextUse returns the first step from k on that uses the present content of a storage, or -1.
func (r *memory) nextUse(x graph.StorageID, k int) int {
	i, _ := slices.BinarySearch(r.uses[x], int32(k))
	if i == len(r.uses[x]) || r.makesFirst(r.steps[r.uses[x][i]], x) {
		return absent
	}
	return int(r.uses[x][i])
}

// execute carries out a step and what follows it.
func (r *memory) execute(k int) {
	s := r.steps[k]
	r.free[k] = r.capacity - r.used
	for _, x := range r.touched[k] {
		r.now = max(r.now, r.arrives[x])
		r.list(x)
	}
	r.now += r.job.Variant(s.op, r.choice[k]).Latency
	for _, w := range r.g.Writes(s.op) {
		x := w.Storage
		if s.want >= 0 && x != s.want {
			continue
		}
		r.device[x] = w.Number
		switch {
		case r.g.Storages[x].Role == graph.Output:
			if w.Number == r.final[x] {
				r.send(x, k)
			}
		case s.want < 0 && int(s.op) < r.forward && w.Number == r.newest[x]:
			r.offload(x, k)
		}
	}
	for _, x := range r.dies[k] {
		if r.resident[x] {
			r.leave(x, k)
		}
	}
}

// choose takes for each step the fastest variant whose scratch fits beside what is on the device (3.5).
func (r *memory) choose() {
	for k, s := range r.steps {
		r.count(r.variants(s.op))
		for i := range r.variants(s.op) {
			v := r.job.Variant(s.op, i)
			if scheduler.RoundUp(v.Scratch, r.align) <= r.free[k] &&
				v.Latency < r.job.Variant(s.op, r.choice[k]).Latency {
				r.choice[k] = i
			}
		}
	}
}

// overlap has what checkpoints made and the cache evicts copied out as soon as it is made. It reports whether there is
// any.
func (r *memory) overlap() bool {
	found := false
	for x, k := range r.evicted {
		if k != absent && r.checkpoint(graph.StorageID(x)) {
			r.early[x], found = true, true
		}
	}
	return found
}

// plan writes the iteration down.
func (r *memory) plan(policy string) *plan.Plan {
	p := &plan.Plan{Job: r.job.Name, Epoch: r.job.Epoch, Policy: policy, Passes: r.g.Passes,
		Moves: slices.Clone(r.moves)}
	plan.Sort(p.Moves)
	for k, s := range r.steps {
		v := r.job.Variant(s.op, r.choice[k])
		p.Steps = append(p.Steps, plan.Step{Op: s.op, Want: r.outputsOf(s), Variant: v.Name, Scratch: v.Scratch})
		p.Made = append(p.Made, v.Latency)
	}
	for i := range r.g.Storages {
		if s := &r.g.Storages[i]; s.Role.Persistent() && len(r.uses[i]) > 0 {
			p.Entry = append(p.Entry, s.ID)
		}
	}
	return p
}
