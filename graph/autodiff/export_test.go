package autodiff

import "tensile/graph"

// GradientOf tells whether a kind has a gradient, and the reason if it has none.
func GradientOf(k graph.Kind) (has bool, reason string) {
	_, has = rules[k]
	return has, without[k]
}
