// Package torchtest holds tests that train small forms of the networks beside PyTorch: the losses, gradients, weights,
// moments and running statistics that Tensile's kernels and gradients make are compared with those of torch in float64.
// How far torch's own float32 is from its float64 says how large a difference rounding makes.
//
// There are two ways. testdata/graph_ops.py carries out a graph's forward ops by torch's functions and leaves gradients
// and updates to torch: it finds a wrong kernel, gradient or optimizer. testdata/networks.py has networks written by
// hand from torch's modules, with equal weights: they find a wrong connection. Dropout gets the masks that Tensile
// drew.
package torchtest
