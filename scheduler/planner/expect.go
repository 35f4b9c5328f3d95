package planner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tensile/device/lease"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
)

// Together is what is expected of jobs that share memory by gates.
type Together struct {
	Capacity graph.Bytes // within which they run
	Least    graph.Bytes // the memory with which they can, see scheduler.Result.Least
	// ExpectedEOR is the time in which the jobs do what they would do in a second if they took turns, each alone and
	// without a plan: below 1 they are faster than that. Jobs has, per job, how long an iteration of it takes in rounds
	// of such turns.
	ExpectedEOR float64
	Jobs        []float64
	Iterations  []time.Duration // per job
}

// Course is how a job goes through an iteration alone, by the groups of its program.
type Course struct {
	Weight int           // as in lease.Join
	Alone  time.Duration // of an iteration without a plan
	Base   program.Pages
	Peak   int
	Parts  []Part // per group
	// Out and In are how long the copies of an iteration take in each direction, with the whole link.
	Out, In time.Duration
}

// Part is the course of a group: how long the compute unit has it, and how long after that all of it has ended.
type Part struct {
	Need program.Pages
	Rest int      // see program.RestsInFlight
	Use  cost.Use // Launch: also what the unit stands still
	Lag  time.Duration
}

// Took is how long the compute unit has the group.
func (p *Part) Took() time.Duration { return p.Use.Launch + p.Use.Work }

// Course returns the course of a job that trains by a program, each step and copy of which takes so long. Alone and
// Weight are the caller's to set.
func (d Device) Course(p *program.Program, takes program.Durations) Course {
	divided := compile.Divide(p, d.page(), 0)
	t := program.Time(p, takes)
	rests := program.RestsInFlight(p, &p.Body, divided.Body)
	c := Course{Base: divided.Base, Peak: max(divided.Peak(), rests[0])}
	var computed, ended time.Duration
	for i, g := range divided.Body {
		part := Part{Need: g.Need, Rest: rests[i]}
		from := computed
		for k := g.From; k < g.To; k++ {
			command := &p.Body.Commands[k]
			ended = max(ended, t.End[k])
			switch command.Kind {
			case program.Out:
				c.Out += t.End[k] - t.Start[k]
			case program.In:
				c.In += t.End[k] - t.Start[k]
			}
			if command.Kind.Unit() == program.Compute {
				computed = max(computed, t.End[k])
				d.Sharing.Add(&part.Use, t.End[k]-t.Start[k])
			}
		}
		part.Use.Launch = max(0, computed-from-part.Use.Work)
		part.Lag = max(0, ended-computed)
		c.Parts = append(c.Parts, part)
	}
	return c
}

// Expect says how fast jobs get on within a capacity, a number of pages. It goes through their courses in virtual time:
// a lease grants their groups, one ahead of the one that the compute unit has, and the unit is shared by those that
// have one. Where the copies of two jobs overlap, the link is taken to be shared as the unit is; jobs that would copy
// more than the link can are slower in proportion. It returns how much each gets done in a unit of time, as a share of
// what it gets done alone and without a plan; an error if the jobs do not fit.
func Expect(courses []Course, capacity int, sharing cost.Sharing) ([]float64, error) {
	return expect(courses, capacity, sharing, measured)
}

// expect is Expect over so many iterations of each job at least.
func expect(courses []Course, capacity int, sharing cost.Sharing, iterations float64) ([]float64, error) {
	f := &fold{machine: lease.NewMachine(lease.Options{Still: -1}), sharing: sharing,
		jobs: make([]folded, len(courses)), named: make(map[lease.Job]int)}
	holds := make(map[*Part]map[flight]int) // by the first of the parts, which equal jobs share
	f.stepLease(lease.Input{Capacity: &lease.Capacity{Pages: capacity}})
	for i := range courses {
		parts := &courses[i].Parts[0]
		if holds[parts] == nil {
			holds[parts] = make(map[flight]int)
		}
		f.jobs[i] = folded{Course: &courses[i], name: lease.Job(fmt.Sprint(i)), holds: holds[parts]}
		f.named[f.jobs[i].name] = i
		for k := range courses[i].Parts {
			f.jobs[i].took += float64(courses[i].Parts[k].Took())
		}
		f.jobs[i].took = max(1, f.jobs[i].took)
		base := courses[i].Base.Count()
		f.stepLease(lease.Input{Join: &lease.Join{Job: f.jobs[i].name, Ask: 1, Base: base, Peak: max(base,
			courses[i].Peak),
			Weight: courses[i].Weight}})
	}
	for i := range f.jobs {
		if !f.jobs[i].joined {
			return nil, fmt.Errorf("planner: job %d does not fit into %d pages beside the others", i, capacity)
		}
		f.askNext(i)
	}
	return f.measure(iterations), nil
}

// Rates is Expect within a capacity in bytes.
func (d Device) Rates(courses []Course, capacity graph.Bytes) ([]float64, error) {
	return Expect(courses, int(capacity/d.page()), d.Sharing)
}

