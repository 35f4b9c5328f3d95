// Package graphtest makes small random training graphs for tests.
//
// [New] grows a graph op by op: a forward, a backward and an optimizer phase over a pool of readable tensors. Its
// graphs have fan-out, joins, views of a part or in another shape, ops with several outputs, updates in place of
// activations, parameters and states (several of one storage), ops whose results nobody reads, and one or more outputs.
//
// Every graph passes graph.Validate, and its values stay finite over a few iterations: the maker keeps a bound on the
// magnitude of every storage and does not append an op whose result could exceed it. A NaN in a run is therefore a
// mistake of a plan, a program or a device.
//
// [Init] and [Input] fill its storages; they depend on names, seed and iteration alone.
package graphtest
