// Package graph is the intermediate representation of one training iteration.
//
// A [Storage] is a range of bytes with a role; a [Tensor] is one version of a storage, or a view of a part of it. An
// [Op] reads tensors and makes tensors: either fresh storages (version 0 of an activation or gradient) or, in place,
// the next version of an existing storage. An updated parameter is the next version of the parameter's storage; its
// last version becomes version 0 of the next iteration.
//
//	x (input)  w.0 (parameter)
//	    \       /
//	     conv2d ----> y ----> ... ----> dy
//	                                     |
//	                  w.0, dw  <----  conv2d_dw
//	                     |
//	                   adam ----> w.1   (same storage as w.0)
//
// Ops are listed in an order in which they can be executed. An op that makes only fresh storages is pure
// ([Graph.Pure]) and may be executed again in the same iteration. An op that updates an activation or a gradient in
// place may be executed again after the version before was made again ([Graph.Repeatable]). Other updates happen once.
//
// What follows from an op's [Kind] (shapes, outputs in place, arithmetic and traffic) is in one table per family.
// [Builder] makes graphs by it and [Graph.Validate] checks any graph, read from JSON for example, against it.
package graph
