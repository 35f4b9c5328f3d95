package controller

import (
	"fmt"
	"testing"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/wire"
)

// BenchmarkCopies is what planning takes for 50 copies of a network that come together, in one request and one after
// the other, with a budget that all fit as they are and with a tight one.
func BenchmarkCopies(b *testing.B) {
	g, err := models.Build("lenet", models.Config{Batch: 16})
	if err != nil {
		b.Fatal(err)
	}
	link := cost.Link{Rate: 1e9}
	var list []Submission
	for i := range 50 {
		list = append(list, Submission{Spec: wire.Spec{Name: fmt.Sprint("j", i), Graph: g.Digest(),
			Iterations: endless}, Graph: g})
	}
	for _, budget := range []graph.Bytes{100 * graph.MiB, 66 * graph.MiB} {
		for _, together := range []bool{true, false} {
			b.Run(fmt.Sprintf("budget=%s/together=%v", budget, together), func(b *testing.B) {
				for b.Loop() {
					m := NewMachine(Config{Device: "model", Align: 64, Out: link, In: link, Budget: budget,
						Policy: "tensile"})
					if together {
						submit(b, m, list)
					} else {
						for i := range list {
							submit(b, m, list[i:i+1])
						}
					}
					if n := len(m.ownDomain.activeJobs()); n != len(list) {
						b.Fatalf("%d of %d jobs were admitted", n, len(list))
					}
				}
			})
		}
	}
}

// submit has a machine take jobs, and makes the plans that it wants.
func submit(b *testing.B, m *Machine, list []Submission) {
	for in := (Input{Submit: list}); ; {
		var p *plans.Request
		for _, o := range m.Step(0, in) {
			if o.PlanRequest != nil {
				p = o.PlanRequest
			}
		}
		if p == nil {
			return
		}
		in = Input{PlanResult: plannerOf(m.ownDomain.config, signedProfile).Plan(b.Context(), p)}
	}
}
