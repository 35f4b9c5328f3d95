package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	_ "tensile/internal/long"
	"tensile/wire"
)

// A status counts if it is the newest of the one process that has the name.
func TestJudge(t *testing.T) {
	lives := func(s State, life string) *Executor {
		return &Executor{Name: "lab1", State: s, Process: Process{Life: life}, LastStatus: 5}
	}
	for _, c := range []struct {
		x      *Executor
		number int64
		life   string
		leaves bool
		want   Verdict
	}{
		{x: nil, life: "1", want: Stranger},
		{x: nil, life: "1", leaves: true, want: Late},
		{x: lives(Awaited, ""), life: "1", want: Counts},
		{x: lives(Present, "1"), life: "1", number: 6, want: Counts},
		{x: lives(Present, "1"), life: "1", number: 6, leaves: true, want: Counts},
		{x: lives(Silent, "1"), life: "1", number: 5, want: Older},
		{x: lives(Killed, "1"), life: "2", number: 1, want: Second},
		{x: lives(Killed, "1"), life: "2", number: 1, leaves: true, want: Late},
		{x: lives(Gone, "1"), life: "1", number: 6, want: Stranger},
		{x: lives(Dead, "1"), life: "1", number: 6, want: Late},
		{x: lives(Dead, "1"), life: "2", number: 6, want: Stranger},
	} {
		s := &wire.Status{Executor: "lab1", Number: c.number, Life: c.life}
		if c.leaves {
			s.Dead = []string{c.life}
		}
		if got := Judge(c.x, s); got != c.want {
			t.Errorf("%+v: %v, want %v", c, got, c.want)
		}
	}
}

// What is due follows from how long an executor has been silent, and from who watches it.
func TestTick(t *testing.T) {
	p := Patience{Silence: 10 * time.Second, GiveUp: time.Minute}
	watched, shared, deaf := p, p, p
	watched.Watched, shared.Watched, shared.SharesMemory, deaf.Deaf = true, true, true, true
	for _, c := range []struct {
		state    State
		launched bool
		p        Patience
		silent   time.Duration
		want     Due
	}{
		{state: Present, p: p, silent: 10 * time.Second},
		{state: Present, p: p, silent: 11 * time.Second, want: Due{Silent: true}},
		{state: Silent, p: p, silent: 61 * time.Second, want: Due{GiveUp: true}},
		{state: Silent, launched: true, p: p, silent: 61 * time.Second, want: Due{GiveUp: true}},
		{state: Present, p: deaf, silent: 61 * time.Second},
		{state: Present, launched: true, p: watched, silent: 61 * time.Second},
		{state: Awaited, launched: true, p: shared, silent: 61 * time.Second},
		{state: Silent, launched: true, p: shared, silent: 61 * time.Second, want: Due{Kill: true}},
		{state: Killed, launched: true, p: shared, silent: 62 * time.Second},
		{state: Dead, p: p, silent: time.Hour},
		{state: Gone, p: deaf, silent: time.Hour + 1, want: Due{Forget: true}},
	} {
		x := &Executor{State: c.state, Launched: c.launched}
		if got := x.Tick(c.silent, c.p); got != c.want {
			t.Errorf("%+v: due is %+v", c, got)
		}
	}
}

// A second process is told which runs, and since when; one that was heard before is no news.
func TestRival(t *testing.T) {
	x := New("lab1", "", ByHand, wire.Orders{}, 0)
	since := time.Date(2024, 5, 4, 10, 30, 0, 0, time.Local)
	x.Hear(&wire.Status{Life: "1", Host: "box", Since: since.UnixNano()}, time.Second)
	s := &wire.Status{Life: "2", Since: since.Add(25 * time.Hour).UnixNano()}
	if !x.HearRival(s) || x.HearRival(s) {
		t.Error("the process is news once")
	}
	const want = "lab1 runs already on box since 4 May 10:30"
	if got := x.RefuseRival(); got != s || x.Refusal.Reason != want || !x.IsRefused("2") || x.Rival != nil {
		t.Errorf("refused is %+v: %+v, want %q", got, x.Refusal, want)
	}
}

// What an executor may still have of a job stays until neither its orders nor its status name that incarnation.
func TestKeeps(t *testing.T) {
	h := wire.Holding{Executor: "lab1", Life: "1", ID: 7, Incarnation: 2}
	for _, c := range []struct {
		life    string
		ordered int64 // the incarnation that is ordered; 0: none
		said    wire.JobStatus
		keeps   bool
	}{
		{life: "1"},
		{life: "2", keeps: true},
		{life: "1", ordered: 2, keeps: true},
		{life: "1", ordered: 3},
		{life: "1", said: wire.JobStatus{Name: "a", ID: 7, Incarnation: 2}, keeps: true},
		{life: "1", said: wire.JobStatus{Name: "a", ID: 7, Incarnation: 3}},
		{life: "1", said: wire.JobStatus{Name: "a"}, keeps: true},
		{life: "1", said: wire.JobStatus{Name: "b"}},
	} {
		x := &Executor{Name: "lab1", Process: Process{Life: c.life}}
		if c.ordered > 0 {
			x.Orders.Jobs = []wire.Assignment{{Spec: wire.Spec{ID: 7}, Incarnation: c.ordered}}
		}
		if got := x.Keeps(h, "a", &wire.Status{Jobs: []wire.JobStatus{c.said}}); got != c.keeps {
			t.Errorf("%+v: it keeps it: %v", c, got)
		}
	}
}

// Executors are counted per device, and one that has gone not at all.
func TestFleet(t *testing.T) {
	f := Fleet{}
	for i, s := range []State{Present, Leaving, Silent, Killed, Gone, Dead, Awaited, Present} {
		x := New(fmt.Sprint("lab", i), "a", ByHand, wire.Orders{}, 0)
		if x.State = s; i == 7 {
			x.Device, x.LastStatus = "b", 1
		}
		f[x.Name] = x
	}
	if here, silent := f.Count("a"); here != 2 || silent != 2 {
		t.Errorf("%d are here and %d silent, want 2 and 2", here, silent)
	}
	if !f.IsByHand() {
		t.Error("none takes jobs")
	}
	names := make([]string, 0, len(f))
	for _, x := range f.Sorted() {
		names = append(names, x.Name)
	}
	if !slices.IsSorted(names) || len(names) != 8 {
		t.Errorf("sorted are %v", names)
	}
}
