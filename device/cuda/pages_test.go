package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// smallPage makes the arenas of small networks some dozens of pages large.
const smallPage = 256

// paged opens a device that maps small pages.
func paged(t testing.TB, seed uint64) *cuda.Device {
	t.Helper()
	return open(t, fakecuda.New(fakecuda.Options{Seed: seed, Page: smallPage}))
}

// cut is a way to issue sections: in parts, each with the pages that it needs.
type cut struct {
	groups func(s *program.Section) []program.Group
	base   program.Pages
	holds  bool // pages are held; else the arena is whole
}

// byGroups divides a program with a growth of every bytes.
func byGroups(t testing.TB, proven proof.Proven, every graph.Bytes) cut {
	t.Helper()
	divided, err := compile.ProveGroups(proven, smallPage, every)
	if err != nil {
		t.Fatal(err)
	}
	d := divided.Groups()
	return cut{base: d.Base, holds: true, groups: func(s *program.Section) []program.Group {
		if all := d.Of(proven.Program(), s); all != nil {
			return all
		}
		return []program.Group{{From: 0, To: len(s.Commands), Need: d.Base}}
	}}
}

// atRandom cuts anywhere.
func atRandom(seed uint64) cut {
	rng := rand.New(rand.NewPCG(seed, 5))
	return cut{groups: func(s *program.Section) (all []program.Group) {
		for from := 0; from < len(s.Commands); {
			to := from + 1 + rng.IntN(len(s.Commands)-from)
			all = append(all, program.Group{From: from, To: to})
			from = to
		}
		return all
	}}
}

// inParts trains some iterations by a program, from Home to Home, with two parts issued at a time at most. It returns
// what the training leaves, the events, and the most pages that were held.
func inParts(t testing.TB, d *cuda.Device, proven proof.Proven, iterations int, c cut) (_ outcome, _ []device.Event,
	most int, err error) {
	t.Helper()
	p := proven.Program()
	r := &trainer{g: p.Graph, outputs: outcome{}}
	opened, err := d.Open(r.g, device.JobOptions{Name: "job", Seed: 3, Input: r.input, Output: r.output})
	if err != nil {
		return nil, nil, 0, err
	}
	j := opened.(device.PagedJob)
	defer func() { err = errors.Join(err, j.Close()) }()
	for _, s := range r.g.Storages {
		if s.Role.Persistent() {
			fill(j.Host(s.ID), uint64(s.ID))
		}
	}
	var problems []error
	hold := func(pages program.Pages) {
		if c.holds && len(problems) == 0 {
			most = max(most, pages.Count())
			if err := j.Hold(pages); err != nil {
				problems = append(problems, err)
			}
		}
	}
	hold(nil)
	if err := errors.Join(append(problems, j.Load(proven), j.Reserve(p.Arena))...); err != nil {
		return nil, nil, 0, err
	}
	hold(c.base)
	var flying []program.Group // each with its commands that have not ended as From and To
	pass := func(limit int) error {
		for len(flying) > limit {
			events, err := d.Next(t.Context(), nil)
			if err != nil {
				return err
			}
			r.events = append(r.events, events...)
			for n := len(events); n > 0; { // of the oldest, or of the next ones, which wait for it
				step := min(n, flying[0].To)
				flying[0].To -= step
				if n -= step; flying[0].To == 0 {
					flying = flying[1:]
				}
			}
		}
		return nil
	}
	issue := func(s *program.Section, iteration int, drain bool) error {
		for _, g := range c.groups(s) {
			limit := 1
			if c.holds { // events of two parts come in any order
				limit = 0
			}
			if err := pass(limit); err != nil {
				return err
			}
			if hold(g.Need.Union(c.base)); len(problems) > 0 {
				return problems[0]
			}
			j.Issue(s, g.From, g.To, iteration, drain)
			if n := g.To - g.From; n > 0 {
				flying = append(flying, program.Group{To: n})
			}
		}
		return nil
	}
	err = issue(&p.Prologue, 0, true)
	for i := range iterations {
		if err == nil {
			err = issue(&p.Body, i, false)
		}
	}
	if err == nil {
		err = issue(&p.Epilogue, iterations, true)
	}
	if err == nil {
		err = pass(0)
	}
	if err != nil {
		return nil, nil, most, err
	}
	for _, s := range r.g.Storages {
		if s.Role.Persistent() {
			r.outputs.keep(s.Name, j.Host(s.ID))
		}
	}
	return r.outputs, r.events, most, j.Reserve(0)
}

