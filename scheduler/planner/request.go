package planner

import (
	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler"
)

// Job is a graph with this profile as the scheduler takes it, in the first or a later epoch. Its priority, its max swap
// rate, and whether the latencies were measured are the caller's to set.
func (p Profile) Job(name string, epoch int64, g *graph.Graph) scheduler.Job {
	return scheduler.Job{Name: name, Epoch: epoch, Graph: g,
		Latency: p.Latency, Slack: p.Slack, Variants: p.Variants}
}

// Request asks for plans of jobs that share the device. Their latencies are as if each ran alone; the request has what
// ops take beside the other jobs, or, with Gates or Turns, these. Policy, budget and switches are the caller's to set.
func (d Device) Request(jobs ...scheduler.Job) scheduler.Request {
	switch {
	case d.Gates:
		return scheduler.Request{Jobs: jobs, Out: d.Out, In: d.In, Align: d.Align, Together: true, Page: d.Page}
	case d.Turns:
		return scheduler.Request{Jobs: jobs, Out: d.Out, In: d.In, Align: d.Align}
	}
	return scheduler.Request{Jobs: d.contendedJobs(jobs), Out: d.Out, In: d.In, Align: d.Align}
}

// FirstRequest asks for the first plans of tasks. It returns an error if the device cannot execute one of them.
func (d Device) FirstRequest(tasks []task.Task) (scheduler.Request, error) {
	jobs, err := d.Jobs(tasks)
	if err != nil {
		return scheduler.Request{}, err
	}
	return d.Request(jobs...), nil
}

// Jobs are tasks in their first epoch, each as if it had the device for itself. It returns an error if the device
// cannot execute one of them.
func (d Device) Jobs(tasks []task.Task) ([]scheduler.Job, error) {
	jobs := make([]scheduler.Job, len(tasks))
	profiles := make(map[*graph.Graph]Profile) // copies of a network share theirs
	for i, t := range tasks {
		p, known := profiles[t.Graph]
		if !known {
			var err error
			if p, err = d.Profile(t.Graph); err != nil {
				return nil, err
			}
			profiles[t.Graph] = p
		}
		jobs[i] = p.Job(t.Name, 1, t.Graph)
		jobs[i].Held, jobs[i].Least = t.Held, t.Least
	}
	return jobs, nil
}
