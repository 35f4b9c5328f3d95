// Package executor runs jobs on one device.
//
// A [Machine] decides for one job: it is told of programs, of ended commands and when to stop, and answers with
// what to issue. It starts nothing and reads no clock. A [Host] is the runner: one goroutine that owns a device and the
// machines of its jobs, waits on device.Next, steps the machine that an event belongs to and does what it says.
//
//	        program: issue the prologue              window free
//	Home ------------------------------------> Training --------------+
//	 ^                                          |   ^-----------------+ issue a body
//	 |  epilogue ended          bodies ended    | new program, park, checkpoint, stop, last iteration issued
//	 +------------------- Epilogue <-------- Draining
//
// Jobs come and go while others train: Submit, Change, Park, Resume, Checkpoint, Stop and Remove are commands, of any
// goroutine, that the host's own carries out between two events, and an observer hears what came of them ([Event]).
// Trouble with one job is the end of that job alone.
//
// A job may begin with iterations that are complete ([Spec].Begin). With the state that they came to as its first
// content it goes on as if it had trained them itself, to the bit: loader, kernels and outputs are told the iteration.
// [Snapshot] is such a state, taken at an iteration boundary: by the snapshot section of the program, in the place of
// a body, if it has one, else in Home. A program has one where that is predicted to cost less (compile.Options).
//
// A job starts and ends in Home: host slots hold the current versions, nothing is on the device, its lanes are idle.
// Every change of plan goes through Home. Two bodies are in flight at most, so that lanes run over the boundary between
// iterations without a pause.
//
// A host takes any program for which its device has an arena: that the arenas of all jobs fit a budget together, also
// while plans change, is the controller's to see to.
//
// # Under a lease
//
// A host whose jobs use memory that others use as well asks a lease ([Host.Share]). On a device that backs arenas in
// part (device.Pager) a body is issued in groups (program.Groups), each as the lease grants it:
//
//	Home --join--> granted: load, hold Base, prologue --> for each group: want --> granted: hold, issue
//	 ^                                                                               |
//	 +---- leave <-- Home <-- epilogue <-- after the last group of an iteration      +--> its commands have ended:
//	                                                                                      hold less, passed
//
// A job holds the union of what its groups in flight need and of what has content for the group after them; between
// iterations that is Base, which is what prologue and epilogue need as well. It gives memory back to the system
// before it tells the lease. Two groups with work for the compute lane are on the device, so that it need not wait
// while there is memory; with more a job holds what others wait for. An iteration that was asked for and not granted
// may be given up, so that a job that is told to stop, park, change or drain goes Home at the boundary. One that has
// begun goes on to its end: only from a boundary does an epilogue lead Home. Requests have numbers, since messages
// of a lease in another process may cross.
//
// Elsewhere, if jobs are to take turns ([Sharing].Turns), and if it is a replica, a job holds all of its arena from
// when it has joined, issues whole sections, and goes Home when the lease tells it to.
//
// While the compute lane has nothing because a group waits for its grant that is Report.Gate: neither a stall, nor the
// fault of a copy, nor a part of any op's latency.
package executor
