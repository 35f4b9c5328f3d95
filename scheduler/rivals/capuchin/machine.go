package capuchin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// guide is what guided execution does beside passive mode, per op of the graph.
type guide struct {
	leave [][]departure       // what leaves the device after the op
	bring [][]graph.StorageID // whose copy in the op triggers
}

func newGuide(ops int) *guide {
	return &guide{leave: make([][]departure, ops), bring: make([][]graph.StorageID, ops)}
}

// departure is a storage that leaves the device after its evicted-access.
type departure struct {
	storage graph.StorageID
	back    int  // op of the back-access
	remake  bool // it is dropped, and recomputed on demand; else it is copied out
}

// machine executes iterations of a job in virtual time: ops in the order of the graph, a copy lane each way, and a
// capacity. It does what its guide says and passive mode for the rest, and writes down what happens.
//
//   - A copy out does not hold up the ops behind it. The bytes return when it ends, and only an op that does not fit
//     waits for that: for the copies out under way, the earliest first.
//   - What still does not fit has what was not used for longest leave, and waits until it is copied out.
//   - What is not there is copied in on demand, or, without content on the host, made again.
//   - A copy in that was triggered begins when its lane is free and it fits: now and, by what is expected, until the
//     back-access.
type machine struct {
	*facts
	guide *guide
	order *lru

	resident []bool          // per storage: it has bytes of the device
	onHost   []bool          // per storage: the host has its current content
	version  []int           // per storage: the version made last
	arrives  []time.Duration // per storage: when its copy in ends
	pending  []int           // per storage: the replays of a list that are to read it
	locked   []int           // per storage: the ops under way that need it
	replayed []bool          // per storage: made again ahead of its next access, and so free to be dropped
	spared   []graph.StorageID
	leaving  []leaving     // whose copy out is under way, in the order of its ends
	waiting  []fetch       // triggered copies in that have not begun, by back-access
	load     []graph.Bytes // per op: what is expected on the device
	used     graph.Bytes

	now, sends, fetches time.Duration // the ends of the last step and of the last copy each way
	at                  int           // the op of the graph whose turn it is
	steps               []plan.Step
	made                []time.Duration
	moves               []plan.Move
}

type leaving struct {
	storage graph.StorageID
	end     time.Duration
}

type fetch struct {
	storage graph.StorageID
	back    int
}

// stuckError says that an op cannot be replayed within the capacity, or not any more.
type stuckError struct{ storage graph.StorageID }

func (e stuckError) Error() string { return fmt.Sprintf("storage %d cannot be made again", e.storage) }

func newMachine(f *facts, gd *guide) *machine {
	n := len(f.g.Storages)
	m := &machine{facts: f, guide: gd, order: newLRU(f.session, n), resident: make([]bool, n), onHost: make([]bool, n),
		version: make([]int, n), arrives: make([]time.Duration, n), locked: make([]int, n), pending: make([]int, n),
		replayed: make([]bool, n), load: make([]graph.Bytes, len(f.g.Ops))}
	for i := range f.g.Storages {
		m.onHost[i] = f.g.Storages[i].Role.Persistent()
	}
	return m
}

// maxRounds is how many iterations are tried until one ends as it began.
const maxRounds = 8

// run executes iterations until one ends as it began, and returns its plan.
func (m *machine) run() (*plan.Plan, error) {
	for range maxRounds {
		entry, onHost := slices.Clone(m.resident), slices.Clone(m.onHost)
		if err := m.iterate(nil); err != nil {
			return nil, err
		}
		if slices.Equal(m.resident, entry) && slices.Equal(m.onHost, onHost) {
			return m.plan(entry), nil
		}
	}
	// What is there at one end but not at the other leaves at the end, until that set stays.
	fixed := slices.Clone(m.resident)
	for range maxRounds {
		for s, there := range m.resident {
			fixed[s] = fixed[s] && there
		}
		if err := m.iterate(fixed); err != nil {
			return nil, err
		}
		onHost := slices.Clone(m.onHost)
		entry := slices.Clone(m.resident)
		if err := m.iterate(fixed); err != nil {
			return nil, err
		}
		if slices.Equal(m.resident, entry) && slices.Equal(m.onHost, onHost) {
			return m.plan(entry), nil
		}
	}
	clear(fixed)
	for range 2 { // the first empties the device
		if err := m.iterate(fixed); err != nil {
			return nil, err
		}
	}
	return m.plan(fixed), nil
}