// A training in parts, cut anywhere or by groups that hold what they need, leaves the bits of one that is not, and each
// command ends once.
func TestParts(t *testing.T) {
	plans := long.Rounds(3, 8)
	held, all := 0, 0
	for plan := range plans {
		whole := paged(t, plan)
		proven := randomTiny(t, whole, plan)
		want, err := train(t, whole, proven, 3)
		if err != nil {
			t.Fatal(err)
		}
		closed(t, whole)
		p := proven.Program()
		arena := int((p.Arena + smallPage - 1) / smallPage)
		for name, c := range map[string]cut{
			"random": atRandom(plan), "groups": byGroups(t, proven, 1), "large groups": byGroups(t, proven, p.Arena/4),
		} {
			d := paged(t, plan)
			got, events, most, err := inParts(t, d, proven, 3, c)
			if err != nil {
				t.Fatalf("plan %d, %s: %v", plan, name, err)
			}
			if what := got.differs(want); what != "" {
				t.Errorf("plan %d, %s: %s has other bits", plan, name, what)
			}
			ended := make(map[string]int)
			for _, e := range events {
				ended[fmt.Sprintf("%p %d %d", e.Section, e.Iteration, e.Index)]++
			}
			if n := len(p.Prologue.Commands) + 3*len(p.Body.Commands) + len(p.Epilogue.Commands); len(ended) != n ||
				len(events) != n {
				t.Errorf("plan %d, %s: %d events of %d commands, want %d", plan, name, len(events), len(ended), n)
			}
			if name == "groups" {
				t.Logf("plan %d: at most %d of %d pages are held, %d at the boundary", plan, most, arena,
					c.base.Count())
				held, all = held+most, all+arena
			}
			closed(t, d)
		}
	}
	if 10*held > 9*all {
		t.Errorf("%d of %d pages were held", held, all)
	}
}

// What is issued at once and what is issued in parts that need not wait takes the same time.
func TestPartsTime(t *testing.T) {
	var ends []map[device.Event]device.Event
	for _, parts := range []int{1, 4} {
		d := slow(t)
		s := sit(t, d, swapped(t, d))
		ended := past{}
		s.j.Issue(&s.p.Prologue, 0, len(s.p.Prologue.Commands), 0, true)
		ended.wait(t, d, s, &s.p.Prologue, 0)
		for i := range 3 {
			n := len(s.p.Body.Commands)
			for part := range parts {
				s.j.Issue(&s.p.Body, part*n/parts, (part+1)*n/parts, i, false)
			}
		}
		times := make(map[device.Event]device.Event)
		for i := range 3 {
			ended.wait(t, d, s, &s.p.Body, i)
			for index := range s.p.Body.Commands {
				e := ended.of(s, i, index).Event
				times[device.Event{Iteration: i, Index: index}] = device.Event{Start: e.Start, End: e.End}
			}
		}
		ends = append(ends, times)
		closed(t, d)
	}
	for at, e := range ends[0] {
		other := ends[1][at]
		if diff := max(e.End-other.End, other.End-e.End, e.Start-other.Start, other.Start-e.Start); diff > atOnce {
			t.Errorf("iteration %d, command %d: from %v to %v, in parts from %v to %v", at.Iteration, at.Index, e.Start,
				e.End, other.Start, other.End)
		}
	}
}

