package bench

import (
	"math"
	"strings"
	"testing"
)

// Rounds are compared window by window: the longest and the busiest count no more than the others.
func TestObserveSum(t *testing.T) {
	window := func(wall, controller, executors float64, iterations int) ObserveWindow {
		return ObserveWindow{Wall: wall, Controller: controller, Executors: executors, Iterations: iterations}
	}
	r := &ObserveReport{Device: "sim:a6000", Model: "lenet", Jobs: 3, Viewers: 2, Scrape: 15, Rounds: []ObserveRound{
		{window(10, 1, 5, 100), window(10, 1.2, 5, 100), 0.03},   // 2 % more
		{window(10, 1, 5, 100), window(20, 2.2, 11, 220), 0.01},  // 1 % more, and 1.1 times the iterations
		{window(20, 2, 8, 400), window(10, 0.7, 4.4, 200), 0.02}, // 3 % less, and 1.1 times the work
		{window(10, 1, 5, 0), window(10, 1.5, 5, 100), 0.05},     // 5 % more; nothing to compare iterations with
	}}
	r.sum()
	for name, of := range map[string][2][3]float64{"cost": {r.Cost, {0.02, -0.03, 0.05}},
		"speed": {r.Speed, {1, 1, 1.1}}, "work": {r.Work, {1, 1, 1.1}}, "opening": {r.Opening, {0.03, 0.01, 0.05}}} {
		for i, want := range of[1] {
			if math.Abs(of[0][i]-want) > 1e-9 {
				t.Errorf("%s is %v, want %v", name, of[0], of[1])
			}
		}
	}
	var out strings.Builder
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"takes 2.00 % (-3.00 to 5.00) of a core more", "0.03 s (0.01 to 0.05)",
		"1.00 times (1.00 to 1.10) of the iterations"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}
