package dtr

import (
	"slices"

	"tensile/graph"
)

// Some contents cannot be made again: inputs of the job, what ops make that may not repeat, and what is made of a
// content that is overwritten or away for good. They are not evicted, which simrd calls pinned. They leave for good as
// soon as nothing can need them, which it calls banishing: a content is needed by its own ops, and by what is evicted
// and has to be made again of it. What then could not be made again either is pinned in turn.

// banish has a storage leave for good that no op uses and nothing evicted needs, and reports whether there is one. If
// it is to be free, nothing that is still used may have to be pinned for it.
func (r *runtime) banish(free bool) bool {
	for i, id := range r.zombies {
		s := &r.storages[id]
		if s.locks > 0 {
			continue
		}
		if needed, pins := r.dependents(s.children); len(needed) > 0 || free && pins {
			continue
		}
		r.zombies = slices.Delete(r.zombies, i, i+1)
		r.lose(s.children)
		r.leave(id)
		s.gone = true
		return true
	}
	return false
}

// overwrite is called before an op of the graph. What is made of a content that it overwrites, is away, and has
// yet to be used, is made again before that; the rest of what is made of it stays, or is away for good.
func (r *runtime) overwrite(id graph.OpID) error {
	var from []graph.StorageID
	o := &r.ops[id]
	for i, w := range o.writes {
		if o.fresh[i] {
			continue
		}
		for _, reader := range r.readers[graph.Version{Storage: w.Storage, Number: w.Number - 1}] {
			for _, made := range r.ops[reader].writes {
				id := made.Storage
				if id != w.Storage && !r.storages[id].persists && !slices.Contains(from, id) {
					from = append(from, id)
				}
			}
		}
	}
	if len(from) == 0 {
		return nil
	}
	for {
		must, _ := r.dependents(from)
		if len(must) == 0 {
			break
		}
		for _, s := range from {
			r.fix(s)
		}
		for _, s := range must {
			if err := r.rematerialise(s); err != nil {
				return err
			}
			r.fix(s)
			r.unlock(s)
		}
	}
	r.lose(from)
	return nil
}

// dependents returns what, of some storages and what is made of them through evicted ones, is evicted and yet to be
// used, and whether some of it is on the device, yet to be used, and could be made again.
func (r *runtime) dependents(from []graph.StorageID) (needed []graph.StorageID, pins bool) {
	r.begin()
	r.push(from)
	for len(r.todo) > 0 {
		id := r.next()
		switch s := &r.storages[id]; {
		case s.building, s.evicted() && !s.dead:
			needed = append(needed, id)
		case s.evicted():
			r.push(s.children)
		case s.resident && !s.fixed && !s.dead:
			pins = true
		}
	}
	r.count(r.visited)
	return needed, pins
}

// lose notes that some storages cannot be made again, nor what is made of those among them that are away: these are
// away for good.
func (r *runtime) lose(from []graph.StorageID) {
	r.begin()
	r.push(from)
	for len(r.todo) > 0 {
		id := r.next()
		s := &r.storages[id]
		if s.evicted() {
			r.push(s.children)
			s.gone = true
			if s.class >= 0 {
				r.classes.leave(s.class, s.cost)
				s.class = -1
			}
			continue
		}
		r.fix(id)
	}
	r.count(r.visited)
	for i := range r.storages {
		r.storages[i].around, r.storages[i].valid = 0, false
	}
}

// fix has a storage stay that is on the device, until it is dead and banished.
func (r *runtime) fix(id graph.StorageID) {
	s := &r.storages[id]
	if !s.resident || s.fixed {
		return
	}
	s.fixed = true
	r.updatePool(id)
	if s.dead {
		r.zombies = append(r.zombies, id)
	}
}

// walker goes through storages, each once.
type walker struct {
	seen    []int // per storage: the walk that has seen it
	walk    int
	todo    []graph.StorageID
	visited int
}

func (w *walker) begin() {
	w.walk++
	w.todo, w.visited = w.todo[:0], 0
}

func (w *walker) push(ids []graph.StorageID) {
	for _, id := range ids {
		if w.seen[id] != w.walk {
			w.seen[id] = w.walk
			w.todo = append(w.todo, id)
		}
	}
}

func (w *walker) next() graph.StorageID {
	w.visited++
	id := w.todo[len(w.todo)-1]
	w.todo = w.todo[:len(w.todo)-1]
	return id
}