// iterate executes one iteration. What the first op of the next one displaces leaves at its end, and what is not in
// keep, if there is such a list.
func (m *machine) iterate(keep []bool) error {
	m.steps, m.made, m.moves = m.steps[:0], m.made[:0], m.moves[:0]
	m.waiting, m.spared = m.waiting[:0], m.spared[:0]
	for i := range m.g.Storages {
		s := &m.g.Storages[i]
		m.version[i] = -1
		if s.Role.FromHost() {
			m.version[i] = 0
		}
		if s.Role == graph.Input {
			m.onHost[i] = true // the loader has put it there
		}
		m.replayed[i] = false
	}
	m.expect()
	for k := range m.g.Ops {
		m.at = k
		if err := m.op(k); err != nil {
			return err
		}
	}
	last := len(m.steps) - 1
	m.at = len(m.g.Ops)
	for s, there := range m.resident {
		if there && (keep != nil && !keep[s] || !m.g.Storages[s].Role.Persistent()) {
			m.evict(graph.StorageID(s), last)
		}
	}
	if err := m.room(0, last, m.needOf(0)); err != nil {
		return err
	}
	for len(m.leaving) > 0 {
		m.release(last)
	}
	for i := range m.g.Storages {
		if role := m.g.Storages[i].Role; !role.Persistent() {
			m.onHost[i] = false
		}
	}
	return nil
}

// expect begins with what is on the device without a limit, less what leaves by the guide.
func (m *machine) expect() {
	n := len(m.g.Ops)
	m.session.Count(2 * n)
	change := make([]graph.Bytes, n+1)
	for i := range m.g.Storages {
		s := graph.StorageID(i)
		switch role := m.g.Storages[i].Role; {
		case len(m.uses[i]) == 0 && !m.resident[i]:
		case role.Persistent() && m.resident[i]:
			change[0] += m.bytes[i]
		case role.Persistent():
			change[m.uses[i][0]] += m.bytes[i]
		default:
			change[m.uses[i][0]] += m.bytes[i]
			change[m.lastTouch(s)+1] -= m.bytes[i]
		}
	}
	for k, all := range m.guide.leave {
		for _, d := range all {
			change[k+1] -= m.bytes[d.storage]
			change[d.back] += m.bytes[d.storage]
		}
	}
	var sum graph.Bytes
	for k := range n {
		sum += change[k]
		m.load[k] = sum + m.scratch[k]
	}
}

// change expects more bytes, or less, in the ops from one to before another.
func (m *machine) change(from, to int, bytes graph.Bytes) {
	m.session.Count((to - from) / 8)
	for k := from; k < to; k++ {
		m.load[k] += bytes
	}
}

// op executes an op of the graph, with what its guide says.
func (m *machine) op(k int) error {
	if err := m.execute(graph.OpID(k), 0, k); err != nil {
		return err
	}
	slot := len(m.steps) - 1
	for _, w := range m.writes[k] {
		if m.g.Storages[w.Storage].Role == graph.Output && w.Number == m.last[w.Storage] {
			m.send(w.Storage, slot)
		}
	}
	for _, s := range m.touches[k] {
		m.replayed[s] = false
		if m.lastTouch(s) == k && !m.g.Storages[s].Role.Persistent() {
			m.move(plan.Drop, s, slot)
			m.freeBytes(s)
		}
	}
	for _, d := range m.guide.leave[k] {
		switch {
		case !m.resident[d.storage]:
		case d.remake:
			m.move(plan.Drop, d.storage, slot)
			m.freeBytes(d.storage)
		default:
			m.depart(d.storage, slot)
		}
	}
	for _, s := range m.guide.bring[k] {
		m.trigger(s, k)
	}
	return nil
}

// trigger has a storage copied in when there is time and room.
func (m *machine) trigger(s graph.StorageID, k int) {
	f := fetch{s, m.nextTouch(s, k+1)}
	at, _ := slices.BinarySearchFunc(m.waiting, f, func(a, b fetch) int { return a.back - b.back })
	for at < len(m.waiting) && m.waiting[at].back == f.back {
		at++
	}
	m.waiting = slices.Insert(m.waiting, at, f)
}

