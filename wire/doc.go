// Package wire holds the messages between controller, executors and command line, and their codec.
//
// The protocol is level-triggered: a controller says all that an executor is to do ([Orders]), an executor says all
// that it is doing ([Status]), and both say it again when something has changed and now and then. A message that is
// lost, doubled or late does no harm, since the next one says it all again; what is older than what is known is told by
// its number, and left. Only [Report] is an event, and losing one costs a little precision.
//
//	command line  -- Request -->  controller  -- Orders -->  executor
//	              <-- Answer --               <-- Status --
//	                                          <-- Report --
//
// Graphs and layouts ([Layout]) travel as objects, which messages name.
package wire
