package pairs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"tensile/lease"
)

// TestMethod plays testdata/method.txt to a lease under the method. Commands, whose answer is what was granted:
//
//	new capacity=N split=N
//	join job=J base=N pages=N-N-... [time=DURATION]   of each group, which is what a node group takes
//	ask job=J                                         for its next group
//	pass job=J                                        nothing of the job is in flight any more
//	leave job=J
//	wait time=DURATION
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
	lease  *lease.Machine
	method *Method
	now    time.Duration
	jobs   []*member
}

// member is a job with at most one group in flight.
type member struct {
	lease.Join
	asks  int64
	group int // the next one
	round int
}

func newScript(t *testing.T, d *datadriven.TestData) *script {
	var capacity, split int
	d.ScanArgs(t, "capacity", &capacity)
	d.ScanArgs(t, "split", &split)
	s := &script{method: New(Options{Split: split})}
	s.lease = lease.NewMachine(lease.Options{Still: -1, Methods: func(string) lease.Method { return s.method }})
	s.step(lease.Input{Capacity: &lease.Capacity{Pages: capacity, Method: "pairs"}})
	return s
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
		if m.group++; m.group == len(m.Body) {
			m.group = 0
			m.round++
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
		var pages string
		d.ScanArgs(t, "pages", &pages)
		m.Peak = m.Base
		for word := range strings.SplitSeq(pages, "-") {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			m.Peak = max(m.Peak, n)
			m.Body = append(m.Body, lease.Group{Pages: n, Time: duration()})
		}
		s.jobs = append(s.jobs, m)
		return s.step(lease.Input{Join: &m.Join})
	case "ask":
		m := s.of(job)
		m.asks++
		rest := 0
		for _, g := range m.Body[m.group:] {
			rest = max(rest, g.Pages)
		}
		held, _ := s.lease.Holds(job)
		return s.step(lease.Input{Want: &lease.Want{Job: job, Ask: m.asks, First: m.group == 0,
			Last: m.group == len(m.Body)-1, Group: m.group, Rest: max(rest, m.Base),
			Hold: max(m.Body[m.group].Pages, min(held, rest), m.Base)}})
	case "pass":
		m := s.of(job)
		hold := m.Base
		if m.group > 0 {
			hold = min(m.Body[m.group].Pages, m.Body[m.group-1].Pages)
		}
		return s.step(lease.Input{Passed: &lease.Passed{Job: job, Seen: m.asks, Hold: hold}})
	case "leave":
		s.jobs = slices.DeleteFunc(s.jobs, func(m *member) bool { return m.Job == job })
		return s.step(lease.Input{Leave: &lease.Leave{Job: job}})
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
