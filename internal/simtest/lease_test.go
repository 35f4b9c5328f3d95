package simtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"tensile/controller"
	"tensile/device"
	"tensile/device/lease"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/plan/program"
	"tensile/wire"
)

// hostLease is the lease of the device that all executors share, a process of its own: what these say, and what it
// answers, is on its way for a while. Messages of a process keep their order, and it hears when that has died.
type hostLease struct {
	w        *world
	machine  *lease.Machine
	jobs     map[lease.Job]*process    // that it knows, by their names in the machine
	capacity []lease.Capacity          // those that it heard of, the newest last
	wants    map[lease.Job]*lease.Want // the newest
	began    map[lease.Job]int         // iterations that go on: how many capacities there were when they began
	ending   []lease.Job               // iterations that have been granted their last pages just now
	granted  int                       // pages, a moment ago
	drained  int
}

func newHostLease(w *world) *hostLease {
	return &hostLease{w: w, machine: lease.NewMachine(lease.Options{}),
		jobs: make(map[lease.Job]*process), capacity: make([]lease.Capacity, 1),
		wants: make(map[lease.Job]*lease.Want), began: make(map[lease.Job]int)}
}

// of is the name of a process's job in the machine: another incarnation of it may be elsewhere.
func (p *process) of(job lease.Job) lease.Job { return job + lease.Job(" "+p.life) }

// Step implements executor.Lease.
func (p *process) Step(in lease.Input) []lease.Output {
	l := p.site.lease
	p.asks = append(p.asks, in)
	p.w.surely(func() {
		if p.dead {
			return
		}
		in := p.asks[0]
		p.asks = p.asks[1:]
		l.hear(p, in)
	})
	return nil
}

// hear takes an input of a process.
func (l *hostLease) hear(p *process, in lease.Input) {
	switch {
	case in.Join != nil:
		j := *in.Join
		j.Job = p.of(j.Job)
		in.Join, l.jobs[j.Job] = &j, p
	case in.Want != nil:
		w := *in.Want
		w.Job = p.of(w.Job)
		in.Want, l.wants[w.Job] = &w, &w
	case in.Passed != nil:
		q := *in.Passed
		q.Job = p.of(q.Job)
		in.Passed = &q
	case in.Leave != nil:
		in.Leave = &lease.Leave{Job: p.of(in.Leave.Job)}
	case in.Capacity != nil && in.Capacity.Number >= l.capacity[len(l.capacity)-1].Number:
		l.capacity = append(l.capacity, *in.Capacity)
	}
	if l.step(in); in.Leave != nil {
		l.forget(in.Leave.Job)
	}
	l.check()
}

// step tells the machine an input, and puts its answers on their way.
func (l *hostLease) step(in lease.Input) {
	in.Now = l.w.clock
	for _, a := range l.machine.Step(in) {
		if a.Kind == lease.Refuse {
			l.w.t.Fatalf("the lease refuses what %s says: %s: %+v", a.Job, a.Why, in)
		}
		if a.Kind == lease.Drain {
			l.drained++
		}
		if w := l.wants[a.Job]; a.Kind == lease.Grant && w != nil && w.Ask == a.Ask {
			if w.First {
				l.began[a.Job] = len(l.capacity)
			}
			if w.Last {
				l.ending = append(l.ending, a.Job)
			}
		}
		p := l.jobs[a.Job]
		job, _, _ := strings.Cut(string(a.Job), " ")
		a.Job = lease.Job(job)
		p.answers = append(p.answers, a)
		l.w.surely(func() {
			a := p.answers[0]
			p.answers = p.answers[1:]
			if !p.dead {
				p.host.Answer(a)
			}
		})
	}
}

