package controller

import (
	"fmt"
	"testing"
	"time"

	"tensile/graph/cost"
	"tensile/models"
	"tensile/wire"
)

// BenchmarkStep is what a step takes with 200 jobs of resnet50 at executors of their own: a heartbeat that says nothing
// new, one that tells of an iteration, a report, and a job that comes, up to the plan request that follows.
func BenchmarkStep(b *testing.B) {
	g, err := models.Build("resnet50", models.Config{Batch: 2})
	if err != nil {
		b.Fatal(err)
	}
	m := NewMachine(Config{Device: "model", Align: 64, Out: cost.Link{Rate: 1e9}, In: cost.Link{Rate: 1e9},
		Policy: "none-live"})
	const jobs = 200
	list := make([]Submission, jobs)
	for i := range list {
		list[i] = Submission{Spec: wire.Spec{Name: fmt.Sprint("j", i), Graph: g.Digest(), Iterations: endless},
			Graph: g}
	}
	submit(b, m, list)
	if n := len(m.ownDomain.activeJobs()); n != jobs {
		b.Fatalf("%d jobs were admitted", n)
	}
	var number int64
	status := func(i, iteration int) Input {
		number++
		j := m.jobs[i]
		return Input{Status: &wire.Status{Executor: j.record.Executor, Life: "1", Number: number, Device: "model",
			Jobs: []wire.JobStatus{{Name: j.record.Spec.Name, ID: j.record.Spec.ID, Incarnation: 1, State: wire.Running,
				Epoch:     j.record.Granted,
				Iteration: iteration}}}}
	}
	for i := range jobs {
		m.Step(0, status(i, 0))
	}
	steps := make([]time.Duration, len(m.jobs[0].newestLayout().Wire.Plan.Steps))
	for i, s := range m.jobs[0].newestLayout().Wire.Plan.Steps {
		steps[i] = m.jobs[0].latency[s.Op]
	}
	iteration := 1
	for _, kind := range []struct {
		name string
		in   func() Input
	}{
		{"heartbeat", func() Input { return status(7, iteration) }},
		{"iteration", func() Input { iteration++; return status(7, iteration) }},
		{"report", func() Input {
			iteration++
			j := m.jobs[7]
			return Input{Report: &wire.Report{Executor: j.record.Executor, Job: j.record.Spec.Name, Incarnation: 1,
				Epoch:     j.record.Granted,
				Iteration: iteration, Steps: steps, Wall: time.Millisecond}}
		}},
		{"arrival", func() Input {
			if e := m.ownDomain.request; e != nil {
				m.ownDomain.request = nil
				m.refuseBatch(m.jobs[jobs].batch, "once more")
			}
			spec := wire.Spec{Name: "late", Graph: g.Digest(), Iterations: endless}
			return Input{Submit: []Submission{{Spec: spec, Graph: g}}}
		}},
	} {
		b.Run("kind="+kind.name, func(b *testing.B) {
			for b.Loop() {
				m.Step(0, kind.in())
			}
		})
	}
}