// Guess is Rates in about a third of the time. How far jobs have come over few iterations depends on who has waited
// last, so that equal jobs, those that share their Parts, are said to be as fast as they are in the mean.
func (d Device) Guess(courses []Course, capacity graph.Bytes) ([]float64, error) {
	rates, err := expect(courses, int(capacity/d.page()), d.Sharing, guessed)
	if err != nil {
		return nil, err
	}
	type kind struct {
		parts  *Part
		weight int
	}
	sum, count := make(map[kind]float64), make(map[kind]float64)
	of := func(i int) kind { return kind{&courses[i].Parts[0], courses[i].Weight} }
	for i, rate := range rates {
		sum[of(i)] += rate
		count[of(i)]++
	}
	for i := range rates {
		rates[i] = sum[of(i)] / count[of(i)]
	}
	return rates, nil
}

// Expect says what is expected of a request's planned jobs within a capacity of at least Planned.Least. It goes through
// some iterations of theirs, which takes some milliseconds.
func (d Device) Expect(ctx context.Context, p *Planned, r *scheduler.Request, capacity graph.Bytes) (*Together,
	error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	courses := d.coursesOf(p, r)
	var round time.Duration
	for i := range courses {
		round += courses[i].Alone
	}
	rates, err := d.Rates(courses, capacity)
	if err != nil {
		return nil, err
	}
	t := &Together{Capacity: capacity, Least: p.Least, Jobs: make([]float64, len(rates))}
	for i, rate := range rates {
		t.ExpectedEOR += rate
		took := float64(courses[i].Alone) / max(1e-9, rate)
		t.Jobs[i] = took / float64(round)
		t.Iterations = append(t.Iterations, time.Duration(took))
	}
	t.ExpectedEOR = 1 / t.ExpectedEOR
	return t, nil
}

// Speed is how fast a job is expected to be, as a share of its speed when an iteration takes so long, as alone and
// without a plan.
func (t *Together) Speed(alone time.Duration, job int) float64 {
	return float64(alone) / float64(max(1, t.Iterations[job]))
}

// WeightedTime is how long iterations of a request's planned jobs take together, by weight: as expected of jobs that
// share memory by gates, else by their plans.
func (p *Planned) WeightedTime(r *scheduler.Request) (sum time.Duration) {
	for i := range p.Jobs {
		took := p.Timing(i).Iteration
		if p.Expected != nil {
			took = p.Expected.Iterations[i]
		}
		sum += took * time.Duration(r.Jobs[i].Worth())
	}
	return sum
}

// fold is the virtual time of Expect, in nanoseconds.
type fold struct {
	machine *lease.Machine
	sharing cost.Sharing
	jobs    []folded
	named   map[lease.Job]int
	now     float64

	known   bool      // rates are those of the groups that the unit has
	rates   []float64 // per job
	working []int     // jobs of which the unit has a group
	uses    []cost.Use
	room    cost.Room
}

// folded is a job in virtual time. Its groups are counted over all iterations.
type folded struct {
	*Course
	// name is the job's name at the lease.
	name lease.Job
	// holds are how many pages the job has with some groups in flight.
	holds map[flight]int
	// joined says that the lease has granted its Join.
	joined bool
	// asking says that it asks for the group after those that were granted.
	asking bool
	// granted is how many groups were granted.
	granted int
	// begun is how many groups the unit has got.
	begun int
	// passed is how many groups have ended with all that belongs to them.
	passed int
	// left is what the unit still needs for the group that it has, alone.
	left float64
	// ends are when the groups end that the unit is done with and that have not passed.
	ends []float64
	// took is what an iteration takes alone.
	took float64
	// done is how many iterations were done.
	done float64
}

// flight is so many groups from one of an iteration on that were granted and have not passed.
type flight struct{ from, groups int }

// partOf returns a group.
func (j *folded) partOf(group int) *Part { return &j.Parts[group%len(j.Parts)] }

// isWorking reports whether the unit has a group of the job.
func (j *folded) isWorking() bool { return j.begun > j.passed+len(j.ends) }

// askNumber returns the number of the newest grant. The Join has the first.
func (j *folded) askNumber() int64 { return int64(j.granted + 1) }

// heldCount returns how many pages the job has with groups granted up to one.
func (j *folded) heldCount(granted int) int {
	of := flight{j.passed % len(j.Parts), granted - j.passed}
	pages, known := j.holds[of]
	if !known {
		pages = j.heldPages(granted).Count()
		j.holds[of] = pages
	}
	return pages
}

// heldPages returns the pages that the job has with groups granted up to one.
func (j *folded) heldPages(granted int) (held program.Pages) {
	if j.passed == granted {
		if granted%len(j.Parts) == 0 {
			return j.Base
		}
		before := j.partOf(granted - 1).Need
		return before.Without(before.Without(j.partOf(granted).Need)) // with what is read later
	}
	for g := j.passed; g < granted; g++ {
		held = held.Union(j.partOf(g).Need)
	}
	return held
}

