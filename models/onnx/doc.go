// Package onnx reads networks from ONNX files, makes training graphs of them, and writes trained weights back.
//
//	file -> Read -> Model -> Import -> graph.Builder -> Job -> graph.Graph -> ... -> Model.Replace -> Write
//
// [Read] and [Model.Write] know nine messages of the format (model, graph, node, attribute, tensor, value, type with
// shape and dimensions, opset, external data) and keep every field that they do not know, so that what is written has
// all that was read. [Import] makes the ops of a graph: it folds what is known before the training (shapes, ranges,
// masks), gives shapes to all values, and composes operators that have no kind of their own. [Job] adds a loss,
// gradients and an optimizer, with the nodes in one of three [Order]s.
//
// Invariants:
//   - a file that is damaged or hostile is an error that names the place; no size that a file claims is allocated
//     before that many bytes were seen;
//   - a parameter keeps the name of its initializer, in graphs, in files of weights and in what is exported;
//   - operators that are not supported are reported all at once.
//
// Source: the ONNX specification (onnx.ai), operator sets 7 to 28.
package onnx
