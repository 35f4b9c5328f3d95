// Package workload turns what a person names on a command line into tasks that can be trained:
//
//	resnet50 vgg16:2 mine.json --batch 8 --Load--> a task.Task each for resnet50, vgg16.1, vgg16.2, mine
//
// A name means a network of package models, for one of any size, or for a file with a graph; the data is that of a
// folder or made up. [Catalog] lists what networks there are.
package workload