// stepLease tells the lease something, and carries out what it answers.
func (f *fold) stepLease(in lease.Input) {
	in.Now = time.Duration(f.now)
	for _, out := range f.machine.Step(in) {
		i := f.named[out.Job]
		j := &f.jobs[i]
		switch {
		case out.Kind != lease.Grant:
			panic(fmt.Sprintf("planner: the lease says %v", out))
		case !j.joined:
			j.joined = true
		default:
			j.granted, j.asking = j.granted+1, false
			f.startNext(i)
		}
	}
}

// askNext asks for the next group of a job, if none is ahead of the one that the unit has.
func (f *fold) askNext(i int) {
	j := &f.jobs[i]
	if j.granted > j.begun {
		return
	}
	j.asking = true
	n := j.granted % len(j.Parts)
	f.stepLease(lease.Input{Want: &lease.Want{Job: j.name, Ask: j.askNumber() + 1, First: n == 0,
		Last: n == len(j.Parts)-1,
		Rest: j.partOf(n).Rest, Hold: j.heldCount(j.granted + 1)}})
}

// startNext gives the unit the next group of a job, if it was granted and the one before is done.
func (f *fold) startNext(i int) {
	j := &f.jobs[i]
	if j.isWorking() || j.granted == j.begun {
		return
	}
	j.left = float64(j.partOf(j.begun).Took())
	j.begun++
	f.known = false
	f.askNext(i)
}

// speeds returns how fast each job gets on with the group that the unit has, against alone.
func (f *fold) speeds() []float64 {
	if f.known {
		return f.rates
	}
	f.known, f.working, f.uses = true, f.working[:0], f.uses[:0]
	f.rates = slices.Grow(f.rates[:0], len(f.jobs))[:len(f.jobs)]
	for i := range f.jobs {
		f.rates[i] = 0
		if j := &f.jobs[i]; j.isWorking() {
			f.working, f.uses = append(f.working, i), append(f.uses, j.partOf(j.begun-1).Use)
		}
	}
	for k, stretch := range f.sharing.SlowdownsIn(&f.room, f.uses) {
		u := f.uses[k]
		beside := float64(u.Launch) + float64(stretch*float64(u.Work))
		f.rates[f.working[k]] = float64(u.Launch+u.Work) / max(1, beside)
	}
	return f.rates
}

// step goes on to the next end of a group.
func (f *fold) step() {
	speeds := f.speeds()
	wait, at, lagging := math.Inf(1), -1, false
	for i := range f.jobs {
		j := &f.jobs[i]
		if j.isWorking() {
			if t := j.left / max(speeds[i], 1e-9); t < wait {
				wait, at, lagging = t, i, false
			}
		}
		if len(j.ends) > 0 && j.ends[0]-f.now < wait {
			wait, at, lagging = max(0, j.ends[0]-f.now), i, true
		}
	}
	if at < 0 {
		panic("planner: all jobs wait for the lease")
	}
	f.now += wait
	for i := range f.jobs {
		if j := &f.jobs[i]; j.isWorking() {
			did := min(j.left, float64(wait*speeds[i]))
			j.left -= did
			j.done += did / j.took
		}
	}
	j := &f.jobs[at]
	if lagging {
		j.ends = slices.Delete(j.ends, 0, 1)
		j.passed++
		f.stepLease(lease.Input{Passed: &lease.Passed{Job: j.name, Seen: j.askNumber(), Hold: j.heldCount(j.granted)}})
		if j.asking || !j.isWorking() {
			f.askNext(at)
		}
		return
	}
	j.left, f.known = 0, false
	end := f.now + float64(j.partOf(j.begun-1).Lag)
	if n := len(j.ends); n > 0 {
		end = max(end, j.ends[n-1])
	}
	j.ends = append(j.ends, end)
	f.startNext(at)
}

// How many iterations of each job pass before measuring, and how many are measured at least: more than twice as many as
// may overtake others in the lease's queue.
const (
	before   = 2
	measured = 20
	guessed  = 6 // by Guess
)

// measure lets some iterations pass and then measures over some more.
func (f *fold) measure(iterations float64) []float64 {
	const maxSteps = 1 << 17
	least := func() float64 {
		done := math.Inf(1)
		for i := range f.jobs {
			done = min(done, f.jobs[i].done)
		}
		return done + 1e-9
	}
	steps := 0
	for ; least() < before && steps < maxSteps; steps++ {
		f.step()
	}
	since := f.now
	for i := range f.jobs {
		f.jobs[i].done = 0
	}
	for ; least() < iterations && steps < 2*maxSteps; steps++ {
		f.step()
	}
	var out, in float64 // how long the link is busy in a unit of time
	for i := range f.jobs {
		j := &f.jobs[i]
		j.done /= max(1, f.now-since)
		out, in = out+float64(j.done*float64(j.Out)), in+float64(j.done*float64(j.In))
	}
	rates := make([]float64, len(f.jobs))
	for i := range f.jobs {
		j := &f.jobs[i]
		rates[i] = float64(j.done*float64(j.Alone)) / max(1, out, in)
	}
	return rates
}
