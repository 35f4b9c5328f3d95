package executor

import (
	"sort"
	"time"

	"tensile/device/lease"
	"tensile/graph"
	"tensile/plan/program"
)

// ahead is how many groups with kernels that have not ended a job has on the device, so that the next one is there when
// the compute lane comes to it.
const ahead = 2

// gates is how a program is issued under a lease.
type gates struct {
	*program.Groups
	// asks says that some group needs more than Base, so that groups ask the lease.
	asks bool
	// body and snapshot are the groups of the two sections.
	body, snapshot []gate
	// join is what the Join says that does not differ from one Join to the next.
	join lease.Join
}

// gate is a group.
type gate struct {
	program.Group
	// stays are the pages of Need that may hold content for later groups.
	stays program.Pages
	// rest is the largest number of pages that the job needs from this group on, copies in flight included.
	rest int
	// last says that the group is the last of its section.
	last bool
	// time is how long the group's kernels are expected to take; 0: unknown.
	time time.Duration
}

func newGates(p *program.Program, d *program.Groups) *gates {
	g := &gates{Groups: d, join: lease.Join{Base: d.Base.Count(), Peak: d.Peak()}}
	of := func(s *program.Section, groups []program.Group) []gate {
		all := make([]gate, len(groups))
		rests := program.RestsInFlight(p, s, groups)
		if len(rests) > 0 {
			g.join.Peak = max(g.join.Peak, rests[0])
		}
		for i, group := range groups {
			all[i] = gate{Group: group, rest: rests[i], last: i == len(groups)-1, stays: d.Base}
			if !all[i].last {
				all[i].stays = group.Need.Without(group.Need.Without(groups[i+1].Need))
			}
			g.asks = g.asks || !d.Base.Contains(group.Need)
			all[i].time = kernelTime(p, s, group)
		}
		return all
	}
	g.body, g.snapshot = of(&p.Body, d.Body), of(&p.Snapshot, d.Snapshot)
	return g
}

// kernelTime returns how long the plan expects the kernels of a group to take; 0: it does not say.
func kernelTime(p *program.Program, s *program.Section, group program.Group) (sum time.Duration) {
	if len(p.Plan.Made) == 0 {
		return 0
	}
	for i := group.From; i < group.To; i++ {
		if c := &s.Commands[i]; c.Kind == program.Kernel {
			sum += p.Plan.Made[c.Slot]
		}
	}
	return sum
}

// addExpectations adds to the Join what the groups are expected to need, unless there are more groups than a lease
// takes.
func (g *gates) addExpectations() {
	of := func(all []gate) (groups []lease.Group) {
		if len(all) > lease.MaxGroups {
			return nil
		}
		for i := range all {
			need := all[i].Need
			if i > 0 {
				need = need.Union(all[i-1].Need)
			}
			groups = append(groups, lease.Group{Pages: need.Count(), Time: min(all[i].time, lease.MaxTime)})
		}
		return groups
	}
	g.join.Body, g.join.Snapshot = of(g.body), of(g.snapshot)
}

// wholeGroups returns the groups of a program that is issued by sections and holds all of its arena.
func wholeGroups(p *program.Program, page graph.Bytes) *program.Groups {
	all := program.Pages{{From: 0, To: int((p.Arena + page - 1) / page)}}
	if p.Arena == 0 {
		all = nil
	}
	one := func(s *program.Section) []program.Group {
		if len(s.Commands) == 0 {
			return nil
		}
		return []program.Group{{From: 0, To: len(s.Commands), Need: all}}
	}
	return &program.Groups{Page: page, Base: all, Body: one(&p.Body), Snapshot: one(&p.Snapshot)}
}

// part is a group of a run.
type part struct {
	// pending is how many of the group's commands have not ended.
	pending int
	// pendingKernels is how many of these are on the compute lane.
	pendingKernels int
	// asked and issued are when the group was asked for and when it was issued.
	asked, issued time.Duration
}

// partialRun returns the run of which some groups are to be issued yet, or nil.
func (m *Machine) partialRun() *run {
	if n := len(m.runs); n > 0 && !m.runs[n-1].isIssued() {
		return m.runs[n-1]
	}
	return nil
}

// isIssued reports whether all of a section was issued.
func (r *run) isIssued() bool { return r.issued == len(r.section.Commands) }

// groupOf returns the number of the group that a command is of.
func (r *run) groupOf(index int) int {
	return sort.Search(len(r.gates), func(g int) bool { return r.gates[g].To > index })
}

// gatesOf returns the groups of a section.
func (m *Machine) gatesOf(s *program.Section) []gate {
	if s == &m.program.Snapshot {
		return m.gates.snapshot
	}
	return m.gates.body
}

