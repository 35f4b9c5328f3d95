package simulate

import "tensile/graph"

// Result is what became of a trace. Times are in seconds since its beginning.
type Result struct {
	Way      Way     `json:"scheduler"`
	Devices  int     `json:"devices"`
	Jobs     []Job   `json:"jobs"`
	Makespan float64 `json:"makespan_s"`        // until the last job ended
	Mean     float64 `json:"mean_completion_s"` // from its submission to its end, over jobs
	Waiting  float64 `json:"mean_wait_s"`       // from its submission to its beginning, over jobs
	Slowdown float64 `json:"mean_slowdown"`     // over jobs
	Memory   float64 `json:"memory_used"`       // by arenas, of all budgets, 0 to 1, over the makespan
	Moved    float64 `json:"moved_bytes"`       // by copies within iterations
	Link     float64 `json:"link_used"`         // by these, of what all links could have, 0 to 1, over the makespan
	Replans  int     `json:"replans"`           // sets of plans that were adopted
	Moves    int     `json:"moves"`             // of jobs that trained, to another device
}

// Job is what became of one.
type Job struct {
	Name       string  `json:"job"`
	Model      string  `json:"model"`
	Batch      int     `json:"batch"`
	Iterations int     `json:"iterations"`
	Tenant     string  `json:"tenant,omitempty"`
	Device     string  `json:"device"` // on which it began
	Submit     float64 `json:"submit_s"`
	Start      float64 `json:"start_s"`
	End        float64 `json:"end_s"`
	Slowdown   float64 `json:"slowdown"` // from its submission to its end, of what it takes alone on a device
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
