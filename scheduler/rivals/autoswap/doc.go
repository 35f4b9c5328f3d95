// Package autoswap is AutoSwap (Zhang et al., "Efficient Memory Management for GPU-based Deep Learning Systems", 2019,
// section IV): it knows the accesses to variables and when they happen, and nothing of the graph.
//
//	autoswap   swaps variables whose lifetime crosses the peak, those of the highest score first, until the load is
//	           within a limit; the score is a mixture that Bayesian optimisation finds, or one of four (Options)
//
// An [Iteration] is what it works on: the load of each slot, and the [Pause]s of variables between two accesses. It
// comes from a draft of a graph or from a recorded trace ([OfTrace]).
//
//	pauses across the peak --> scores --> order --> picked until the load fits --> outs, ins, drops by slots
//	  (IV-A)                   (IV-B)     (IV-D)     (IV-D)                          (IV-E)
//	                              ^                                                      |
//	                              +------- weights, by Bayesian optimisation <-----------+ time (IV-C)
//
// Scores are exact integers or floats of single operations that are the same on every machine; the mixture is not: its
// weights go by linear algebra and exponentials that differ in the last bits between architectures, and so may its
// plans.
package autoswap
