package zico

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

// TestWalks plays the scripts in testdata: jobs in virtual time, each of which has up to two groups in flight, as an
// executor issues them. The commands:
//
//	new pages=N                                                a lease under this package's scheduler
//	capacity pages=N
//	job name=J base=N groups=(N,N...) times=(MS,MS...) [x=N]   one that joins now: pages of each group, milliseconds
//	                                                           of its kernels; they take N times as long
//	slow name=J x=N                                            from the next group on
//	rejoin                                                     the lease ends, and another takes its place
//	go until=MS                                                answers with the iterations that ended in the meantime
//
// An answer has a line per iteration: when it was to begin, by how much it was shifted, for how long its groups waited
// within it, and when all of it had ended; and then how many pages the jobs held at most.
func TestWalks(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &walk{t: t}
		datadriven.RunTest(t, path, w.command)
	})
}

// walk is a lease and its jobs in virtual time.
type walk struct {
	t         *testing.T
	m         *lease.Machine
	scheduler *Scheduler
	now       time.Duration
	capacity  lease.Capacity
	jobs      []*walker
	most      int
	out       strings.Builder
}

// walker is a job. The pages of its groups lie one over another, so that those of two are those of the larger one.
type walker struct {
	lease.Join
	needs  []int // pages of each group
	times  []time.Duration
	factor int

	joined, asking bool
	ask            int64
	next           int // group
	flight         []flying
	hold           int
	senior         int64
	want           lease.Want
	iteration      int
	wanted         time.Duration // since when it asks
	walks          []iteration   // that have not ended
}

// flying is a group in flight. The first one has its kernels on the device.
type flying struct {
	group int
	end   time.Duration
}

type iteration struct {
	number, remaining    int // remaining: groups
	asked, shift, waited time.Duration
}

func (w *walk) newMachine() {
	w.m = lease.NewMachine(lease.Options{Methods: func(string) lease.Method {
		w.scheduler = New()
		return w.scheduler
	}})
}

func (w *walk) command(t *testing.T, d *datadriven.TestData) string {
	number := func(key string, otherwise int) int {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &otherwise)
		}
		return otherwise
	}
	numbers := func(key string) (all []int) {
		for _, arg := range d.CmdArgs {
			for _, v := range arg.Vals {
				if arg.Key == key {
					n, err := strconv.Atoi(v)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, n)
				}
			}
		}
		return all
	}
	var name string
	if d.HasArg("name") {
		d.ScanArgs(t, "name", &name)
	}
	switch d.Cmd {
	case "new":
		*w = walk{t: t, capacity: lease.Capacity{Pages: number("pages", 0), Method: "zico"}}
		w.newMachine()
		w.tell(lease.Input{Capacity: &w.capacity})
	case "capacity":
		w.capacity.Pages = number("pages", 0)
		w.capacity.Number++
		w.tell(lease.Input{Capacity: &w.capacity})
	case "job":
		j := &walker{factor: number("x", 1), ask: 1, Join: lease.Join{Job: lease.Job(name), Base: number("base", 0)}}
		j.Ask = 1
		times := numbers("times")
		j.needs = numbers("groups")
		for i, need := range j.needs {
			j.Body = append(j.Body, lease.Group{Pages: max(j.needs[max(0, i-1)], need),
				Time: time.Duration(times[i]) * time.Millisecond})
			j.Peak = max(j.Peak, need)
			j.times = append(j.times, j.Body[i].Time)
		}
		w.jobs = append(w.jobs, j)
		w.tell(lease.Input{Join: &j.Join})
		if !j.joined {
			return w.m.String()
		}
		w.wants(j)
	case "slow":
		w.find(lease.Job(name)).factor = number("x", 1)
	case "rejoin":
		w.rejoin()
	case "go":
		w.goOn(time.Duration(number("until", 0)) * time.Millisecond)
		fmt.Fprintf(&w.out, "at most %d pages", w.most)
		if w.scheduler.turns {
			w.out.WriteString(", the jobs take turns")
		}
		w.out.WriteByte('\n')
		w.most = 0
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	text := w.out.String()
	w.out.Reset()
	return text
}

func (w *walk) find(name lease.Job) *walker {
	return w.jobs[slices.IndexFunc(w.jobs, func(j *walker) bool { return j.Job == name })]
}

