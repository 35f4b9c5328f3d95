// Package vdnn holds the policies of vDNN (Rhu et al., "vDNN: Virtualized Deep Neural Networks for Scalable,
// Memory-Efficient Neural Network Design", MICRO 2016; sections below are of that paper), and what TENSILE's authors
// compared with under its name.
//
//	vdnn-conv      the inputs of convolutions are offloaded in forward and prefetched in backward (III-B)
//	vdnn-all       so are those of all layers of feature extraction
//	vdnn-dyn       the first that fits of: no offload, vdnn-conv, vdnn-all, each with the fastest convolutions, then
//	               with slower ones that need less scratch (III-C)
//	vdnn-tensile   what TENSILE's authors ran: see [Tensile]
//
// The paper frees what its layers are done with in backward. Here everything that is used no more is freed, unless a
// row's name ends in -keep: then what the paper frees, and nothing else before the iteration ends (keep).
//
// The paper was read in public notes and codes, not in full. The rules of a fork, of a layer whose input comes late,
// and of layers that the paper does not know (batch norms, sums, concatenations) come from those codes, or are ours:
// each is named where it stands. Activations are not offloaded because the paper has them in place; here they are so
// after the pass activations alone, and without it their inputs stay on the device.
package vdnn
