// Package top shows the device and the jobs of a controller in a terminal, live.
//
// [Model] is a model of bubbletea: messages go in, a view comes out. It asks the controller only by commands, which
// call the function that it was given, and reads no clock: answers bring their time. So tests hold its views, line by
// line. What it shows are the records that tensile jobs shows.
//
//	keys, Answered, Done, the size --> Update --> View
//	           ^                          |
//	           +--- Asker (controller) <--+ commands
package top
