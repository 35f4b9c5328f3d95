// Package task is what training a graph needs beside the graph: first weights, a loader of inputs, the losses that come
// out, and what is kept of the weights in the end.
//
// A [Task] is a graph, a seed and a data set. All that it does follows from those three: the same task is fed the same
// bits in any process, under any plan.
package task
