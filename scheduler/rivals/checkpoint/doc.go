// Package checkpoint holds the policies that keep some activations of the forward pass and compute the others again.
//
//	checkpoint  segments of equal numbers of layers, about sqrt(n) of them: torch.utils.checkpoint_sequential
//	sublinear   segments of equal bytes: the planner of Chen et al., Training Deep Nets with Sublinear Memory Cost
//	            (arXiv 1604.06174, 4.2 and Algorithm 3), as its authors published it (dmlc/mxnet-memonger)
//
// Both cut the forward pass into segments. What crosses a cut stays. What else a segment makes leaves after its last
// use in the forward pass, and is made again, the whole segment once, just before the first op after the forward pass
// that reads some of it. The last segment is not dropped: the backward pass begins there.
//
//	forward    [ segment 1 ] c1 [ segment 2 ] c2 [ segment 3 ]
//	backward                                                   3  [2 again] 2  [1 again] 1
//
// # Where networks branch
//
// A cut lies where one storage crosses: nothing else that the ops before it made is read by forward ops after it. So
// residual and inception blocks are cut between blocks, as the authors' own networks are: PyTorch cuts a Sequential
// between its modules, memonger's examples mark the outputs of blocks as borders. Where there is no such place for more
// than 2 sqrt(n) layers of n, a cut may lie where the fewest storages cross among sqrt(n) layers, and all of them stay:
// memonger's LSTM marks the states of a time step together.
//
// # Which ops repeat
//
// Those that make something that is missing, directly or for one that does (PyTorch stops a replay early, MXNet's
// gradient leaves out what it does not need). Ops that may not repeat, as the update of a batch norm's running
// statistics, do not: what such an op makes besides, or one whose input was overwritten, stays.
//
// Neither method knows a budget: the plan is what it is, and is refused if it needs more.
package checkpoint
