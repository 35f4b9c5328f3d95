// Package autodiff appends the backward ops and the optimizer ops of an iteration to a graph under construction.
//
// [Backward] walks the forward ops in reverse. What an op of a kind adds stands in one table, rules; a kind without a
// rule is an error only if a gradient reaches it. [Optimize] then updates every parameter by an [Optimizer]: [SGD],
// [Momentum] or [Adam].
//
//	forward    x, w ---- conv2d ----> y ---- relu ----> z ---- ... ----> loss
//	backward   dw <-- conv2d_dw <---- dy <-- relu_dx <-- dz <-- ... <---- (one)
//	optimize   w.1 <-- adam <---- w.0, dw, w.m, w.v
//
// Invariants:
//   - a gradient belongs to a content (a version of a storage), not to a tensor: what a view receives is shown with the
//     shape of the content it views, and contributions of several readers are summed as soon as there are two, those of
//     a parameter in place from the third on;
//   - a gradient is made only for contents that depend on a parameter;
//   - of an op that has several gradients, those of its parameters come first: the op that makes dx is the last that
//     needs dy;
//   - every backward op carries the layer and the id of its forward op.
package autodiff
