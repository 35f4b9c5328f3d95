package controller

import (
	"testing"
	"time"
)

// Latencies that differ little from some that jobs of a kind were planned for with are planned for as these, whatever
// came between; others are kept, up to a number, and those of the profile always.
func TestUsualLatencies(t *testing.T) {
	d := &domain{config: Config{Threshold: 0.1}}
	of := func(percent int) []time.Duration {
		return []time.Duration{time.Duration(percent) * time.Millisecond, time.Duration(percent) * time.Microsecond}
	}
	k := &knownProfile{usedLatencies: [][]time.Duration{of(100)}}
	for _, step := range []struct{ now, want int }{{100, 100}, {104, 100}, {96, 100}, {120, 120}, {101, 100},
		{117, 120}, {110, 110}, {105, 100}} {
		if got := d.canonicalLatencies(k, of(step.now)); got[0] != of(step.want)[0] {
			t.Errorf("latencies of %d %% are planned for as %v, want those of %d %%", step.now, got, step.want)
		}
	}
	for percent := 200; len(k.usedLatencies) < maxUsedLatencies || percent < 10_000; percent += percent / 4 {
		d.canonicalLatencies(k, of(percent))
	}
	if len(k.usedLatencies) != maxUsedLatencies || k.usedLatencies[0][0] != of(100)[0] || d.canonicalLatencies(k,
		of(120))[0] != of(120)[0] {
		t.Errorf("%d latencies are kept, the first %v", len(k.usedLatencies), k.usedLatencies[0])
	}
}
