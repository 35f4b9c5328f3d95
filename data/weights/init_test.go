package weights

import (
	"math"
	"slices"
	"testing"

	"tensile/graph"
)

func TestInitialise(t *testing.T) {
	fill := func(name string, kind graph.InitKind, seed uint64) []float32 {
		to := slices.Repeat([]float32{float32(math.NaN())}, 20000)
		Initialise(graph.Storage{Name: name, Init: &graph.Init{Kind: kind, Scale: 0.5}}, seed, to)
		return to
	}
	for kind, want := range map[graph.InitKind]float32{graph.InitZero: 0, graph.InitOne: 1} {
		if got := fill("w", kind, 1); slices.ContainsFunc(got, func(v float32) bool { return v != want }) {
			t.Errorf("%s: not all %v", kind, want)
		}
	}
	normal := fill("w", graph.InitNormal, 1)
	var sum, squares float64
	for _, v := range normal {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(normal))
	if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 0.02 || math.Abs(deviation-0.5) > 0.02 {
		t.Errorf("normal: mean %v, standard deviation %v, want 0 and 0.5", mean, deviation)
	}
	if !slices.Equal(normal, fill("w", graph.InitNormal, 1)) {
		t.Error("equal name and seed give other weights")
	}
	if slices.Equal(normal, fill("v", graph.InitNormal, 1)) || slices.Equal(normal, fill("w", graph.InitNormal, 2)) {
		t.Error("another name or seed gives the same weights")
	}
}
