// Package bayes minimises functions of a few variables that are slow to evaluate: Bayesian optimisation with a Gaussian
// process (Snoek, Larochelle and Adams, 2012).
//
//	points so far --> Gaussian process --> expected improvement --> next point --> objective
//	      ^                                                                          |
//	      +--------------------------------------------------------------------------+
//
// The process has a Matern 5/2 kernel. Its length scale and noise are those, of a small grid, under which the values so
// far are likeliest. The next point is that of the largest expected improvement among some hundred random points and
// points near the best one.
//
// Equal calls evaluate equal points on machines of one architecture. Linear algebra adds up in another order on others.
package bayes
