package bench

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestMeasurePlanner measures small networks and checks the figures against each other.
func TestMeasurePlanner(t *testing.T) {
	r, err := MeasurePlanner(t.Context(), PlannerOptions{Scaling: []string{"lenet", "resnet:1,1,1,1"}, Batch: 2,
		Networks: []string{"lenet"}, Device: "a6000", Times: 1, Small: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Scaling) != 2 || len(r.Replan) != 3 || len(r.Ablation) != 3*len(ablations) || len(r.Phases) == 0 {
		t.Fatalf("%d rows of scaling, %d of plans after new latencies, %d of ablation, %d of phases", len(r.Scaling),
			len(r.Replan), len(r.Ablation), len(r.Phases))
	}
	for _, c := range r.Scaling {
		if c.Ops == 0 || c.Swaps == 0 || c.SlotPeak == 0 || c.Arena < c.SlotPeak || !(c.Plan > 0) || !(c.PerOp > 0) ||
			!(c.Proven() > 0) {
			t.Errorf("scaling: %+v", c)
		}
	}
	for _, c := range r.Replan {
		if c.Jobs != 4 || c.Ops == 0 || !(c.Plan > 0) || c.All < c.Plan {
			t.Errorf("plans after new latencies: %+v", c)
		}
	}
	of := func(budget, without string) AblationRow {
		i := slices.IndexFunc(r.Ablation, func(a AblationRow) bool {
			return a.Budget == budget && a.Without == without
		})
		if i < 0 {
			t.Fatalf("there is no row for %s without %s", budget, without)
		}
		return r.Ablation[i]
	}
	whole := of("lowest", "nothing")
	if whole.SlotPeak == 0 || whole.EOR > 1.01 || whole.MSRLive <= 0 {
		t.Errorf("lowest: %+v", whole)
	}
	if no := of("lowest", "free swaps"); no.Swaps > 0 || no.SlotPeak < whole.SlotPeak {
		t.Errorf("without free swaps: %+v, with them %+v", no, whole)
	}
	if no := of("70%", "recomputation"); no.Recomputes > 0 {
		t.Errorf("without recomputation: %+v", no)
	}
	if late := of("lowest", "early updates"); late.SlotPeak <= whole.SlotPeak {
		t.Errorf("without early updates: %+v, with them %+v", late, whole)
	}
	for i := 0; i+1 < len(r.Phases); i += 2 {
		if cold, warm := r.Phases[i], r.Phases[i+1]; cold.Phase != "cold-start" || warm.Phase != "updated" ||
			!(cold.EOR >= 0.99) || !(warm.EOR >= 0.99) {
			t.Errorf("phases %+v and %+v", cold, warm)
		}
	}
	var out bytes.Buffer
	if err := r.WriteTables(&out); err != nil || strings.Count(out.String(), "\n") < len(r.Ablation)+len(r.Scaling) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestMeasurePlannerStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasurePlanner(ctx, PlannerOptions{Scaling: []string{"lenet"}, Device: "a6000",
		Times: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := MeasurePlanner(t.Context(), PlannerOptions{Scaling: []string{"lenet"}, Device: "none",
		Times: 1}); err == nil {
		t.Error("an unknown device is accepted")
	}
}
