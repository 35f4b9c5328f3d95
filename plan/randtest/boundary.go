package randtest

import (
	"slices"

	"tensile/graph"
	"tensile/plan"
)

// storages returns all of them in a random order.
func (w *walker) storages() []graph.StorageID {
	all := make([]graph.StorageID, len(w.g.Storages))
	for i, s := range w.rng.Perm(len(all)) {
		all[i] = graph.StorageID(s)
	}
	return all
}

// boundary makes random moves after the last step.
func (w *walker) boundary() {
	for _, s := range w.storages() {
		if w.mayOut(s) && w.chance(w.style.out) {
			w.move(plan.Out, s)
		}
	}
	for _, s := range w.storages() {
		if w.slot() < 0 {
			break // what is dropped before slot 0 was not there after the last slot
		}
		p := w.style.drop
		if _, needed := w.next(s); !needed && !w.g.Storages[s].Role.Persistent() {
			p = w.style.dead
		}
		if w.device[s] == absent || w.pinned[s] > 0 || !w.chance(p) {
			continue
		}
		switch {
		case w.mayDrop(s):
			w.move(plan.Drop, s)
		case w.mayLose(s, w.at) && w.chance(w.style.again):
			w.lose(s, w.at)
			w.move(plan.Drop, s)
		}
	}
	for _, s := range w.storages() {
		if w.device[s] == absent && w.current[s] != absent && w.host[s] == w.current[s] && w.chance(w.style.in) {
			w.move(plan.In, s)
		}
	}
}

// mayOut reports whether a copy out makes a host copy valid that was not and may be.
func (w *walker) mayOut(s graph.StorageID) bool {
	return w.device[s] != absent && w.host[s] != w.device[s] && !(w.kept[s] && w.device[s] == w.last[s])
}

// mayDrop reports whether a storage on the device is safe on the host or needed no more.
func (w *walker) mayDrop(s graph.StorageID) bool {
	role := w.g.Storages[s].Role
	_, needed := w.next(s)
	switch {
	case w.host[s] == w.device[s]:
		return !(w.kept[s] && w.device[s] == w.last[s])
	case role.Persistent(), role == graph.Output:
		return false
	}
	return !needed
}

// end brings about the state in which the iteration began.
func (w *walker) end() {
	for _, s := range w.storages() {
		role := w.g.Storages[s].Role
		if deliver := role.Persistent() || role == graph.Output; deliver && w.mayOut(s) {
			w.move(plan.Out, s)
		}
	}
	for _, s := range w.storages() {
		_, entry := slices.BinarySearch(w.plan.Entry, s)
		if w.device[s] != absent && (!entry || w.mayDrop(s) && w.chance(w.style.drop)) {
			w.move(plan.Drop, s)
		}
	}
	for _, s := range w.storages() {
		if _, entry := slices.BinarySearch(w.plan.Entry, s); entry && w.device[s] == absent {
			w.move(plan.In, s)
		}
	}
}