// rejoin tells a new machine what the jobs hold.
func (w *walk) rejoin() {
	w.newMachine()
	for _, j := range w.jobs {
		r := lease.Rejoin{Join: j.Join, Hold: j.hold}
		r.Ask = j.ask
		if j.asking {
			r.Ask--
		}
		if j.next > 0 {
			r.Group, r.Seniority = j.next-1, j.senior
			for _, g := range j.Body[r.Group:] {
				r.Rest = max(r.Rest, g.Pages)
			}
		} else {
			r.Group = len(j.Body) - 1
		}
		w.tell(lease.Input{Rejoin: &r})
	}
	for _, j := range w.jobs {
		if j.asking {
			w.tell(lease.Input{Want: new(j.want)})
		}
	}
	w.tell(lease.Input{Capacity: &w.capacity})
}

// goOn goes from one event to the next.
func (w *walk) goOn(until time.Duration) {
	for {
		next, at := until, -1
		for i, j := range w.jobs {
			if len(j.flight) > 0 && j.flight[0].end < next {
				next, at = j.flight[0].end, i
			}
		}
		if wake, ok := w.m.Wake(); ok && wake < next {
			w.now = wake
			w.tell(lease.Input{})
			continue
		}
		if w.now = next; at < 0 {
			return
		}
		w.ends(w.jobs[at])
	}
}

// ends takes that the kernels of a job's oldest group have ended.
func (w *walk) ends(j *walker) {
	g := j.flight[0]
	if j.flight = j.flight[1:]; len(j.flight) > 0 {
		w.begins(j)
	}
	i := &j.walks[0]
	if i.remaining--; i.remaining == 0 {
		fmt.Fprintf(&w.out, "%s %d: at %v, shift %v, waits %v, until %v\n", j.Job, i.number, i.asked, i.shift, i.waited,
			w.now)
		j.walks = j.walks[1:]
	}
	if hold := j.holds(g.group); hold < j.hold {
		j.hold = hold
		w.tell(lease.Input{Passed: &lease.Passed{Job: j.Job, Seen: j.seen(), Hold: hold}})
	}
	w.wants(j)
}

// holds is what a job holds with its groups in flight, after one has ended.
func (j *walker) holds(ended int) int {
	hold := j.Base
	if len(j.flight) == 0 && ended < len(j.Body)-1 { // it waits: with what the next group reads
		hold = max(hold, min(j.needs[ended], j.needs[ended+1]))
	}
	for _, g := range j.flight {
		hold = max(hold, j.needs[g.group])
	}
	return hold
}

// seen is the number of the newest grant.
func (j *walker) seen() int64 {
	if j.asking {
		return j.ask - 1
	}
	return j.ask
}

// begins has the device begin with the oldest group of a job.
func (w *walk) begins(j *walker) {
	g := &j.flight[0]
	g.end = w.now + j.times[g.group]*time.Duration(j.factor)
}

// wants asks for the next group of a job if fewer than two are in flight. While it waits it says what it holds.
func (w *walk) wants(j *walker) {
	if len(j.flight) > 1 {
		return
	}
	if !j.asking {
		j.asking, j.wanted = true, w.now
		j.ask++
	}
	n := j.next
	rest := 0
	for _, g := range j.Body[n:] {
		rest = max(rest, g.Pages)
	}
	last := len(j.needs) - 1
	want := lease.Want{Job: j.Job, Ask: j.ask, First: n == 0, Last: n == last, Rest: rest,
		Hold: max(j.hold, j.needs[n]), Group: n}
	if want != j.want {
		j.want = want
		w.tell(lease.Input{Want: &want})
	}
}

// tell tells the lease, and carries out what it answers.
func (w *walk) tell(in lease.Input) {
	in.Now = w.now
	for _, out := range w.m.Step(in) {
		if out.Kind != lease.Grant {
			w.t.Fatalf("at %v: %v", w.now, out)
		}
		w.granted(w.find(out.Job), out)
	}
	total := 0
	for _, j := range w.jobs {
		total += j.hold
	}
	w.most = max(w.most, total)
}

func (w *walk) granted(j *walker, out lease.Output) {
	if !j.joined {
		j.joined, j.hold = true, j.Base
		return
	}
	if j.want.First {
		j.iteration++
		j.senior = out.Seniority
		j.walks = append(j.walks, iteration{number: j.iteration, asked: j.wanted, shift: w.now - j.wanted,
			remaining: len(j.needs)})
	} else {
		j.walks[len(j.walks)-1].waited += w.now - j.wanted
	}
	j.asking, j.hold = false, max(j.hold, j.needs[j.next])
	j.flight = append(j.flight, flying{group: j.next})
	if j.next = (j.next + 1) % len(j.needs); len(j.flight) == 1 {
		w.begins(j)
	}
	w.wants(j)
}
