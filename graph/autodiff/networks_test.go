package autodiff_test

import (
	"testing"

	"tensile/graph"
	"tensile/models"
	"tensile/models/nettest"
)

// deepStep is the step for networks of many layers, where a relu that turns has a hundred behind it to grow in. The
// losses still differ in the sixth of their digits.
const deepStep = 1e-10

// TestEveryNetworkDerivative compares, for every network of images at a small size, the gradient of all parameters with
// the slope of the loss.
func TestEveryNetworkDerivative(t *testing.T) {
	for _, name := range models.Names() {
		if sequences, err := models.ReadsSequences(name); err != nil {
			t.Fatal(err)
		} else if sequences {
			continue // they are among those of TestDerivatives: most have no kinks, and need longer steps
		}
		t.Run(name, func(t *testing.T) {
			g, err := nettest.Build(name)
			if err != nil {
				t.Fatal(err)
			}
			if raceEnabled && len(g.Ops) > 700 {
				t.Skip("one goroutine, and 10 times the time of the shallower networks under the race detector")
			}
			m := newInterpreter(t, g)
			m.step = deepStep
			m.run(graph.Forward, graph.Backward)
			m.check(m.gradients(), "all parameters", 3)
		})
	}
}
