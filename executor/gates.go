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
	asks           bool // some group needs more than Base
	body, snapshot []gate
	join           lease.Join // without what differs from Join to Join
}

// gate is a group.
type gate struct {
	program.Group
	stays program.Pages // of those it needs, what may hold content for the groups after it
	rest  int           // the most pages that the job needs from this one on, with copies in flight
	last  bool          // of its section
	time  time.Duration // of its kernels, as the plan expects it
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
			all[i].time = kernels(p, s, group)
		}
		return all
	}
	g.body, g.snapshot = of(&p.Body, d.Body), of(&p.Snapshot, d.Snapshot)
	return g
}

// kernels is how long the kernels of a group take, as the plan expects it; 0 if it does not.
func kernels(p *program.Program, s *program.Section, group program.Group) (sum time.Duration) {
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

// tell has the Join say what the groups need, unless they are more than a lease takes.
func (g *gates) tell() {
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

// whole returns the groups of a program that is issued by sections and holds all of its arena.
func whole(p *program.Program, page graph.Bytes) *program.Groups {
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
	left          int // commands that have not ended
	computes      int // of those on the compute lane
	asked, issued time.Duration
}

// partial returns the run of which some groups are to be issued yet, or nil.
func (m *Machine) partial() *run {
	if n := len(m.runs); n > 0 && !m.runs[n-1].whole() {
		return m.runs[n-1]
	}
	return nil
}

// whole reports whether all of a section was issued.
func (r *run) whole() bool { return r.issued == len(r.section.Commands) }

// group returns the number of the group that a command is of.
func (r *run) group(index int) int {
	return sort.Search(len(r.gates), func(g int) bool { return r.gates[g].To > index })
}

// gatesOf returns the groups of a section.
func (m *Machine) gatesOf(s *program.Section) []gate {
	if s == &m.program.Snapshot {
		return m.gates.snapshot
	}
	return m.gates.body
}

// asks asks for the next group, of a section that has begun or is to begin, unless enough of them are in flight. While
// it waits what the job would hold with it may fall; then it asks again.
func (m *Machine) asks(out []Output, s *program.Section) []Output {
	if m.want == nil && m.busy >= ahead {
		return out
	}
	next := 0
	if r := m.partial(); r != nil {
		next = len(r.parts)
	}
	if m.want == nil {
		m.ask++
		m.asked, m.begins = m.now, s
	}
	g := &m.gatesOf(m.begins)[next]
	w := lease.Want{Job: lease.Job(m.name), Ask: m.ask, First: next == 0, Last: g.last, Rest: g.rest,
		Hold: m.held.Union(g.Need).Count()}
	if j := &m.gates.join; len(j.Body) > 0 || len(j.Snapshot) > 0 {
		w.Group, w.Snapshot = next, m.begins == &m.program.Snapshot
	}
	if m.want != nil && *m.want == w {
		return out
	}
	m.want = &w
	return append(out, Output{Lease: &lease.Input{Want: &w}})
}

// granted goes on with what the lease has granted. A job that goes Home does not begin the iteration that it asked for.
func (m *Machine) granted(ask int64, out []Output) []Output {
	if ask != m.ask {
		return out
	}
	m.seen = ask
	switch {
	case m.joins != nil && !m.joined:
		m.joined = true
		return out
	case m.want == nil:
		return out
	}
	r := m.partial()
	if r == nil {
		r = m.start(m.begins, m.issued)
		r.gates = m.gatesOf(r.section)
		m.issued++
		m.wanted = m.wanted && r.section != &m.program.Snapshot
	}
	g := &r.gates[len(r.parts)]
	p := part{left: g.To - g.From, asked: m.asked, issued: m.now}
	commands := r.section.Commands[g.From:g.To]
	for i := range commands {
		if commands[i].Kind.Unit() == program.Compute {
			p.computes++
		}
	}
	if p.computes > 0 {
		m.busy++
	}
	m.swap.Issued(commands)
	r.parts, r.issued, m.want = append(r.parts, p), g.To, nil
	m.held = m.needed()
	return append(out, Output{Hold: &hold{m.held}}, Output{Issue: &Issue{r.section, g.From, g.To, r.iteration, false}})
}

// passes counts a command of a group that has ended.
func (m *Machine) passes(r *run, index int) {
	p := &r.parts[r.group(index)]
	if p.left--; p.left == 0 {
		m.passed = true
	}
	if r.section.Commands[index].Kind.Unit() == program.Compute {
		if p.computes--; p.computes == 0 {
			m.busy--
		}
	}
}

// release gives back what the job needs no more, now that something has ended.
func (m *Machine) release(out []Output) []Output {
	if m.gates == nil || !m.passed {
		return out
	}
	m.passed = false
	pages := m.needed()
	if pages.Contains(m.held) {
		return out
	}
	m.held = pages
	return append(out, Output{Hold: &hold{pages}},
		Output{Lease: &lease.Input{Passed: &lease.Passed{Job: lease.Job(m.name), Seen: m.seen,
			Hold: pages.Count()}}})
}

// needed is what the sections and groups in flight need, and what may hold content for those after them.
func (m *Machine) needed() program.Pages {
	pages := m.gates.Base
	if r := m.partial(); r != nil {
		pages = r.gates[len(r.parts)-1].stays
	}
	for _, r := range m.runs {
		if r.gates == nil {
			pages = pages.Union(m.gates.Base)
		}
		for i := range r.parts {
			if r.parts[i].left > 0 {
				pages = pages.Union(r.gates[i].Need)
			}
		}
	}
	return pages
}

// admitted reports whether a job in Home may leave it by its next program. Under a lease it asks for that.
func (m *Machine) admitted(out []Output) ([]Output, bool) {
	if m.nextGates == nil || m.joins == m.nextGates {
		return out, m.nextGates == nil || m.joined
	}
	out = m.leave(out)
	m.ask++
	m.joins, m.asked = m.nextGates, m.now
	join := m.joins.join
	join.Job, join.Ask, join.Weight = lease.Job(m.name), m.ask, m.weight
	return append(out, Output{Lease: &lease.Input{Join: &join}}), false
}

// leave tells the lease that the job holds nothing, and asks for nothing.
func (m *Machine) leave(out []Output) []Output {
	if m.joins == nil {
		return out
	}
	m.joins, m.joined, m.held, m.want = nil, false, nil, nil
	return append(out, Output{Lease: &lease.Input{Leave: &lease.Leave{Job: lease.Job(m.name)}}})
}

// waited returns for how long before a command of the compute lane, since the one before had ended at free, the lane
// had nothing issued because groups up to the command's waited for their grants. group is the last one that was
// counted.
func (r *run) waited(group *int, index int, free time.Duration) time.Duration {
	var waited time.Duration
	for to := r.group(index); *group < to; {
		*group++
		p := &r.parts[*group]
		waited += max(0, p.issued-max(p.asked, free))
	}
	return waited
}
