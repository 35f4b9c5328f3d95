package waterwave

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"tensile/device/lease"
)

// TestMethod plays testdata/method.txt to a lease under the method. Commands, whose answer is what was granted:
//
//	new capacity=N split=N
//	join job=J base=N pages=N-N-... [time=DURATION] [snapshot=N-N-...]   of each group, one of its own as a rule
//	ask job=J [snapshot]                              for its next group, of a snapshot section
//	pass job=J                                        nothing of the job is in flight any more
//	leave job=J
//	wait time=DURATION
//	capacity pages=N
//	restart                                           the lease ends, and another takes its place
//	round                                             the node groups of all jobs, and the pairs that they are in
func TestMethod(t *testing.T) {
	var s *script
	datadriven.RunTest(t, "testdata/method.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "new" {
			s = newScript(t, d)
			return ""
		}
		return s.command(t, d)
	})
}

type script struct {
	lease    *lease.Machine
	method   *Method
	split    int
	capacity lease.Capacity
	now      time.Duration
	jobs     []*member
}

// member is a job with at most one group in flight.
type member struct {
	lease.Join
	asks   int64
	group  int // the next one
	senior int64
	want   *lease.Want // that is not granted
	at     lease.Want  // the newest that was
}

// groups are those of the section that it is in.
func (m *member) groups(snapshot bool) []lease.Group {
	if snapshot {
		return m.Snapshot
	}
	return m.Body
}

// rest is what it needs at most from a group on.
func (m *member) rest(group int, snapshot bool) int {
	rest := m.Base
	for _, g := range m.groups(snapshot)[group:] {
		rest = max(rest, g.Pages)
	}
	return rest
}

func newScript(t *testing.T, d *datadriven.TestData) *script {
	s := &script{capacity: lease.Capacity{Method: "waterwave"}}
	d.ScanArgs(t, "capacity", &s.capacity.Pages)
	d.ScanArgs(t, "split", &s.split)
	s.begin()
	s.step(lease.Input{Capacity: &s.capacity})
	return s
}

// begin takes a new lease.
func (s *script) begin() {
	s.method = New(Options{Split: s.split})
	s.lease = lease.NewMachine(lease.Options{Still: -1, Methods: func(string) lease.Method { return s.method }})
}

// restart tells a new lease what the jobs hold, and what they wait for.
func (s *script) restart() string {
	old := s.lease
	s.begin()
	for _, m := range s.jobs {
		r := lease.Rejoin{Join: m.Join, Group: m.at.Group, InSnapshot: m.at.Snapshot}
		r.Ask = max(m.at.Ask, 1)
		r.Hold, _ = old.Holds(m.Job)
		if m.group > 0 {
			r.Seniority, r.Rest = m.senior, m.rest(m.at.Group, m.at.Snapshot)
		}
		s.step(lease.Input{Rejoin: &r})
	}
	for _, m := range s.jobs {
		if m.want != nil {
			s.step(lease.Input{Want: m.want})
		}
	}
	return s.step(lease.Input{Capacity: &s.capacity})
}

func (s *script) of(name lease.Job) *member {
	return s.jobs[slices.IndexFunc(s.jobs, func(m *member) bool { return m.Job == name })]
}

// step tells the lease, and the jobs what it grants.
func (s *script) step(in lease.Input) string {
	in.Now = s.now
	var b strings.Builder
	for _, out := range s.lease.Step(in) {
		if out.Kind != lease.Grant {
			fmt.Fprintln(&b, out)
			continue
		}
		m := s.of(out.Job)
		if out.Ask == 1 {
			fmt.Fprintf(&b, "%s joins\n", m.Job)
			continue
		}
		fmt.Fprintf(&b, "%s group %d\n", m.Job, m.group+1)
		if m.at, m.want = *m.want, nil; m.at.First {
			m.senior = out.Seniority
		}
		if m.group++; m.at.Last {
			m.group = 0
		}
	}
	return b.String()
}

