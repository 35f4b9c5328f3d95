package randplan

import "tensile/graph"

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

// possible reports whether a storage can be recomputed just before a place in the order, by an op that has run: what
// its maker reads has the right version there, and is there or can be recomputed as well.
func (w *walker) possible(s graph.StorageID, at int) bool {
	if !w.holds(version{Storage: s}, at) {
		return false
	}
	op := w.maker(s)
	if !w.g.Pure(op) {
		return false
	}
	for _, r := range w.g.Reads(op) {
		if !w.holds(r, at) {
			return false
		}
		if w.safe(r.Storage) {
			continue
		}
		if r.Number > 0 || !w.possible(r.Storage, at) {
			return false
		}
	}
	return true
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
	for _, r := range w.g.Reads(w.maker(s)) {
		w.need(r.Storage, at)
		if !w.safe(r.Storage) {
			w.reserve(r.Storage, at)
		}
	}
}
