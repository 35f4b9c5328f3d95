package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tensile/controller"
	"tensile/controller/plans"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// ReplanReport is how much processor time the plans for all jobs of a device take when one comes and when one goes.
type ReplanReport struct {
	Device    string      `json:"device"`
	Jobs      int         `json:"jobs"`
	Models    []string    `json:"models"` // of which there are equally many
	Batch     int         `json:"batch"`
	Budget    graph.Bytes `json:"budget_bytes"`
	Sharing   string      `json:"memory_sharing"`
	First     float64     `json:"all_but_one_cpu_ms"` // plans for all but one, which come together, with their profiles
	Arrival   float64     `json:"arrival_cpu_ms"`     // plans when the last one comes
	Changed   int         `json:"changed_by_arrival"` // jobs that get another plan by that
	Departure float64     `json:"departure_cpu_ms"`   // plans when a job has gone

	Series *ReplanSeries `json:"series,omitempty"`
}

// ReplanSeries is how plans fare over many arrivals and departures, against those that are made anew each time.
type ReplanSeries struct {
	Changes   int     `json:"changes"`
	Jobs      [2]int  `json:"jobs"`             // the fewest and the most that there were
	Arrival   float64 `json:"arrival_cpu_ms"`   // mean processor time of a plan request when a job arrives
	Departure float64 `json:"departure_cpu_ms"` // processor time to plan when a job leaves
	Anew      float64 `json:"anew_cpu_ms"`      // processor time to plan for all jobs from scratch
	Kept      float64 `json:"kept"`             // part of the jobs that keep their plans, in the mean
	// by which the sum of slowdowns is larger than with plans made anew: in the mean, and at most
	Worse float64 `json:"slowdowns_worse"`
	Worst float64 `json:"slowdowns_worst"`
}

// crowd is a controller's machine with one executor that has all jobs, whose plans are made in this goroutine.
type crowd struct {
	machine *controller.Machine
	planner plans.Worker
	now     time.Duration
	number  int64
	cpu     time.Duration  // processor time of the plan requests so far
	changed int            // layouts that these brought
	request *plans.Request // the last
}

// MeasureReplans plans for jobs of TENSILE's five networks on a simulated device of a budget, equally many of each, and
// then for a number of changes: arrivals and departures at random, which leave no fewer than half of the jobs and no
// more than all.
func MeasureReplans(ctx context.Context, jobs, batch int, budget graph.Bytes, sharing wire.Sharing,
	changes int) (*ReplanReport, error) {
	facts, err := cost.Device(networkDevice)
	if err != nil {
		return nil, err
	}
	d := sim.New(facts, sim.Options{})
	defer d.Close()
	on := planner.Describe(d, planner.Roofline(facts))
	config := controller.Config{Device: on.Identity, Name: "sim", Align: on.Align, Out: on.Out, In: on.In,
		Sharing: facts.Sharing(), Budget: budget, MemorySharing: sharing, Page: on.Page, Policy: "tensile",
		OneExecutor: true}
	c := &crowd{machine: controller.NewMachine(config), now: time.Hour,
		planner: plans.Worker{Device: config.SharedDevice(on), Settings: config.PlanSettings()}}
	graphs := make(map[string]*graph.Graph)
	var list []controller.Submission
	for i := range jobs {
		model := paperModels[i%len(paperModels)]
		if graphs[model] == nil {
			w, err := task.Load([]string{model}, task.Settings{Batch: batch})
			if err != nil {
				return nil, err
			}
			graphs[model] = w[0].Graph
		}
		list = append(list, controller.Submission{Graph: graphs[model], Spec: wire.Spec{Name: fmt.Sprint("job", i),
			Model: model, Graph: graphs[model].Digest(), Iterations: 1 << 30}})
	}
	r := &ReplanReport{Device: on.Identity, Jobs: jobs, Models: paperModels, Batch: batch, Budget: budget,
		Sharing: string(sharing)}
	did := func(in controller.Input) (float64, error) {
		c.cpu, c.changed = 0, 0
		err := c.step(ctx, in)
		return report.Milliseconds(c.cpu), err
	}
	if r.First, err = did(controller.Input{Submit: list[:jobs-1]}); err != nil {
		return nil, err
	}
	if r.Arrival, err = did(controller.Input{Submit: list[jobs-1:]}); err != nil {
		return nil, err
	}
	r.Changed = c.changed
	if n := len(c.machine.Records()); n != jobs {
		return nil, fmt.Errorf("%d of %d jobs were taken", n, jobs)
	}
	r.Departure, err = did(controller.Input{Request: &wire.Request{Verb: wire.Stop, Job: "job0"}})
	if err != nil || changes == 0 {
		return r, err
	}
	r.Series, err = c.series(ctx, list, changes)
	return r, err
}