// askNextGroup asks for the next group, of a section that has begun or is to begin, unless enough of them are in
// flight. While it waits what the job would hold with it may fall; then it asks again.
func (m *Machine) askNextGroup(out []Output, s *program.Section) []Output {
	if m.want == nil && m.busyGroups >= ahead {
		return out
	}
	next := 0
	if r := m.partialRun(); r != nil {
		next = len(r.parts)
	}
	if m.want == nil {
		m.lastAsk++
		m.askedSince, m.wantSection = m.now, s
	}
	g := &m.gatesOf(m.wantSection)[next]
	w := lease.Want{Job: lease.Job(m.name), Ask: m.lastAsk, First: next == 0, Last: g.last, Rest: g.rest,
		Hold: m.heldPages.Union(g.Need).Count()}
	if j := &m.gates.join; len(j.Body) > 0 || len(j.Snapshot) > 0 {
		w.Group, w.Snapshot = next, m.wantSection == &m.program.Snapshot
	}
	if m.want != nil && *m.want == w {
		return out
	}
	m.want = &w
	return append(out, Output{Lease: &lease.Input{Want: &w}})
}

// handleGrant continues with what the lease has granted. A job that goes Home does not begin the iteration that it
// asked for.
func (m *Machine) handleGrant(ask int64, out []Output) []Output {
	if ask != m.lastAsk {
		return out
	}
	m.lastGrant = ask
	switch {
	case m.joinGates != nil && !m.joined:
		m.joined = true
		return out
	case m.want == nil:
		return out
	}
	r := m.partialRun()
	if r == nil {
		r = m.start(m.wantSection, m.issued)
		r.gates = m.gatesOf(r.section)
		m.issued++
		m.snapshotWanted = m.snapshotWanted && r.section != &m.program.Snapshot
	}
	g := &r.gates[len(r.parts)]
	p := part{pending: g.To - g.From, asked: m.askedSince, issued: m.now}
	commands := r.section.Commands[g.From:g.To]
	for i := range commands {
		if commands[i].Kind.Unit() == program.Compute {
			p.pendingKernels++
		}
	}
	if p.pendingKernels > 0 {
		m.busyGroups++
	}
	m.swap.Issued(commands)
	r.parts, r.issued, m.want = append(r.parts, p), g.To, nil
	m.heldPages = m.neededPages()
	return append(out, Output{Hold: &hold{m.heldPages}}, Output{Issue: &Issue{r.section, g.From, g.To, r.iteration,
		false}})
}

// countEnded counts a command of a group that has ended.
func (m *Machine) countEnded(r *run, index int) {
	p := &r.parts[r.groupOf(index)]
	if p.pending--; p.pending == 0 {
		m.mayRelease = true
	}
	if r.section.Commands[index].Kind.Unit() == program.Compute {
		if p.pendingKernels--; p.pendingKernels == 0 {
			m.busyGroups--
		}
	}
}

// release gives back what the job needs no more, now that something has ended.
func (m *Machine) release(out []Output) []Output {
	if m.gates == nil || !m.mayRelease {
		return out
	}
	m.mayRelease = false
	pages := m.neededPages()
	if pages.Contains(m.heldPages) {
		return out
	}
	m.heldPages = pages
	return append(out, Output{Hold: &hold{pages}},
		Output{Lease: &lease.Input{Passed: &lease.Passed{Job: lease.Job(m.name), Seen: m.lastGrant,
			Hold: pages.Count()}}})
}

// neededPages returns the pages that sections and groups in flight need, and those that may hold content for later
// groups.
func (m *Machine) neededPages() program.Pages {
	pages := m.gates.Base
	if r := m.partialRun(); r != nil {
		pages = r.gates[len(r.parts)-1].stays
	}
	for _, r := range m.runs {
		if r.gates == nil {
			pages = pages.Union(m.gates.Base)
		}
		for i := range r.parts {
			if r.parts[i].pending > 0 {
				pages = pages.Union(r.gates[i].Need)
			}
		}
	}
	return pages
}

// join reports whether a job in Home may leave it by its next program. Under a lease it asks for that.
func (m *Machine) join(out []Output) ([]Output, bool) {
	if m.nextGates == nil || m.joinGates == m.nextGates {
		return out, m.nextGates == nil || m.joined
	}
	out = m.leaveLease(out)
	m.lastAsk++
	m.joinGates, m.askedSince = m.nextGates, m.now
	join := m.joinGates.join
	join.Job, join.Ask, join.Weight = lease.Job(m.name), m.lastAsk, m.weight
	return append(out, Output{Lease: &lease.Input{Join: &join}}), false
}

// leaveLease tells the lease that the job holds nothing and asks for nothing.
func (m *Machine) leaveLease(out []Output) []Output {
	if m.joinGates == nil {
		return out
	}
	m.joinGates, m.joined, m.heldPages, m.want = nil, false, nil, nil
	return append(out, Output{Lease: &lease.Input{Leave: &lease.Leave{Job: lease.Job(m.name)}}})
}

// gateWait returns for how long before a command of the compute lane, since the one before had ended at free, the lane
// had nothing issued because groups up to the command's waited for their grants. group is the last one that was
// counted.
func (r *run) gateWait(group *int, index int, free time.Duration) time.Duration {
	var waited time.Duration
	for to := r.groupOf(index); *group < to; {
		*group++
		p := &r.parts[*group]
		waited += max(0, p.issued-max(p.asked, free))
	}
	return waited
}
