// Package ptx executes PTX, the text that a CUDA driver compiles, as its specification says, and objects to what a GPU
// would let pass.
//
// [Parse] reads a module and decodes its kernels: those that clang prints for C, with calls copied in. What it does not
// know is an error with the line, and so is what has no bits of its own: arithmetic that is approximate, that flushes
// small numbers or that an assembler may fuse, and atomic sums of floats. [Kernel.Run] executes a launch a warp at a
// time. Blocks run one after the other and the warps of a block in turns, in orders of a seed that no result may depend
// on. By PTX's rules results have the bits that they have on any GPU; the one exception is which NaN a float64
// operation gives, of which PTX says nothing.
//
//	text -> lex, parse, operand, scope: statements
//	          |
//	        decode, forms_*: instructions over slots, a register of 32 lanes each
//	          |
//	        run, warp: blocks, warps, lanes that part and meet  ->  exec, quick, access, meet: what each computes
//	          |
//	        shadow: who used each word when  ->  faults, and the Footprint of the launch
//
// The first thing that a kernel does wrong ends the launch with a [Fault]:
//   - an access that is not wholly within an allocation or a variable, is misaligned or reads bytes that nothing has
//     written, and a register that nothing has written;
//   - a race: threads use the same bytes, one of them writes, and neither a barrier of the block nor one of the warp is
//     between. Between blocks nothing is ordered. It is found whatever order the seed gives;
//   - a barrier, a shuffle or a vote that not all threads come to that must: at a barrier all threads of the block, at
//     the same instruction;
//   - a thread that does not end, a trap, and an integer divided by zero.
//
// Not supported: functions that call themselves, jump tables, barriers for a part of a block, ordering by atomics,
// module variables that are written, dynamic shared memory, textures.
package ptx
