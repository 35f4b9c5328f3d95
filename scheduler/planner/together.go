package planner

import (
	"math"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// contendedJobs returns jobs with the latencies that their ops have beside each other. Copies share theirs.
func (d Device) contendedJobs(alone []scheduler.Job) []scheduler.Job {
	jobs := append([]scheduler.Job(nil), alone...)
	if len(jobs) < 2 || d.Sharing.Share == 0 {
		return jobs
	}
	uses := make([]cost.Use, len(jobs))
	for i := range jobs {
		uses[i] = d.Sharing.Use(jobs[i].Latency)
	}
	others := d.Sharing.BusyOthers(uses)
	known := make(map[copies][2][]time.Duration)
	for i := range jobs {
		j := &jobs[i]
		if len(j.Latency) == 0 {
			continue
		}
		key := copies{&j.Latency[0], slackOf(j), others[i]}
		both, ok := known[key]
		if !ok {
			both[0], both[1] = d.contendedLatency(j, others[i])
			known[key] = both
		}
		j.Latency, j.Slack = both[0], both[1]
	}
	return jobs
}

// copies tells jobs apart whose latencies differ.
type copies struct {
	latency, slack *time.Duration
	others         float64
}

func slackOf(j *scheduler.Job) *time.Duration {
	if len(j.Slack) == 0 {
		return nil
	}
	return &j.Slack[0]
}

// contendedLatency returns what the ops of a job take beside so many others that are at work in the mean, and by how
// much that may be off. A model that was trained under such a load says it of latencies that were predicted; of others,
// work is stretched.
func (d Device) contendedLatency(j *scheduler.Job, others float64) (latency, slack []time.Duration) {
	stretch := d.Sharing.Slowdown(others)
	var of stretching = func(_ int, alone time.Duration) time.Duration { return d.Sharing.Contended(alone, stretch) }
	if d.Loaded != nil && !j.Measured {
		of = d.loaded(j.Graph, min(1, d.Sharing.Share*others), of)
	}
	latency = make([]time.Duration, len(j.Latency))
	if j.Slack != nil {
		slack = make([]time.Duration, len(j.Slack))
	}
	for op, alone := range j.Latency {
		latency[op] = of(op, alone)
		if slack != nil {
			slack[op] = max(0, of(op, alone+j.Slack[op])-latency[op])
		}
	}
	return latency, slack
}

// stretching is what an op takes beside others that is so long alone.
type stretching func(op int, alone time.Duration) time.Duration

// loaded scales latencies of a graph's ops by how much longer they take under a load, as the device's model predicts;
// where that does not know, they are as unknown has them.
func (d Device) loaded(g *graph.Graph, load float64, unknown stretching) stretching {
	free, busy := d.Loaded(g, 0), d.Loaded(g, load)
	return func(op int, alone time.Duration) time.Duration {
		if free[op] <= 0 || busy[op] <= 0 {
			return unknown(op, alone)
		}
		return time.Duration(math.Round(float64(alone) * (float64(busy[op]) / float64(free[op]))))
	}
}
