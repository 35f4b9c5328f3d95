// Package calibrate measures how long ops take on a device of this machine and makes a model of it: it trains small
// networks of random shapes, alone and under background load, and takes the latencies that the executor reports.
//
// Ops are measured where they run, between others whose data has just passed the caches, and not in a loop of their
// own. [measure] gives the samples, [Model] trains a model on them. [network] is one of the networks.
package calibrate
