// Package randtest makes random valid plans for tests, good ones and silly ones.
//
// [New] shuffles the ops into another order that keeps the meaning of versions, and then walks through it with the
// state of every storage in hand: what is on the device, which version the host has, what is current, what is needed
// later.
//
//	boundary:  outs, then drops, then ins      of whatever a coin says, where it does no harm
//	step:      fetch what the op reads:        In where the host copy is current, else run its makers again, whose
//	                                           reads are fetched in the same way
//
// A storage may be dropped when it is needed no more, when the host has its current version, or when it can be made
// again where it is needed next, from version 0 up to the one that it had; in the last case everything that making it
// again reads is needed until then as well.
// After the last step a repair brings about the state in which the iteration began.
//
// Persistent storages begin on the device or not, with a valid host copy or not; a host copy that is not valid in the
// beginning is not made valid after the last update either, so that the iteration can repeat.
package randtest
