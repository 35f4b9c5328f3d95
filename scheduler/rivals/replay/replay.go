package replay

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// Method decides what leaves the device when an op does not fit. It is told of everything that happens, in order.
type Method interface {
	// Used is called for each storage that a step reads or makes, once per step.
	Used(s graph.StorageID)
	// Victim chooses which of the candidates leaves the device: those that the next step does not touch, by ascending
	// storage. There is at least one.
	Victim(candidates []Candidate) graph.StorageID
	// Left is called when a storage leaves the device, as a victim or after its last use.
	Left(s graph.StorageID)
}

// Candidate is a storage that can leave the device.
type Candidate struct {
	Storage graph.StorageID
	Bytes   graph.Bytes
	OnHost  bool // the host has its content: no copy out is needed
}

// maxRounds is how many iterations are tried until one ends as it began.
const maxRounds = 8

// Plan returns the plan of a job under a policy's name that keeps to the method and to a capacity for storages and
// scratch, each rounded up to the alignment. Steps take the first variant of their ops. The error is a
// *scheduler.OverBudgetError if a single step needs more.
func Plan(j *scheduler.Job, policy string, capacity, align graph.Bytes, m Method) (*plan.Plan, error) {
	r := newReplay(j, capacity, align, m)
	for range maxRounds {
		entry, onHost := slices.Clone(r.resident), slices.Clone(r.onHost)
		if err := r.iterate(false); err != nil {
			return nil, err
		}
		if slices.Equal(r.resident, entry) && slices.Equal(r.onHost, onHost) {
			return r.plan(policy, entry), nil
		}
	}
	r.clear()
	if err := r.iterate(true); err != nil {
		return nil, err
	}
	return r.plan(policy, r.resident), nil
}

type replay struct {
	job      *scheduler.Job
	g        *graph.Graph
	method   Method
	capacity graph.Bytes
	bytes    []graph.Bytes // per storage, rounded up
	scratch  []graph.Bytes // per op, rounded up
	lastUse  []int         // per storage: the last step that touches it
	lastMade []int         // per storage: its last version

	resident []bool      // per storage: on the device
	onHost   []bool      // per storage: the host has its current content
	used     graph.Bytes // the sum of what is resident
	moves    []plan.Move // the moves of the iteration so far

	listed []Candidate // see candidates
}

func newReplay(j *scheduler.Job, capacity, align graph.Bytes, m Method) *replay {
	g := j.Graph
	n := len(g.Storages)
	r := &replay{job: j, g: g, method: m, capacity: capacity, bytes: make([]graph.Bytes, n),
		scratch: make([]graph.Bytes, len(g.Ops)),
		lastUse: make([]int, n), lastMade: g.LastVersions(), resident: make([]bool, n), onHost: make([]bool, n)}
	for s := range g.Storages {
		r.bytes[s] = scheduler.RoundUp(g.Storages[s].Bytes, align)
	}
	for op := range g.Ops {
		r.scratch[op] = scheduler.RoundUp(j.Variant(graph.OpID(op), 0).Scratch, align)
		for _, s := range g.Touches(graph.OpID(op)) {
			r.lastUse[s] = op
		}
	}
	r.clear()
	return r
}

// clear begins with nothing on the device and all that persists on the host.
func (r *replay) clear() {
	for s := range r.g.Storages {
		if r.resident[s] {
			r.leave(graph.StorageID(s))
		}
		r.onHost[s] = r.g.Storages[s].Role.Persistent()
	}
}

// iterate goes through all steps. What the first step of the next iteration displaces leaves after the last one; or, if
// empty is set, everything.
func (r *replay) iterate(empty bool) error {
	r.moves = r.moves[:0]
	for i := range r.g.Storages {
		if s := &r.g.Storages[i]; s.Role == graph.Input {
			r.onHost[s.ID] = true // the loader has put it there
		}
	}
	for op := range r.g.Ops {
		if err := r.step(graph.OpID(op)); err != nil {
			return err
		}
	}
	for i := range r.g.Storages {
		if !r.g.Storages[i].Role.Persistent() {
			r.onHost[i] = false
		}
	}
	last := len(r.g.Ops) - 1
	if empty {
		for _, c := range r.candidates(nil) {
			r.evict(c.Storage, last)
		}
		return nil
	}
	return r.room(0, last)
}