// execute executes an op before op k of the graph, or that op itself.
func (m *machine) execute(op graph.OpID, want plan.Outputs, k int) error {
	m.session.Count(8 * len(m.touches[op]))
	main := int(op) == k
	for _, v := range m.reads[op] {
		m.locked[v.Storage]++
	}
	for _, v := range m.reads[op] {
		if m.resident[v.Storage] {
			m.cancelLeave(v.Storage)
		} else if !m.onHost[v.Storage] {
			if err := m.remake(v.Storage, k); err != nil {
				return err
			}
		}
		if m.version[v.Storage] != v.Number && !main {
			return stuckError{v.Storage}
		}
	}
	after := len(m.steps) - 1
	m.free(after)
	touched := m.touchedBy(op, want)
	need := m.scratch[op]
	for _, s := range touched {
		if !m.resident[s] {
			need += m.bytes[s]
		}
	}
	for _, s := range touched {
		m.locked[s]++
	}
	if err := m.room(int(op), after, need); err != nil {
		return err
	}
	begin := m.now
	for _, s := range touched {
		if !m.resident[s] {
			if !slices.Contains(m.fresh[op], s) {
				m.fetch(s, after)
				if !main && m.nextTouch(s, k) == len(m.g.Ops) && !m.g.Storages[s].Role.Persistent() {
					m.spare(s)
				}
			}
			m.resident[s] = true
			m.used += m.bytes[s]
		}
		begin = max(begin, m.arrives[s])
		m.order.Used(s)
	}
	took := m.latency[op]
	if main {
		m.prefetch(k, after, begin+took)
	}
	m.now = begin + took
	for _, s := range touched {
		m.locked[s]--
	}
	for _, v := range m.reads[op] {
		m.locked[v.Storage]--
	}
	for o, w := range m.writes[op] {
		if want.Has(o) {
			m.onHost[w.Storage], m.version[w.Storage] = false, w.Number
		}
	}
	v := m.job.Variant(op, 0)
	m.steps = append(m.steps, plan.Step{Op: op, Want: want, Variant: v.Name, Scratch: v.Scratch})
	m.made = append(m.made, took)
	return nil
}

// touchedBy lists what an op touches, less the outputs that are not wanted.
func (m *machine) touchedBy(op graph.OpID, want plan.Outputs) []graph.StorageID {
	if want == 0 {
		return m.touches[op]
	}
	var all []graph.StorageID
	for _, v := range m.reads[op] {
		if !slices.Contains(all, v.Storage) {
			all = append(all, v.Storage)
		}
	}
	for o, w := range m.writes[op] {
		if want.Has(o) {
			all = append(all, w.Storage)
		}
	}
	return all
}

// needOf is what an op of the graph needs beside what is there.
func (m *machine) needOf(k int) graph.Bytes {
	need := m.scratch[k]
	for _, s := range m.touches[k] {
		if !m.resident[s] {
			need += m.bytes[s]
		}
	}
	return need
}

// remake makes a storage again before op k: what it takes is made in the order of the graph, each once if there is room
// to keep it until then.
func (m *machine) remake(s graph.StorageID, k int) error {
	var all []graph.StorageID
	var list func(s graph.StorageID)
	list = func(s graph.StorageID) {
		if slices.Contains(all, s) || m.maker[s] == graph.NoOp {
			return
		}
		all = append(all, s)
		for _, v := range m.reads[m.maker[s]] {
			m.pending[v.Storage]++
			if !m.resident[v.Storage] && !m.onHost[v.Storage] {
				list(v.Storage)
			}
		}
	}
	list(s)
	m.session.Count(16 * len(all))
	slices.SortFunc(all, func(a, b graph.StorageID) int { return cmp.Compare(m.maker[a], m.maker[b]) })
	for _, x := range all {
		if !m.resident[x] {
			if err := m.replay(x, k); err != nil {
				return err
			}
		}
		for _, v := range m.reads[m.maker[x]] {
			m.pending[v.Storage]--
		}
	}
	if !m.resident[s] {
		return m.replay(s, k)
	}
	return nil
}

// replay executes the op that makes a storage again before op k. What it makes stays while there is room.
func (m *machine) replay(s graph.StorageID, k int) error {
	op := m.maker[s]
	if op == graph.NoOp {
		return stuckError{s}
	}
	var want plan.Outputs
	for o, w := range m.writes[op] {
		if w.Storage == s {
			want = 1 << o
		}
	}
	if len(m.writes[op]) == 1 {
		want = 0
	}
	if err := m.execute(op, want, k); err != nil {
		return err
	}
	m.spare(s)
	return nil
}

// spare keeps what was made again until it is used or there is no room.
func (m *machine) spare(s graph.StorageID) {
	if !m.replayed[s] {
		m.replayed[s] = true
		m.spared = append(m.spared, s)
	}
}

func (m *machine) move(kind plan.MoveKind, s graph.StorageID, after int) {
	m.moves = append(m.moves, plan.Move{Kind: kind, Storage: s, After: after})
}

// plan writes the last iteration, which began with the entry on the device.
func (m *machine) plan(entry []bool) *plan.Plan {
	p := &plan.Plan{Policy: m.session.Request.Policy, Passes: m.g.Passes, Moves: slices.Clone(m.moves),
		Steps: slices.Clone(m.steps), Made: slices.Clone(m.made)}
	plan.Sort(p.Moves)
	for s, there := range entry {
		if there {
			p.Entry = append(p.Entry, graph.StorageID(s))
		}
	}
	return p
}