// died hears that a process has ended: its jobs hold nothing.
func (l *hostLease) died(p *process) {
	p.dead = true
	l.w.surely(func() {
		var names []lease.Job
		for name, owner := range l.jobs {
			if owner == p {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			l.step(lease.Input{Leave: &lease.Leave{Job: name}})
			l.forget(name)
			l.check()
		}
	})
}

func (l *hostLease) forget(job lease.Job) {
	delete(l.jobs, job)
	delete(l.wants, job)
	delete(l.began, job)
}

// check holds that jobs were granted no more pages than the lease has, or had when the oldest iteration that goes on
// was promised what it needs, but for what they had a moment ago.
func (l *hostLease) check() {
	l.w.t.Helper()
	granted := 0
	for name := range l.jobs {
		pages, _ := l.machine.Holds(name)
		granted += pages
	}
	promised := len(l.capacity)
	for _, at := range l.began {
		promised = min(promised, at)
	}
	most := 0
	for _, c := range l.capacity[promised-1:] {
		most = max(most, c.Pages)
	}
	if granted > max(most, l.granted) {
		l.w.tell()
		l.w.t.Fatalf("jobs were granted %d pages, and %d a moment ago, the lease has, or had promised, %d\n%s", granted,
			l.granted, most, l.machine)
	}
	l.granted = granted
	for _, job := range l.ending {
		delete(l.began, job)
	}
	l.ending = nil
}

// pages is a device that counts what its jobs hold.
type pages struct {
	device.Pager
	w    *world
	jobs map[device.Job]*pagesJob
}

type pagesJob struct {
	device.PagedJob
	device *pages
	name   string
	paged  bool
}

func countPages(w *world, d device.Device) device.Device {
	return &pages{Pager: d.(device.Pager), w: w, jobs: make(map[device.Job]*pagesJob)}
}

func (d *pages) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	inner, err := d.Pager.Open(g, o)
	if err != nil {
		return nil, err
	}
	j := &pagesJob{PagedJob: inner.(device.PagedJob), device: d, name: o.Name}
	d.jobs[inner] = j
	return j, nil
}

func (d *pages) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	events, err := d.Pager.Next(ctx, wake)
	for i := range events {
		events[i].Job = d.jobs[events[i].Job]
	}
	return events, err
}

// count holds that a job has no more pages than it was granted.
func (j *pagesJob) count(pages int) {
	w := j.device.w
	for _, p := range w.processes {
		if p.device != device.Device(j.device) {
			continue
		}
		granted, _ := p.site.lease.machine.Holds(p.of(lease.Job(j.name)))
		if pages > granted {
			w.tell()
			w.t.Fatalf("job %s holds %d pages, and was granted %d\n%s", j.name, pages, granted, p.site.lease.machine)
		}
	}
}

func (j *pagesJob) Hold(pages program.Pages) error {
	j.paged = true
	j.count(pages.Count())
	return j.PagedJob.Hold(pages)
}

func (j *pagesJob) Reserve(arena graph.Bytes) error {
	page := j.device.Page()
	if n := int((arena + page - 1) / page); n == 0 || !j.paged {
		j.count(n)
	}
	return j.PagedJob.Reserve(arena)
}

// goOn lets three seconds pass again and again, in which processes that do not stand still work and are heard.
func (w *world) goOn(times int) {
	for range times {
		w.clock += 3 * time.Second
		w.step(controller.Input{Tick: &controller.Tick{}})
		for _, at := range w.sites {
			if at.lease != nil {
				at.lease.step(lease.Input{})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(w.processes)) {
			if p := w.processes[name]; !p.stands {
				p.step(agent.Input{Tick: true})
				p.work()
			}
		}
		for n := len(w.mail); n > 0; n-- {
			w.deliver()
		}
	}
}

// share has the world's jobs share memory.
func (w *world) share(s wire.Sharing) {
	if w.config.MemorySharing = s; s == wire.NoSharing {
		return
	}
	for _, at := range w.sites {
		at.lease = newHostLease(w)
		open := at.open
		at.open = func() device.Device { return countPages(w, open()) }
	}
	w.config.Page = w.own.planner().Page
}
