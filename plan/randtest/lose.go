package randtest

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// mayLose reports whether a storage may be neither on the device nor on the host until it is needed next, from a place
// on: it can be made again then, or nobody needs it.
func (w *walker) mayLose(s graph.StorageID, from int) bool {
	role := w.g.Storages[s].Role
	if role.FromHost() || role == graph.Output {
		return false
	}
	at, ok := w.nextFrom(s, from)
	return !ok || w.possible(s, at)
}

func (w *walker) nextFrom(s graph.StorageID, from int) (int, bool) {
	for _, at := range w.needs[s] {
		if at >= from {
			return at, true
		}
	}
	return 0, false
}

// possible reports whether a storage can be recomputed just before a place in the order, by ops that have run: what its
// makers read has the right version there, and is there or can be recomputed as well.
func (w *walker) possible(s graph.StorageID, at int) bool {
	makers := w.makers(s)
	if !w.holds(version{Storage: s, Number: len(makers) - 1}, at) {
		return false
	}
	for i, op := range makers {
		if i == 0 && !w.g.Pure(op) || !w.g.Repeatable(op) || i > 0 && len(w.g.Ops[op].Outputs) > 1 {
			return false
		}
		for _, r := range w.readsBeside(op, s) {
			if !w.holds(r, at) || !w.safe(r.Storage) && !w.possible(r.Storage, at) {
				return false
			}
		}
	}
	return true
}

// makers returns the ops that make the versions of a storage up to the current one, version 0 if there is none.
func (w *walker) makers(s graph.StorageID) []graph.OpID {
	var ops []graph.OpID
	for v := range max(0, w.current[s]) + 1 {
		at, ok := w.writers[version{Storage: s, Number: v}]
		if !ok {
			panic(fmt.Sprintf("randtest: %s is lost, and no op makes version %d", w.g.Storages[s].Name, v))
		}
		ops = append(ops, w.order[at])
	}
	return ops
}

// readsBeside returns what an op reads of other storages.
func (w *walker) readsBeside(op graph.OpID, s graph.StorageID) []version {
	return slices.DeleteFunc(w.g.Reads(op), func(r version) bool { return r.Storage == s })
}

// holds reports whether a version has been made and is not overwritten before a place in the order.
func (w *walker) holds(v version, at int) bool {
	over, ok := w.writers[version{Storage: v.Storage, Number: v.Number + 1}]
	return (!ok || over >= at) && w.current[v.Storage] <= v.Number
}

// safe reports whether a storage is on the device or the host, where a need keeps it.
func (w *walker) safe(s graph.StorageID) bool {
	return w.device[s] != absent || w.current[s] != absent && w.host[s] == w.current[s]
}

// lose marks a storage as lost and reserves what making it again will read.
func (w *walker) lose(s graph.StorageID, from int) {
	at, ok := w.nextFrom(s, from)
	if !ok {
		return
	}
	w.lost[s] = true
	w.reserve(s, at)
}

// reserve makes everything that making s again reads needed at a place.
func (w *walker) reserve(s graph.StorageID, at int) {
	for _, op := range w.makers(s) {
		for _, r := range w.readsBeside(op, s) {
			w.need(r.Storage, at)
			if !w.safe(r.Storage) {
				w.reserve(r.Storage, at)
			}
		}
	}
}
