// Package task is what training a graph needs beside the graph: first weights, a loader of inputs, the losses that come
// out, and what is kept of the weights in the end.
//
// A [Task] is a graph, a seed and a data set. All that it does follows from those three: the same task is fed the same
// bits in any process, under any plan.
//
// [Load] makes tasks of what a person names on a command line:
//
//	resnet50 vgg16:2 mine.json --batch 8 --Load--> a Task each for resnet50, vgg16.1, vgg16.2, mine
//
// A name is that of a source of work, such as a network of package models, of one of any size, or of a file; the rows
// of sources in sources.go say which. The data is that of a folder or file, or made up. [Catalog] lists what networks
// there are.
package task
