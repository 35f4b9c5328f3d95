// Package program turns a plan into commands on lanes, proves them free of races, and times them.
//
// [Place] packs the residencies of a plan into an arena. [Compile] writes the commands of an iteration as one totally
// ordered list. Each [Command] belongs to a lane; a lane runs its commands in list order; lanes run side by side. A
// command may wait for [Point]s, "the first n commands of lane l have ended". Every point names a command that stands
// earlier in the list, of this or the previous iteration, so there is no deadlock under any timing.
//
//	list   load x   in x       f0    f1         out a      f2    in a ...
//	host   load x
//	in              in x(h1)                                     in a(c3,o1)
//	compute                    f0(i1) f1                   f2
//	out                                         out a(c1)
//
// A [Program] has three sections. Prologue takes the job from Home (host slots of persistent storages hold their
// current versions, nothing on the device, lanes idle) to the plan's Entry, Body is one iteration from Entry to Entry,
// Epilogue leads back to Home. All lanes drain between sections; consecutive bodies overlap.
//
// Three things are bound late, by the device: the regions that addresses point into, the physical lane behind a lane
// number, and what is done with [Mark]s, which name groups of steps.
//
// [Check] proves, over Prologue Body Body Epilogue, and Prologue Epilogue, without trust in Compile, that any two uses of the same bytes on
// device or host are ordered, and that every command finds the content that it should. [Time] predicts when each
// command runs.
package program
