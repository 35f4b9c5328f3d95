package randtest

import (
	"tensile/graph"
	"tensile/plan"
)

// fetchReads brings what an op reads onto the device. It stays there until release.
func (w *walker) fetchReads(op graph.OpID) {
	for _, r := range w.g.Reads(op) {
		w.pinned[r.Storage]++
		w.fetch(r.Storage)
	}
}

func (w *walker) release(op graph.OpID) {
	for _, r := range w.g.Reads(op) {
		w.pinned[r.Storage]--
	}
}

// fetch brings a storage onto the device in its current version.
func (w *walker) fetch(s graph.StorageID) {
	switch {
	case w.device[s] != absent:
	case w.host[s] == w.current[s] && w.current[s] != absent:
		w.move(plan.In, s)
	default:
		w.remake(s)
	}
}

// remake runs the ops again that make a lost storage, unless that happened while their reads were fetched. No random
// moves come between its versions.
func (w *walker) remake(s graph.StorageID) {
	makers := w.makers(s)
	var reads []version
	for _, op := range makers {
		reads = append(reads, w.readsBeside(op, s)...)
	}
	for _, r := range reads {
		w.pinned[r.Storage]++
		w.fetch(r.Storage)
	}
	calm := w.calm
	for i, op := range makers {
		if i == 0 && w.device[s] != absent {
			break
		}
		if w.calm = calm || i < len(makers)-1; i > 0 {
			w.step(op, 0)
		} else {
			w.step(op, w.againWant(op, s))
		}
	}
	w.calm = calm
	for _, r := range reads {
		w.pinned[r.Storage]--
	}
}

// firstWant is the set of outputs that the first execution of an op makes. What it leaves out is lost from the start.
func (w *walker) firstWant(op graph.OpID) plan.Outputs {
	outputs := w.g.Ops[op].Outputs
	if len(outputs) == 1 || !w.g.Pure(op) {
		return 0
	}
	var want plan.Outputs
	for i, t := range outputs {
		s := w.g.Tensors[t].Storage
		if w.chance(w.style.part) && w.mayLose(s, w.at+1) {
			w.lose(s, w.at+1)
			continue
		}
		want |= 1 << i
	}
	if want == 0 {
		w.lost[w.g.Tensors[outputs[0]].Storage] = false
		want = 1
	}
	return want
}

// againWant is a set of outputs with s, perhaps with others that are not on the device.
func (w *walker) againWant(op graph.OpID, s graph.StorageID) plan.Outputs {
	var want plan.Outputs
	for i, t := range w.g.Ops[op].Outputs {
		other := w.g.Tensors[t].Storage
		free := w.device[other] == absent && w.current[other] <= 0
		if other == s || free && w.rng.IntN(3) == 0 {
			want |= 1 << i
		}
	}
	if want == 1<<len(w.g.Ops[op].Outputs)-1 && w.rng.IntN(2) == 0 {
		return 0
	}
	return want
}

// step appends an execution and the moves that follow it.
func (w *walker) step(op graph.OpID, want plan.Outputs) {
	step := plan.Step{Op: op, Want: want, Scratch: w.scratch[op], Join: len(w.plan.Steps)%8 == 5}
	if w.rng.IntN(16) == 0 {
		step.Scratch += 4 * graph.Bytes(w.rng.IntN(100))
	}
	w.plan.Steps = append(w.plan.Steps, step)
	for i, v := range w.g.Writes(op) {
		if want.Has(i) {
			w.device[v.Storage], w.current[v.Storage], w.lost[v.Storage] = v.Number, v.Number, false
		}
	}
	if w.order[w.at] == op { // no repetition: those stand before an execution that is still to come
		w.at++
		defer func() { w.at-- }()
	}
	if w.at < len(w.order) && !w.calm {
		w.boundary()
		w.ahead()
	}
}

// settle looks at the lost storages that were to be made again by now, but whose readers did not ask for them, having
// been made again themselves before. Those that are needed later must be possible to make then; else it is done now.
func (w *walker) settle() {
	w.calm = true
	for i := range w.lost {
		s := graph.StorageID(i)
		if at, ok := w.next(s); !w.lost[s] || !ok || at > w.at {
			continue
		}
		switch later, ok := w.nextFrom(s, w.at+1); {
		case !ok:
			w.lost[s] = false
		case w.possible(s, later):
			w.reserve(s, later)
		default:
			w.fetch(s)
		}
	}
	w.calm = false
}

// ahead makes lost storages before they are needed, now and then.
func (w *walker) ahead() {
	if w.busy {
		return
	}
	w.busy = true
	defer func() { w.busy = false }()
	for i := range w.lost {
		if s := graph.StorageID(i); w.lost[s] && w.chance(w.style.early) {
			if at, ok := w.next(s); ok && w.possible(s, at) {
				w.remake(s)
			}
		}
	}
}
