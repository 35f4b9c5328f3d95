// Package simtest runs controller, agents, executors and swap executors together, on devices with virtual time and
// without goroutines: what happens follows from a seed alone. Between them is a network that loses, doubles and delays,
// and processes die. Nothing here is a model of the system: the machines are those that run in production; only their
// runners, which talk to NATS and start processes, are replaced by a [world] of a few queues.
package simtest