// series has jobs come and go that are like those of a list, of which all but the first are there.
func (c *crowd) series(ctx context.Context, list []controller.Submission, changes int) (*ReplanSeries, error) {
	r := &ReplanSeries{Changes: changes, Jobs: [2]int{len(list) - 1, len(list) - 1}}
	rng := rand.New(rand.NewPCG(1, 20))
	there, gone := slices.Clone(list[1:]), slices.Clone(list[:1])
	arrivals := 0
	for n := range changes {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		c.cpu, c.changed = 0, 0
		arrival := len(gone) > 0 && (len(there) <= len(list)/2 || rng.IntN(2) == 0)
		from, to := &there, &gone
		if arrival {
			from, to = to, from
		}
		i := rng.IntN(len(*from))
		s := (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		in := controller.Input{Request: &wire.Request{Verb: wire.Stop, Job: s.Spec.Name}}
		if arrival {
			s.Spec.Name = fmt.Sprint("again", n)
			in = controller.Input{Submit: []controller.Submission{s}}
			arrivals++
		}
		*to = append(*to, s)
		if err := c.step(ctx, in); err != nil {
			return nil, err
		}
		if arrival {
			r.Arrival += report.Milliseconds(c.cpu)
		} else {
			r.Departure += report.Milliseconds(c.cpu)
		}
		r.Jobs = [2]int{min(r.Jobs[0], len(there)), max(r.Jobs[1], len(there))}
		r.Kept += 1 - float64(c.changed)/float64(len(there))
		request := *c.request
		request.WantSlowdowns = true
		near := slowdowns(c.planner.Plan(ctx, &request))
		request.Incremental = false
		before := processorTime()
		worse := near/slowdowns(c.planner.Plan(ctx, &request)) - 1
		r.Anew += report.Milliseconds(processorTime() - before)
		r.Worse, r.Worst = r.Worse+worse, max(r.Worst, worse)
	}
	r.Arrival /= float64(max(1, arrivals))
	r.Departure /= float64(max(1, changes-arrivals))
	r.Anew, r.Kept, r.Worse = r.Anew/float64(changes), r.Kept/float64(changes), r.Worse/float64(changes)
	return r, nil
}

// slowdowns adds up those of all jobs.
func slowdowns(p *plans.Result) (sum float64) {
	for _, j := range p.Jobs {
		sum += j.Slowdown
	}
	return sum
}

// step steps the machine, makes the plans that it wants and has the executor do what it is told, until all is done.
func (c *crowd) step(ctx context.Context, in controller.Input) error {
	next := []controller.Input{in}
	for len(next) > 0 {
		in, next = next[0], next[1:]
		c.now += time.Second
		for _, o := range c.machine.Step(c.now, in) {
			switch {
			case o.Answer != nil && o.Answer.Error != "":
				return fmt.Errorf("the controller: %s", o.Answer.Error)
			case o.PlanRequest != nil:
				before := processorTime()
				planned := c.planner.Plan(ctx, o.PlanRequest)
				c.cpu += processorTime() - before
				c.request = o.PlanRequest
				for i := range planned.Jobs {
					if planned.Jobs[i].Layout != nil {
						c.changed++
					}
				}
				next = append(next, controller.Input{PlanResult: planned})
			case o.Launch != "":
				next = append(next, controller.Input{Status: c.status(o.Launch, nil)})
			case o.Orders != nil:
				next = append(next, controller.Input{Status: c.status(o.Orders.Executor, o.Orders)})
			}
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// status is what the executor says when it has done what it was told.
func (c *crowd) status(executor string, o *wire.Orders) *wire.Status {
	c.number++
	s := &wire.Status{Executor: executor, Number: c.number, Life: "1", Device: c.planner.Device.Identity,
		Jobs: []wire.JobStatus{}}
	if o == nil {
		return s
	}
	s.Orders = o.Number
	for _, a := range o.Jobs {
		j := wire.JobStatus{Name: a.Spec.Name, ID: a.Spec.ID, Incarnation: a.Incarnation, Epoch: a.Epoch,
			State: wire.Running}
		switch {
		case a.Stop:
			j.State, j.Result = wire.Stopped, &wire.Result{}
		case a.Epoch == 0:
			j.State = wire.Waiting
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}