// A job is to hold more than the device has: it gets an error that says how much is free, and keeps what it holds.
func TestHoldOutOfMemory(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	facts.Memory = 64 * graph.MiB
	driver := fakecuda.New(fakecuda.Options{Facts: facts})
	d := open(t, driver)
	defer closed(t, d)
	pager, ok := d.Paging().(device.Pager)
	if !ok || pager.Page() != 2*graph.MiB {
		t.Fatalf("%T is no pager of 2 MiB", d.Paging())
	}
	free := func() graph.Bytes {
		free, _, err := driver.Free()
		if err != nil {
			t.Fatal(err)
		}
		return free
	}
	g := devicetest.Tiny()
	var jobs []device.PagedJob
	for _, name := range []string{"first", "second"} {
		j, err := pager.Open(g, device.JobOptions{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j.(device.PagedJob))
	}
	before := free()
	for _, j := range jobs {
		if err := errors.Join(j.Hold(nil), j.Reserve(48*graph.MiB-256)); err != nil {
			t.Fatal(err)
		}
	}
	if now := free(); now != before {
		t.Errorf("two arenas of which nothing is held take %s", before-now)
	}
	first, second := jobs[0], jobs[1]
	kept := program.Pages{{From: 0, To: 2}, {From: 22, To: 24}}
	if err := errors.Join(first.Hold(program.Pages{{From: 1, To: 21}}), second.Hold(kept)); err != nil {
		t.Fatal(err)
	}
	if now := free(); now != before-48*graph.MiB {
		t.Errorf("24 pages take %s", before-now)
	}
	full, ok := errors.AsType[*device.OutOfMemoryError](second.Hold(program.Pages{{From: 1, To: 3}, {From: 4, To: 24}}))
	if !ok || full.Job != "second" || full.Arena != 44*graph.MiB || full.Free != before-48*graph.MiB {
		t.Errorf("got %+v", full)
	}
	if now := free(); now != before-48*graph.MiB {
		t.Errorf("after the error 24 pages take %s", before-now)
	}
	if err := errors.Join(second.Hold(kept), first.Hold(program.Pages{{From: 20, To: 21}})); err != nil {
		t.Fatal(err)
	}
	if now := free(); now != before-10*graph.MiB {
		t.Errorf("5 pages take %s", before-now)
	}
	if err := second.Hold(program.Pages{{From: 1, To: 3}, {From: 4, To: 24}}); err != nil {
		t.Error(err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if now := free(); now < before {
		t.Errorf("closed jobs have %s", before-now)
	}
}

// Where the device cannot map memory, it is no pager.
func TestNoPager(t *testing.T) {
	d := open(t, fakecuda.New(fakecuda.Options{NoPages: true}))
	defer closed(t, d)
	if p, ok := d.Paging().(device.Pager); ok {
		t.Errorf("it is a pager of %v", p.Page())
	}
}

// Mistakes of the caller panic before the device has seen them.
func TestHoldPanics(t *testing.T) {
	for want, do := range map[string]func(d *cuda.Device, j device.PagedJob, p *program.Program){
		"the first Hold of job \"job\" is of pages [0]": func(_ *cuda.Device, j device.PagedJob, _ *program.Program) {
			j.Hold(program.Pages{{From: 0, To: 1}})
		},
		"want none": func(_ *cuda.Device, j device.PagedJob, p *program.Program) {
			j.Reserve(p.Arena)
			j.Hold(nil)
		},
		"Hold of pages [1-2] by job \"job\", in an arena of 512 bytes": func(_ *cuda.Device, j device.PagedJob,
			_ *program.Program) {
			errors.Join(j.Hold(nil), j.Reserve(2*smallPage), j.Hold(program.Pages{{From: 1, To: 3}}))
		},
		"uses other pages than the job holds": func(_ *cuda.Device, j device.PagedJob, p *program.Program) {
			errors.Join(j.Hold(nil), j.Reserve(p.Arena), j.Hold(program.Pages{{From: 0, To: 1}}))
			j.Issue(&p.Prologue, 0, len(p.Prologue.Commands), 0, true)
		},
		"which a in that was issued uses": func(_ *cuda.Device, j device.PagedJob, p *program.Program) {
			all := program.Pages{{From: 0, To: int((p.Arena + smallPage - 1) / smallPage)}}
			errors.Join(j.Hold(nil), j.Reserve(p.Arena), j.Hold(all))
			j.Issue(&p.Prologue, 0, len(p.Prologue.Commands), 0, true)
			j.Hold(nil)
		},
		"takes pages": func(d *cuda.Device, j device.PagedJob, p *program.Program) {
			all := program.Pages{{From: 0, To: int((p.Arena + smallPage - 1) / smallPage)}}
			errors.Join(j.Hold(nil), j.Reserve(p.Arena), j.Hold(all))
			j.Issue(&p.Prologue, 0, len(p.Prologue.Commands), 0, true)
			j.Issue(&p.Body, 0, len(p.Body.Commands), 0, true) // waits for all of the prologue
			j.Hold(compile.Divide(p, smallPage, 0).Base)
		},
		"closed": func(_ *cuda.Device, j device.PagedJob, _ *program.Program) {
			j.Close()
			j.Hold(nil)
		},
	} {
		d := paged(t, 1)
		proven := swapped(t, d)
		opened, err := d.Open(proven.Program().Graph, device.JobOptions{Name: "job"})
		if err == nil {
			err = opened.Load(proven)
		}
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got %s, want %q in it", got, want)
				}
			}()
			do(d, opened.(device.PagedJob), proven.Program())
		}()
		closed(t, d)
	}
}

// TestPagedFailures fails each call of the driver in a training by groups.
func TestPagedFailures(t *testing.T) {
	run := func(driver cuda.Driver) (err error) {
		d, err := cuda.New(driver, cuda.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		proven := swapped(t, d)
		_, _, _, err = inParts(t, d, proven, 1, byGroups(t, proven, 1))
		return err
	}
	whole := fakecuda.New(fakecuda.Options{Page: smallPage})
	if err := run(whole); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, n := range whole.Calls() {
		calls += n
	}
	t.Logf("%d calls: %v", calls, whole.Calls())
	step := long.Or(17, 1)
	failed := make(map[string]int)
	for k := 1; k <= calls; k += step {
		code := []cuda.Code{cuda.InvalidValue, cuda.OutOfMemory, cuda.LaunchFailed}[k%3]
		err := run(fakecuda.New(fakecuda.Options{Page: smallPage, Fail: fakecuda.Failure{Call: k, Code: code}}))
		e, ok := errors.AsType[*cuda.Error](err)
		if !ok || e.Code != code || !strings.Contains(err.Error(), e.Call) {
			t.Errorf("call %d fails with %d: got error %v", k, code, err)
			continue
		}
		failed[e.Call]++
		if strings.Contains(err.Error(), "left at Close") {
			t.Errorf("call %d fails with %d: %v", k, code, err)
		}
	}
	for _, call := range []string{"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemRelease", "cuMemSetAccess",
		"cuMemUnmap"} {
		if failed[call] == 0 && step == 1 {
			t.Errorf("no %s has failed: %v", call, failed)
		}
	}
}
