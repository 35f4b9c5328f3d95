package dtr

import (
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// runtime executes one iteration of a job within a capacity and notes the steps.
type runtime struct {
	job       *scheduler.Job
	g         *graph.Graph
	heuristic string
	count     func(int)
	capacity  graph.Bytes
	scratch   []graph.Bytes // per op, rounded up
	ops       []op
	readers   map[graph.Version][]graph.OpID // executed ones

	storages []storage
	pool     []graph.StorageID // what may be evicted: on the device, unlocked, and can be made again
	zombies  []graph.StorageID // on the device, used by no op any more, cannot be made again
	used     graph.Bytes
	persist  graph.Bytes // the part of used that never leaves
	unlocks  int64       // so far
	clock    time.Duration
	model    time.Duration // the time of all ops, once each
	replayed time.Duration
	steps    []plan.Step
	classes  classes
	roots    []int // of classes that were counted
	walker
}

// op is what the runtime knows of an op.
type op struct {
	took    time.Duration
	reads   []graph.Version
	writes  []graph.Version
	fresh   []bool            // per output
	parents []graph.StorageID // the storages that the op reads and that do not persist
	dying   []graph.StorageID // that no later op of the graph uses
	pure    bool
}

// storage is what the runtime knows of a storage. Parameters and states are on the device throughout and appear
// in the sum of what is used alone.
type storage struct {
	bytes    graph.Bytes
	persists bool
	writers  []graph.OpID // in the order of the graph
	again    bool         // its writers may repeat

	version  int // the version that ops of the graph made last; -1: none
	content  int // the version that is on the device, or was when the storage left
	resident bool
	building bool // it is being made again and not yet complete
	locks    int
	fixed    bool // cannot be made again: not evicted
	dead     bool // no op of the graph uses it any more
	gone     bool // away for good

	cost     time.Duration // c0: of its distinct ops
	access   time.Duration // the last one
	unlocked int64         // when it was last unlocked
	place    int           // in pool; -1: it is not there
	class    int           // the class for h_eq, while the storage is evicted

	parents  []graph.StorageID
	children []graph.StorageID
	around   time.Duration // sum of c0 over e*, or, if not valid, no more than that
	valid    bool
}

// evicted reports whether it is away and can be made again.
func (s *storage) evicted() bool { return s.version >= 0 && !s.resident && !s.gone }

func newRuntime(j *scheduler.Job, heuristic string, capacity, align graph.Bytes, count func(int)) *runtime {
	g := j.Graph
	r := &runtime{job: j, g: g, heuristic: heuristic, count: count, capacity: capacity,
		readers: make(map[graph.Version][]graph.OpID), ops: make([]op, len(g.Ops)),
		storages: make([]storage, len(g.Storages)), scratch: make([]graph.Bytes, len(g.Ops))}
	r.walker.seen = make([]int, len(g.Storages))
	last := make([]graph.OpID, len(g.Storages))
	for i := range g.Storages {
		role := g.Storages[i].Role
		r.storages[i] = storage{bytes: scheduler.RoundUp(g.Storages[i].Bytes, align), version: -1, place: -1, class: -1,
			persists: role.Persistent(), again: role == graph.Activation || role == graph.Gradient}
		last[i] = graph.NoOp
	}
	for i := range g.Ops {
		id := graph.OpID(i)
		v := j.Variant(id, 0)
		r.scratch[i] = scheduler.RoundUp(v.Scratch, align)
		r.model += v.Latency
		r.ops[i] = r.opOf(id, v.Latency)
		for _, s := range g.Touches(id) {
			last[s] = id
		}
	}
	for i := range r.storages {
		s := &r.storages[i]
		id := graph.StorageID(i)
		if last[i] == graph.NoOp {
			continue
		}
		switch {
		case s.persists:
			r.used += s.bytes
			r.persist += s.bytes
			continue
		case g.Storages[i].Role == graph.Input:
			r.used += s.bytes
			s.version, s.resident, s.fixed = 0, true, true
		}
		r.ops[last[i]].dying = append(r.ops[last[i]].dying, id)
	}
	return r
}

// opOf looks at an op, and notes whom its outputs come from.
func (r *runtime) opOf(id graph.OpID, took time.Duration) op {
	g := r.g
	o := op{took: took, reads: g.Reads(id), writes: g.Writes(id), pure: g.Pure(id)}
	for _, v := range o.reads {
		if !r.storages[v.Storage].persists && !slices.Contains(o.parents, v.Storage) {
			o.parents = append(o.parents, v.Storage)
		}
	}
	var made []graph.StorageID
	for i, w := range o.writes {
		o.fresh = append(o.fresh, g.Fresh(id, i))
		if !slices.Contains(made, w.Storage) {
			made = append(made, w.Storage)
		}
	}
	for _, out := range made {
		s := &r.storages[out]
		s.writers = append(s.writers, id)
		s.again = s.again && (o.pure || g.Repeatable(id) && len(made) == 1)
		for _, p := range o.parents {
			if p != out && !slices.Contains(s.parents, p) {
				s.parents = append(s.parents, p)
				r.storages[p].children = append(r.storages[p].children, out)
			}
		}
	}
	return o
}

// run executes the iteration. The error is an *outOfMemory or errThrash.
func (r *runtime) run() error {
	for i := range r.ops {
		id := graph.OpID(i)
		r.count(16)
		if err := r.overwrite(id); err != nil {
			return err
		}
		if err := r.perform(id, 0, false); err != nil {
			return err
		}
		for _, s := range r.ops[i].dying {
			r.release(s)
		}
	}
	return nil
}

// perform is an operator call of simrd (runtime v2): of an op of the model, or once more of an op, for some of its
// outputs. It locks the inputs, makes those again that are away, makes room for the outputs, and executes the op.
func (r *runtime) perform(id graph.OpID, want plan.Outputs, again bool) error {
	o := &r.ops[id]
	var missing []graph.StorageID
	for _, p := range o.parents {
		r.storages[p].access = r.clock
		if r.storages[p].resident {
			r.lock(p)
		} else {
			missing = append(missing, p)
		}
	}
	for _, p := range missing {
		if err := r.rematerialise(p); err != nil {
			return err
		}
	}
	need := r.scratch[id]
	for i, w := range o.writes {
		if s := &r.storages[w.Storage]; want.Has(i) && o.fresh[i] && !s.persists {
			need += s.bytes
		}
	}
	if err := r.room(need); err != nil {
		return err
	}
	r.execute(id, want, again)
	for _, p := range o.parents {
		r.unlock(p)
	}
	if again && r.replayed > r.model {
		return errThrash
	}
	return nil
}

// execute notes a step and its effects.
func (r *runtime) execute(id graph.OpID, want plan.Outputs, again bool) {
	o := &r.ops[id]
	for _, v := range o.reads {
		if s := &r.storages[v.Storage]; !s.persists && (!s.resident || s.content != v.Number) {
			panic(fmt.Sprintf("dtr: %s of job %s reads version %d of %s, version %d is there (%v)", r.g.Ops[id].Name,
				r.job.Name, v.Number, r.g.Storages[v.Storage].Name, s.content, s.resident))
		}
	}
	r.steps = append(r.steps, plan.Step{Op: id, Want: want})
	r.clock += o.took
	if again {
		r.replayed += o.took
	} else {
		for _, v := range o.reads {
			r.readers[v] = append(r.readers[v], id)
		}
	}
	for i, w := range o.writes {
		s := &r.storages[w.Storage]
		if !want.Has(i) || s.persists {
			continue
		}
		s.content = w.Number
		if o.fresh[i] {
			r.arrive(w.Storage)
		}
		if again {
			continue
		}
		s.version, s.access = w.Number, r.clock
		if slices.IndexFunc(o.writes, func(x graph.Version) bool { return x.Storage == w.Storage }) == i {
			s.cost += o.took
		}
		s.fixed = s.fixed || !s.again
		r.updatePool(w.Storage)
	}
}

// arrive puts a storage on the device.
func (r *runtime) arrive(id graph.StorageID) {
	s := &r.storages[id]
	r.changed(id, false)
	if s.class >= 0 {
		r.classes.leave(s.class, s.cost)
		s.class = -1
	}
	s.resident = true
	r.used += s.bytes
	r.unlocks++
	s.unlocked = r.unlocks
	r.updatePool(id)
}

// rematerialise makes a storage again, by its ops in their order, and leaves it locked.
func (r *runtime) rematerialise(id graph.StorageID) error {
	s := &r.storages[id]
	if s.resident {
		r.lock(id)
		return nil
	}
	if !s.evicted() {
		panic(fmt.Sprintf("dtr: %s of job %s is away for good", r.g.Storages[id].Name, r.job.Name))
	}
	s.building = true
	for k, writer := range s.writers[:r.writersUpTo(s)] {
		want := plan.Outputs(0)
		if o := &r.ops[writer]; o.pure {
			want = r.absentOutputs(o, id)
		}
		if err := r.perform(writer, want, true); err != nil {
			return err
		}
		if k == 0 {
			r.lock(id)
		}
	}
	s.building = false
	return nil
}

// writersUpTo is how many ops have made what a storage holds.
func (r *runtime) writersUpTo(s *storage) int {
	for k, writer := range s.writers {
		for _, w := range r.ops[writer].writes {
			if &r.storages[w.Storage] == s && w.Number == s.version {
				return k + 1
			}
		}
	}
	panic("dtr: no op makes the version that a storage has")
}

// absentOutputs is the set of outputs that an op makes when one of them is needed again: those that are away. simrd
// makes all, and frees those at once that are there.
func (r *runtime) absentOutputs(o *op, id graph.StorageID) (set plan.Outputs) {
	for i, w := range o.writes {
		s := &r.storages[w.Storage]
		if w.Storage == id || s.evicted() && !s.building && s.version == w.Number && len(s.writers) == 1 {
			set |= 1 << i
		}
	}
	if set == 1<<len(o.writes)-1 {
		return 0
	}
	return set
}

func (r *runtime) lock(id graph.StorageID) {
	r.storages[id].locks++
	r.updatePool(id)
}

func (r *runtime) unlock(id graph.StorageID) {
	s := &r.storages[id]
	s.locks--
	r.unlocks++
	s.unlocked = r.unlocks
	r.updatePool(id)
}

// updatePool keeps the pool right: what is on the device, unlocked, and can be made again.
func (r *runtime) updatePool(id graph.StorageID) {
	s := &r.storages[id]
	switch in := s.resident && s.locks == 0 && !s.fixed && !s.building; {
	case in && s.place < 0:
		s.place = len(r.pool)
		r.pool = append(r.pool, id)
	case !in && s.place >= 0:
		last := r.pool[len(r.pool)-1]
		r.pool[s.place], r.storages[last].place = last, s.place
		r.pool, s.place = r.pool[:len(r.pool)-1], -1
	}
}

// room evicts until so many bytes more fit. What nothing can need any more goes first, and last what would have others
// pinned.
func (r *runtime) room(need graph.Bytes) error {
	for r.used+need > r.capacity {
		switch {
		case r.banish(true):
		case len(r.pool) > 0:
			r.evict(r.victim())
		case !r.banish(false):
			return &outOfMemory{r.used + need}
		}
	}
	return nil
}

// evict has a storage leave that can be made again.
func (r *runtime) evict(id graph.StorageID) {
	r.leave(id)
	r.changed(id, true)
	if r.heuristic == Eq {
		r.join(id)
	}
}

func (r *runtime) leave(id graph.StorageID) {
	s := &r.storages[id]
	s.resident = false
	r.used -= s.bytes
	r.updatePool(id)
}

// release is told that no op of the graph uses a storage any more: eager eviction.
func (r *runtime) release(id graph.StorageID) {
	s := &r.storages[id]
	s.dead = true
	switch {
	case s.persists || !s.resident:
	case s.fixed:
		r.zombies = append(r.zombies, id)
	default:
		r.evict(id)
	}
}
