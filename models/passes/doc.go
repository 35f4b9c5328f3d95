// Package passes rewrites graphs so that they train with less memory, to the same bits.
//
// A pass is a row of one table: a name, what it does, and a function that changes a graph into another, which makes the
// same losses and weights, bit for bit, on the same device. [Apply] runs passes by their names, always in the order of
// the table, and says of each what it changed and what it refused ([Outcome]). The names stay in the graph (its field
// Passes), and so in its digest: every process that has the graph trains the rewritten one.
//
// A pass changes no parameter, input or output, and no state but by dividing it into parts (graph.Storage.PartOf),
// which are whole again in files: checkpoints and weights of one graph fit the other. Where it divides nothing,
// program.Match pairs the rewritten graph with the one before.
package passes
