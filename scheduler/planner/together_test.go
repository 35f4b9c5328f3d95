package planner

import (
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// A request has what ops take beside the other jobs: launches as they are, work and slack stretched. A job alone keeps
// its latencies, and so do all where jobs do not slow one another down; what was given stays as it is.
func TestRequestTogether(t *testing.T) {
	latency, slack := []time.Duration{5, 25, 3, 45}, []time.Duration{0, 10, 1, 0}
	job := func(l, s []time.Duration) scheduler.Job { return scheduler.Job{Latency: l, Slack: s} }
	alone, work := job(latency, slack), job([]time.Duration{0, 100}, nil)
	d := Device{Sharing: cost.Facts{Launch: 5}.Sharing()}

	if got := d.Request(alone).Jobs[0]; &got.Latency[0] != &latency[0] || &got.Slack[0] != &slack[0] {
		t.Errorf("a job alone is planned with %v", got.Latency)
	}
	// It is at work for 60 of 78 ns alone; the other, which launches once, for 95 of 100.
	r := d.Request(alone, work, alone)
	uses := []cost.Use{{Launch: 18, Work: 60}, {Launch: 5, Work: 95}, {Launch: 18, Work: 60}}
	for i, stretch := range d.Sharing.Slowdowns(uses) {
		j := []scheduler.Job{alone, work, alone}[i]
		for op, l := range j.Latency {
			if want := d.Sharing.Contended(l, stretch); r.Jobs[i].Latency[op] != want || stretch < 2.4 || stretch > 3 {
				t.Errorf("op %d of job %d takes %v beside the others, want %v by a stretch of %v", op, i,
					r.Jobs[i].Latency[op], want, stretch)
			}
		}
	}
	if got, want := r.Jobs[0].Slack, slices.Max(slack)*24/10; got[0] != 0 || got[1] < want || got[3] != 0 {
		t.Errorf("a slack of %v is %v beside others", slack, got)
	}
	if &r.Jobs[0].Latency[0] != &r.Jobs[2].Latency[0] {
		t.Error("copies do not share their latencies")
	}
	if want := []time.Duration{5, 25, 3, 45}; !slices.Equal(latency, want) {
		t.Errorf("what was given has become %v", latency)
	}
	if got := (Device{}).Request(alone, work).Jobs[0].Latency; !slices.Equal(got, latency) {
		t.Errorf("on a device that is not shared ops take %v", got)
	}
}

// What a model does not know of load, as one that was trained at none, is by what the device is shared by: jobs do not
// become as fast as alone. It is so for each op by itself.
func TestRequestLoadUnknown(t *testing.T) {
	job := scheduler.Job{Name: "predicted", Latency: []time.Duration{40, 60}, Slack: []time.Duration{0, 10}}
	shared := Device{Sharing: cost.Sharing{Share: 0.5}}
	want := shared.Request(job, job, job)
	shared.Loaded = func(*graph.Graph, float64) []time.Duration { return []time.Duration{0, 0} }
	got := shared.Request(job, job, job)
	if g, w := got.Jobs[0], want.Jobs[0]; !slices.Equal(g.Latency, w.Latency) || !slices.Equal(g.Slack, w.Slack) ||
		g.Latency[0] != 60 {
		t.Errorf("latencies are %v beside others, want %v", g.Latency, w.Latency)
	}
	shared.Loaded = func(_ *graph.Graph, load float64) []time.Duration {
		return []time.Duration{0, time.Duration(100 * (1 + 2*load))}
	}
	if got := shared.Request(job, job, job).Jobs[0].Latency; got[0] != 60 || got[1] != 180 {
		t.Errorf("latencies are %v beside others, want one stretched, one as it is predicted", got)
	}
}

// Where a model knows of load, what it predicted is scaled by what it says of the other jobs' share, and not stretched;
// what was measured is stretched, and so is the first op, of which the model knows nothing.
func TestRequestLoaded(t *testing.T) {
	var asked []float64
	d := Device{Sharing: cost.Sharing{Share: 0.5}, Loaded: func(g *graph.Graph, load float64) []time.Duration {
		asked = append(asked, load)
		l := make([]time.Duration, 3)
		for op := range l {
			l[op] = time.Duration(100 * float64(op) * (1 + load))
		}
		return l
	}}
	predicted := scheduler.Job{Name: "predicted", Latency: []time.Duration{7, 40, 60}, Slack: []time.Duration{0, 10, 0}}
	measured := scheduler.Job{Name: "measured", Latency: []time.Duration{7, 40, 60}, Measured: true}
	r := d.Request(predicted, measured, measured) // each finds two others at work, of which the device has room for one
	if got, want := r.Jobs[0].Latency, []time.Duration{11, 80, 120}; !slices.Equal(got, want) ||
		r.Jobs[0].Slack[1] != 20 {
		t.Errorf("predicted latencies are %v under load, want %v, with a slack of %v", got, want, r.Jobs[0].Slack)
	}
	if got, want := r.Jobs[1].Latency, []time.Duration{11, 60, 90}; !slices.Equal(got, want) {
		t.Errorf("measured latencies are %v beside others, want %v", got, want)
	}
	if want := []float64{0, 1}; !slices.Equal(asked, want) {
		t.Errorf("the model was asked at loads %v, want %v", asked, want)
	}
}
