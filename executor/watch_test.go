package executor_test

import (
	"context"
	"fmt"
	"testing"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// watched is a device that looks at what a host does with it: the arenas of all jobs together stay within the budget,
// every command stays within its job's arena, and memory is reserved at rest only.
type watched struct {
	device.Device
	t      *testing.T
	budget graph.Bytes // 0: none
	late   bool        // events are returned only when all that was issued has ended
	jobs   map[device.Job]*watchedJob
	log    []string // reservations, "job size"
}

type watchedJob struct {
	device.Job
	w      *watched
	name   string
	arena  graph.Bytes
	flying int // commands
	plans  int // reservations for a program
}

func watch(t *testing.T, d device.Device, budget graph.Bytes) *watched {
	return &watched{Device: d, t: t, budget: budget, jobs: map[device.Job]*watchedJob{}}
}

func (w *watched) Open(g *graph.Graph, o device.JobOptions) (device.Job, error) {
	place, err := w.Device.Open(g, o)
	if err != nil {
		return nil, err
	}
	j := &watchedJob{Job: place, w: w, name: o.Name}
	w.jobs[place] = j
	return j, nil
}

func (w *watched) Next(ctx context.Context, wake <-chan struct{}) ([]device.Event, error) {
	events, err := w.Device.Next(ctx, wake)
	for w.late && err == nil && len(events) < w.flying() {
		var more []device.Event
		more, err = w.Device.Next(ctx, nil)
		events = append(events, more...)
	}
	for i := range events {
		j := w.jobs[events[i].Job]
		events[i].Job = j
		j.flying--
		if touched := j.Touched(); touched > j.arena {
			w.t.Errorf("job %s touched %d bytes of an arena of %d", j.name, touched, j.arena)
		}
	}
	return events, err
}

func (w *watched) flying() (n int) {
	for _, j := range w.jobs {
		n += j.flying
	}
	return n
}

func (j *watchedJob) Reserve(arena graph.Bytes) error {
	if j.flying != 0 {
		j.w.t.Errorf("job %s reserves %s with %d commands in flight", j.name, arena, j.flying)
	}
	if j.arena = arena; arena > 0 {
		j.plans++
		j.w.log = append(j.w.log, fmt.Sprintf("%s %d", j.name, arena))
	}
	var sum graph.Bytes
	for _, other := range j.w.jobs {
		sum += other.arena
	}
	if j.w.budget > 0 && sum > j.w.budget {
		j.w.t.Errorf("job %s reserves %s: %s of %s in all", j.name, arena, sum, j.w.budget)
	}
	return j.Job.Reserve(arena)
}

func (j *watchedJob) Issue(s *program.Section, from, to, iteration int, drain bool) {
	j.flying += len(s.Commands)
	for i := range s.Commands {
		c := &s.Commands[i]
		for _, a := range append([]program.Address{c.Device, c.Scratch}, append(c.Inputs, c.Outputs...)...) {
			if a.Region == 0 && a.Offset > j.arena {
				j.w.t.Errorf("job %s: command %d reaches byte %d of an arena of %d", j.name, i, a.Offset, j.arena)
			}
		}
	}
	j.Job.Issue(s, from, to, iteration, drain)
}

// plans returns how many programs a job was given memory for.
func (w *watched) plans(name string) int {
	for _, j := range w.jobs {
		if j.name == name {
			return j.plans
		}
	}
	return 0
}
