// Package trace finds the iteration in a record of malloc, free, read and write, and gives its blocks lifetimes for the
// packer: SmartPool as its paper has it (sections II-D, III and V), without any knowledge of a graph.
//
//	Import --> Trace --> Find --> Iteration --> LifetimesOf --> []pool.Buffer --> pool.Pack
//
// A [Trace] comes from a file ([Import]: the text form, a CSV, a PyTorch memory snapshot) or from a device that records
// one (device/cpu). [Find] looks for what repeats and whether that is an iteration, [LifetimesOf] says at which slots
// of an iteration each block needs its bytes. [AnswerOf]
// takes the iteration or the whole record, so that what is packed never has less at once than the record.
//
//	slot     0  1  2  3  4  5  6  7
//	event    mA mB wB fA mC rB fB fC         one of several equal iterations, w wrote before
//	w        [---------------------)         from before the first iteration: stays throughout
//	A        [--------)
//	B           [--------------)             tightened, if accesses were recorded: [2, 6)
//	C                    [--------)          freed in the next iteration, it would have two spans
//
// # The text form
//
// One event a line, words between spaces or tabs, "#" before a word begins a comment, empty lines do not count. The
// file may begin with a header that names the form's version. It can be written and read as a stream.
//
//	trace 1
//	malloc 0x7f00 4096      # BLOCK SIZE, in bytes
//	write  0x7f00
//	read   0x7f00
//	free   0x7f00           # from here on the id may be given to another block
//
// A block's id is any printable word that does not begin with "#". What was there before the record began stands at its
// start as mallocs. An access stands where the operation is issued that makes it.
//
// # Invariants
//
// What any reader returns is a trace as [Trace] says; whatever else takes one checks it. Reading takes memory in
// proportion to the input, whatever sizes it names. Find and LifetimesOf depend on the events' order alone, not on ids.
// For lifetimes that are not tightened and leave nothing out, pool.Load of the buffers is Load.
package trace