func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	var name string
	if d.HasArg("job") {
		d.ScanArgs(t, "job", &name)
	}
	job := lease.Job(name)
	duration := func() (v time.Duration) {
		if d.HasArg("time") {
			var text string
			d.ScanArgs(t, "time", &text)
			v, _ = time.ParseDuration(text)
		}
		return v
	}
	switch d.Cmd {
	case "join":
		m := &member{Join: lease.Join{Job: job, Ask: 1}, asks: 1}
		d.ScanArgs(t, "base", &m.Base)
		m.Peak = m.Base
		groups := func(key string) (groups []lease.Group) {
			if !d.HasArg(key) {
				return nil
			}
			var pages string
			d.ScanArgs(t, key, &pages)
			for word := range strings.SplitSeq(pages, "-") {
				n, err := strconv.Atoi(word)
				if err != nil {
					t.Fatal(err)
				}
				m.Peak = max(m.Peak, n)
				groups = append(groups, lease.Group{Pages: n, Time: duration()})
			}
			return groups
		}
		m.Body, m.Snapshot = groups("pages"), groups("snapshot")
		s.jobs = append(s.jobs, m)
		return s.step(lease.Input{Join: &m.Join})
	case "ask":
		m := s.of(job)
		m.asks++
		snapshot := d.HasArg("snapshot")
		groups, rest := m.groups(snapshot), m.rest(m.group, snapshot)
		held, _ := s.lease.Holds(job)
		m.want = &lease.Want{Job: job, Ask: m.asks, First: m.group == 0, Last: m.group == len(groups)-1, Group: m.group,
			Snapshot: snapshot, Rest: rest, Hold: max(groups[m.group].Pages, min(held, rest))}
		return s.step(lease.Input{Want: m.want})
	case "pass":
		m := s.of(job)
		hold := m.Base
		if groups := m.groups(m.at.Snapshot); m.group > 0 {
			hold = min(groups[m.group].Pages, groups[m.group-1].Pages)
		}
		return s.step(lease.Input{Passed: &lease.Passed{Job: job, Seen: m.asks, Hold: hold}})
	case "leave":
		s.jobs = slices.DeleteFunc(s.jobs, func(m *member) bool { return m.Job == job })
		return s.step(lease.Input{Leave: &lease.Leave{Job: job}})
	case "capacity":
		d.ScanArgs(t, "pages", &s.capacity.Pages)
		return s.step(lease.Input{Capacity: &s.capacity})
	case "restart":
		return s.restart()
	case "wait":
		s.now += duration()
		return s.step(lease.Input{})
	case "round":
		var b strings.Builder
		for _, j := range s.method.jobs {
			fmt.Fprintf(&b, "%s: groups to %v, %d allocate, pairs %v, %d issued\n", j.Job, j.body.ends, j.body.grow,
				j.pairs, j.issued)
		}
		return b.String()
	default:
		t.Fatalf("unknown command %s", d.Cmd)
		return ""
	}
}

// The barrier is open without a job that was not heard of for twice as long as a round takes, and is not while it asks.
// How long a round takes is what is expected of it, or what the last one took if that is more.
func TestMissed(t *testing.T) {
	const ms = time.Millisecond
	m := New(Options{Split: 2})
	m.Tell(0, lease.Note{Capacity: &lease.Capacity{Pages: 12}})
	var groups []lease.Group
	for _, pages := range []int{3, 5, 7, 5, 3, 1} {
		groups = append(groups, lease.Group{Pages: pages, Time: ms})
	}
	begin := time.Minute
	for _, name := range []lease.Job{"A", "B"} { // eight pairs
		m.Tell(begin, lease.Note{Joined: &lease.Join{Job: name, Base: 1, Peak: 7, Body: groups}})
	}
	waits := &lease.Want{Job: "B", First: true, Rest: 7, Hold: 3}
	first := &lease.Want{Job: "A", First: true, Rest: 7, Hold: 3}
	last := func(name lease.Job) *lease.Want {
		return &lease.Want{Job: name, Last: true, Group: 5, Rest: 1, Hold: 1}
	}
	for i, step := range []struct {
		at   time.Duration
		note lease.Note
		want time.Duration
	}{
		{0, lease.Note{Asked: waits}, begin + 16*ms},
		{2 * ms, lease.Note{Asked: first}, lease.Never},
		{3 * ms, lease.Note{Granted: first}, begin + 19*ms},
		{5 * ms, lease.Note{Passed: &lease.Passed{Job: "A", Seen: 1, Hold: 3}}, begin + 21*ms},
		{90 * ms, lease.Note{Granted: last("A")}, begin + 90*ms}, // A has issued all of the round
		{103 * ms, lease.Note{Granted: last("B")}, begin + 290*ms},
	} {
		m.Tell(begin+step.at, step.note)
		if got := m.When(begin+step.at, waits); got != step.want {
			t.Errorf("step %d: B may begin at %v, want %v", i, got, step.want)
		}
	}
}

// However long groups are expected to take, nobody is waited for any longer.
func TestMissedAtMost(t *testing.T) {
	m := New(Options{Split: 1})
	long := make([]lease.Group, lease.MaxGroups)
	for i := range long {
		long[i] = lease.Group{Pages: i % 3, Time: lease.MaxTime}
	}
	const jobs = 20 // twice a round of which is longer than a time.Duration can be
	for i := range jobs {
		m.Tell(0, lease.Note{Joined: &lease.Join{Job: lease.Job(strconv.Itoa(i)), Peak: 2, Body: long}})
	}
	if got := m.When(0, &lease.Want{Job: "1", First: true, Rest: 2}); got != patient {
		t.Errorf("job 1 may begin after %v, want %v", got, patient)
	}
}