// step brings in what an op needs, executes it, and frees what is not used again.
func (r *replay) step(op graph.OpID) error {
	slot := int(op)
	if err := r.room(op, slot-1); err != nil {
		return err
	}
	touched := r.g.Touches(op)
	fresh := r.firstMade(op)
	for _, s := range touched {
		if !r.resident[s] {
			if !slices.Contains(fresh, s) {
				r.move(plan.In, s, slot-1)
			}
			r.resident[s] = true
			r.used += r.bytes[s]
		}
		r.method.Used(s)
	}
	for _, w := range r.g.Writes(op) {
		r.onHost[w.Storage] = false
		if r.g.Storages[w.Storage].Role == graph.Output && w.Number == r.lastMade[w.Storage] {
			r.move(plan.Out, w.Storage, slot)
			r.onHost[w.Storage] = true
		}
	}
	for _, s := range touched {
		if r.lastUse[s] == slot && !r.g.Storages[s].Role.Persistent() {
			r.move(plan.Drop, s, slot)
			r.leave(s)
		}
	}
	return nil
}

// firstMade returns the storages whose first content an op makes.
func (r *replay) firstMade(op graph.OpID) []graph.StorageID {
	var all []graph.StorageID
	for i, w := range r.g.Writes(op) {
		if r.g.Fresh(op, i) {
			all = append(all, w.Storage)
		}
	}
	return all
}

// room has victims leave after a step until an op fits.
func (r *replay) room(op graph.OpID, after int) error {
	touched := r.g.Touches(op)
	need, whole := r.scratch[op], r.scratch[op]
	for _, s := range touched {
		whole += r.bytes[s]
		if !r.resident[s] {
			need += r.bytes[s]
		}
	}
	if whole > r.capacity {
		return &scheduler.OverBudgetError{Need: whole, Budget: r.capacity,
			Reason: fmt.Sprintf("%s of job %s works on that", r.g.Ops[op].Name, r.job.Name)}
	}
	for r.used+need > r.capacity {
		candidates := r.candidates(touched)
		victim := r.method.Victim(candidates)
		if !slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Storage == victim }) {
			panic(fmt.Sprintf("replay: storage %d of job %s is no candidate before %s", victim, r.job.Name,
				r.g.Ops[op].Name))
		}
		r.evict(victim, after)
	}
	return nil
}

// candidates lists what is on the device but for some storages. The list is overwritten by the next call.
func (r *replay) candidates(locked []graph.StorageID) []Candidate {
	all := r.listed[:0]
	for i, resident := range r.resident {
		if s := graph.StorageID(i); resident && !slices.Contains(locked, s) {
			all = append(all, Candidate{s, r.bytes[s], r.onHost[s]})
		}
	}
	r.listed = all
	return all
}

// evict has a storage leave the device after a step, with its content on the host.
func (r *replay) evict(s graph.StorageID, after int) {
	if !r.onHost[s] {
		r.move(plan.Out, s, after)
		r.onHost[s] = true
	}
	r.move(plan.Drop, s, after)
	r.leave(s)
}

func (r *replay) leave(s graph.StorageID) {
	r.resident[s] = false
	r.used -= r.bytes[s]
	r.method.Left(s)
}

func (r *replay) move(kind plan.MoveKind, s graph.StorageID, after int) {
	r.moves = append(r.moves, plan.Move{Kind: kind, Storage: s, After: after})
}

// plan writes the last iteration, which began with the entry on the device.
func (r *replay) plan(policy string, entry []bool) *plan.Plan {
	p := &plan.Plan{Job: r.job.Name, Epoch: r.job.Epoch, Policy: policy, Graph: r.g.Digest(), Passes: r.g.Passes,
		Moves: slices.Clone(r.moves)}
	plan.Sort(p.Moves)
	for op := range r.g.Ops {
		v := r.job.Variant(graph.OpID(op), 0)
		p.Steps = append(p.Steps, plan.Step{Op: graph.OpID(op), Variant: v.Name, Scratch: v.Scratch})
		p.Made = append(p.Made, v.Latency)
	}
	for s, resident := range entry {
		if resident {
			p.Entry = append(p.Entry, graph.StorageID(s))
		}
	}
	return p
}
