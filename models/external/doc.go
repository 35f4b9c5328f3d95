// Package external is what a script of another framework and its sidecar say to each other, and the file of a recorded
// graph.
//
// A script trains with ops of its own. The sidecar, a process of Tensile that has started it (tensile join), speaks to
// it over a socket: the script finds the number of its end in the environment variable TENSILE_SOCKET, and in
// TENSILE_ADDRESS where else it can connect to, with an @ for the null byte of an abstract address. Files may come with
// a line of the sidecar (SCM_RIGHTS): the script holds them open for as long as it lives, which shows that it does.
// Both write lines of JSON, each a message in an envelope of one line:
//
//	{"version":1,"kind":"hello","body":{...}}
//
// Unknown kinds and fields are errors, and so is what goes over a limit: 64 MiB a line, 131,072 ops, storages or
// boundaries, 524,288 tensors, 64 TiB in the storages of a graph and beside them, 8 KiB a text, which has no control
// characters. All sizes are bytes, all times whole nanoseconds, and an integer is below 2^53. A side that receives what
// it cannot read closes the connection with one line on stderr. Without its sidecar, which is an end of the stream or a
// reset, a script trains on with the plan that it has; when the script closes its end, or dies, its job is over.
//
// # What a script says
//
//	hello      first, once: what it runs on
//	graph      a recorded iteration; another steady shape of iterations is another graph
//	applied    a plan has come into force, or has been refused
//	iteration  an iteration is complete
//	passive    the plan is not followed for the rest of an iteration, or any more
//	parked     it rests: all is on the host, and the device has its memory back
//	end        it trains no more; nothing follows
//
// # What a sidecar says
//
//	plan       a plan for one of its graphs, or for none of them, and how many bytes the device has for the script
//	park       rest from the next boundary of iterations on
//	resume     train again, with the newest plan
//	stop       end at the next boundary of iterations
//
// The first plan follows hello, or the rest that a park asks for until there is memory for the script. It names graph
// 0: there is no plan yet, and the script keeps to limit_bytes as far as it can by moving what is saved for the
// backward pass. A script records some of its first iterations and sends a graph; a plan for it follows, or one for
// graph 0 that says why there is none. Plans are numbered from 1, upwards. The script takes the newest of each graph at
// the next boundary of iterations, leaves those in between, and answers with applied. It keeps the newest plan of each
// of its graphs until one for graph 0 comes; which of them an iteration follows is its choice, and the limit is that of
// the newest of all. Shrinking and growing are plans: the answer to one with a smaller limit_bytes means that what was
// above it is back with the device (in PyTorch after empty_cache), as reserved_bytes shows. A plan that cannot be
// carried out is refused with an error, and the one before stays in force. So does the plan of another graph, unless it
// has more bytes than the newest limit.
//
// park and resume are numbered by one counter, from 1, upwards; what is not newer is left. The script answers park with
// parked. After resume it answers applied, with the newest plan, before it trains: also if that was in force before.
// stop is answered with end, like an end by itself.
//
// # Fields
//
// A field in brackets may be left out; it is then 0, "" or false.
//
//	hello      pid
//	           framework     "torch"
//	           release       its version, such as "2.9.1+cu128"
//	           [rank]        the number that a launcher of several processes has given this one on its host
//	           device        kind "cpu" or "cuda", name; [memory_bytes] of it in all; [least_bytes] below which no
//	                         storage moves; [out_bytes_per_s], [in_bytes_per_s] of copies to and from the host;
//	                         [base_bytes] that the process has there beside its allocator (a CUDA context)
//	graph      number        1, 2, ... in the order in which the script has found them
//	           graph         as of package graph in its JSON form, see below
//	           latency_ns    per op
//	           [held_bytes]  on the device all the time, in no storage of the graph: small ones, constants
//	plan       number
//	           graph         the number of a graph, or 0
//	           limit_bytes   that its allocator may reserve on the device; 0: no limit
//	           [why]         there is no plan for the newest graph
//	           [strict]      of the first plan: the script ends where one of its ops works on more than limit_bytes
//	         of a plan for a graph:
//	           plan_bytes    the most that storages of the graph, held bytes and scratch have at a time
//	           entry         storages on the device at the start of an iteration, ascending. The other parameters and
//	                         states are on the host then, and there is none of the rest
//	           boundaries    what is done between ops, ascending by before
//	applied    plan, iteration, reserved_bytes, [error] in one line: it is refused
//	iteration  iteration     complete ones, this one included
//	           graph         its number; 0: it is none of those that were sent
//	           plan          the one that it followed to its end; 0: none, or passive
//	           wall_ns, stall_ns (of wall_ns, waits for copies)
//	           [steps_ns]    per step of the plan: the ops and those run again, in the order in which they run
//	           touched_bytes, reserved_bytes the most that its allocator had allocated and reserved: in this very
//	                         iteration, not in those before
//	           [host_bytes]  the most that contents of storages had on the host
//	           [faults]      storages brought back since they were used before their time
//	           [retries]     allocations that failed at the limit and were tried again, perhaps another way: such an
//	                         iteration does not count as planned, and more is left free beside the plan
//	           [hooks]       its bytes were kept by moves of what autograd saves alone, not by the plan's own
//	           [loss]        a number
//	passive    iteration     complete ones before this one
//	           why           in one line
//	           [always]      from now on, not for this iteration alone
//	parked     number, iteration, reserved_bytes
//	end        iteration, [error] in one line: it has failed, [stopped]: it was told to stop
//	park, resume  number
//	stop       nothing
//
// A boundary has before, the number of the op that follows, from 0 to the number of ops, and do, a list that is carried
// out in its order. The boundary before op 0 is the start of an iteration, that before the number of ops its end.
//
//	{"do":"out","storage":3}            copy it to the host; it stays on the device. With "wait":true the next op
//	                                    waits until the copy has ended
//	{"do":"drop","storage":3}           it leaves the device, once a copy out of it has ended
//	{"do":"in","storage":3}             it gets memory on the device, and is copied there; "wait" as with out
//	{"do":"again","op":7}               run op 7 again; "outputs":[0,2] names those to put into their storages,
//	                                    which get memory on the device; without it all
//
// A storage that nothing needs any more is not dropped by the plan: the script itself lets it go, before the same op
// as in the recorded iteration. If an action there or later names it, or runs an op again that touches it, the player
// keeps it beyond that, and the plan drops it.
//
// # Graphs
//
// Every op is of kind "opaque" and has the attributes [scratch], what it allocates beside its outputs and frees before
// it ends; [once], it must not run twice in an iteration; [flops]. Ops that touch no bytes (views) are left out. An op
// that is run again makes all its fresh outputs beside the storages into which they are then copied: the planner
// counts that, scratch does not.
//
// A tensor is a version of a whole storage: dtype "uint8", shape [bytes]. A storage has the role "parameter" or
// "state" if it outlives the iteration, else "activation" or "gradient"; the first two have version 0 when the
// iteration begins, the others get it as a fresh output of an op. Each write in place makes the next version, and its
// op has the version before as an input. A batch that the script makes is a fresh output of an op without inputs. A
// parameter or state that is at no time written is one too. until is the op before which a storage is let go, if
// something beside the ops holds it longer than to the last op that touches it; the number of ops means the end of the
// iteration. A storage has any number of bytes from 1 on.
//
//	{"name":"train","storages":[
//	  {"id":0,"name":"w","role":"parameter","bytes":4},
//	  {"id":1,"name":"a","role":"activation","bytes":9,"until":2}],
//	 "tensors":[
//	  {"id":0,"name":"w","storage":0,"version":0,"shape":[4],"dtype":"uint8"},
//	  {"id":1,"name":"a","storage":1,"version":0,"shape":[9],"dtype":"uint8"},
//	  {"id":2,"name":"w","storage":0,"version":1,"shape":[4],"dtype":"uint8"}],
//	 "ops":[
//	  {"id":0,"name":"aten.mm","kind":"opaque","inputs":[0],"outputs":[1],"phase":"forward","forward":-1},
//	  {"id":1,"name":"aten.add_","kind":"opaque","inputs":[0,1],"outputs":[2],"attrs":{"scratch":64},
//	   "phase":"optimize","forward":-1}]}
//
// # File
//
// The file of a recorded graph has two lines: the hello and the graph that the script would send. Commands that take a
// MODEL take its name, which ends in .json.
package external
