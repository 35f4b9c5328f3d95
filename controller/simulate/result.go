package simulate

import "tensile/graph"

// Result is what became of a trace. Times are in seconds since its beginning.
type Result struct {
	Way     Way   `json:"scheduler"`
	Devices int   `json:"devices"`
	Jobs    []Job `json:"jobs"`
	// Makespan is when the last job ended.
	Makespan float64 `json:"makespan_s"`
	// Mean is the mean time of a job from its submission to its end.
	Mean float64 `json:"mean_completion_s"`
	// Waiting is the mean time of a job from its submission to its beginning.
	Waiting float64 `json:"mean_wait_s"`
	// Slowdown is the mean of Job.Slowdown.
	Slowdown float64 `json:"mean_slowdown"`
	// Memory is the part of all budgets that arenas have used over the makespan, 0 to 1.
	Memory float64 `json:"memory_used"`
	// Moved is how many bytes were copied within iterations.
	Moved float64 `json:"moved_bytes"`
	// Link is Moved as a part of what all links could have copied over the makespan, 0 to 1.
	Link float64 `json:"link_used"`
	// Replans is how many sets of plans were adopted.
	Replans int `json:"replans"`
	// Moves is how many times a job that trained has migrated.
	Moves int `json:"moves"`
}

// Job is what became of a job.
type Job struct {
	Name       string `json:"job"`
	Model      string `json:"model"`
	Batch      int    `json:"batch"`
	Iterations int    `json:"iterations"`
	Tenant     string `json:"tenant,omitempty"`
	// Device is the name of the device on which the job has begun.
	Device string  `json:"device"`
	Submit float64 `json:"submit_s"`
	Start  float64 `json:"start_s"`
	End    float64 `json:"end_s"`
	// Slowdown is the time from the job's submission to its end, divided by the time that it takes alone on a device.
	Slowdown float64 `json:"slowdown"`
}

func (w *world) result() *Result {
	r := &Result{Way: w.Way, Devices: w.Devices}
	r.Replans, r.Moves = w.way.counts()
	for _, j := range w.jobs {
		took := j.end - j.Submit
		r.Jobs = append(r.Jobs, Job{Name: j.name, Model: j.Model, Batch: j.Batch, Iterations: j.Iterations,
			Tenant: j.Tenant,
			Device: j.node.name, Submit: j.Submit.Seconds(), Start: j.start.Seconds(), End: j.end.Seconds(),
			Slowdown: took.Seconds() / j.kind.timeFor(j.Iterations).Seconds()})
		r.Makespan = max(r.Makespan, j.end.Seconds())
		r.Mean += took.Seconds()
		r.Waiting += max(0, j.start-j.Submit).Seconds()
	}
	count := float64(len(w.jobs))
	for _, j := range r.Jobs {
		r.Slowdown += j.Slowdown / count
	}
	r.Mean, r.Waiting = r.Mean/count, r.Waiting/count
	var moved graph.Bytes
	for _, n := range w.nodes {
		n.account()
		r.Memory += n.arenaSeconds
		moved += n.copied
		for _, c := range n.jobs {
			moved += c.copied
		}
	}
	span := r.Makespan * float64(w.Devices)
	r.Memory /= span * float64(w.Budget)
	r.Moved = float64(moved)
	if both := float64(w.Facts.Out.Rate + w.Facts.In.Rate); both > 0 {
		r.Link = r.Moved / (span * both)
	}
	return r
}
