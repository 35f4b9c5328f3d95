// Package program has plans as commands on streams: what devices, executors, compiler and proof share.
//
// A [Program] lists the commands of an iteration in one total order. Each [Command] belongs to a stream; a stream runs
// its commands in list order; streams run side by side. A command may wait for [Point]s, "the first n commands of
// stream s have ended". Every point names a command that stands earlier in the list, of this or the previous iteration,
// so there is no deadlock under any timing.
//
//	list   load x   in x       f0    f1         out a      f2    in a ...
//	host   load x
//	in              in x(h1)                                     in a(c3,o1)
//	compute                    f0(i1) f1                   f2
//	out                                         out a(c1)
//
// A program has three sections. Prologue takes the job from Home (host slots of persistent storages hold their
// current versions, nothing on the device, streams idle) to the plan's Entry, Body is one iteration from Entry to
// Entry, Epilogue leads back to Home. All streams drain before the prologue and before the epilogue; consecutive bodies
// overlap, and so do the prologue and the first ones. The prologue copies first what the body uses first, on a stream
// of its own, and commands of the body wait for what they use of it. For later bodies these waits name what ended long
// ago.
//
// A program may have a fourth, Snapshot. It takes the place of a body, does all that a body does,
// and copies the content that the persistent storages have when it begins to a region of its own: the state at that
// iteration boundary, while the job trains on. What the host has is copied from the host slot before the plan
// overwrites the slot (Keep), what only the device has is copied out before the step that updates it (Save).
// [TimeSnapshot] predicts what that costs.
//
// A program knows its graph and nothing of where it runs. Streams and regions are numbers; tables in the program say
// that a stream is of the compute unit, a copy direction or the host ([Unit]), and that a region is the arena or the
// host slots ([Memory]). A device that loads a program for a job binds them: every stream to a lane of that job, every
// region to that memory of that job. Two plans of a job may have two graphs, as long as these keep the same storages
// on the host: [Match] says what must agree, and [HostSlots] gives those storages the same places in both.
//
// [Lanes] is the arithmetic of waits: which command may start when others have ended. The devices run by it, and the
// proof and [Time] go by it. The compiler does not: what it writes is proven by the meaning that devices give it.
//
// A job that shares memory with others need not hold its whole arena all the time. [Groups] cut the lists of body and
// snapshot, each [Group] with the [Pages] of the arena that its commands use or that hold content across them, and name
// those with content over the iteration boundary, Base.
//
//	list   in x  f0     f1  out a    f2  b2     in a  b1  b0
//	group  0            1            2          3
//	need   Base x a     Base a b     Base b     Base a
//
// Package compile makes programs and groups, package proof proves them. [Time] predicts when each command runs.
package program
