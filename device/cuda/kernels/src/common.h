// What every kernel uses. clang compiles the sources to PTX (make ptx); a test compiles them with gcc as well, where
// THREAD and the others are variables of testdata/host.c and SYNC waits for the other threads of a block.
//
// A kernel returns nothing, and each of its parameters is of eight bytes: a pointer, a long or a double. Arithmetic is
// that of the C operators, of __builtin_sqrtf, __builtin_sqrt, __builtin_fmaf and __builtin_fma, all of which round
// correctly on every GPU and CPU. Nothing is fused that is not written as fma.

#ifndef COMMON_H
#define COMMON_H

#ifdef __NVPTX__

#define KERNEL __attribute__((nvptx_kernel)) void
#define SHARED static __attribute__((address_space(3), loader_uninitialized))
#define SHARED_POINTER(type) __attribute__((address_space(3))) type *
#define SYNC() __syncthreads()

// BOUNDS tells the driver's compiler how many threads a block has, and how many blocks there should be at least on a
// multiprocessor, which bounds the registers of a thread: a kernel's first statement. scripts/ptx.sh moves it.
#define BOUNDS(threads, blocks) \
	__asm__ volatile("//bounds .maxntid %0, 1, 1 .minnctapersm %1" : : "n"(threads), "n"(blocks))

#define THREAD ((long)__nvvm_read_ptx_sreg_tid_x()) // of the block
#define THREADS ((long)__nvvm_read_ptx_sreg_ntid_x()) // of a block
#define BLOCK ((long)__nvvm_read_ptx_sreg_ctaid_x()) // of the grid
#define BLOCK_Y ((long)__nvvm_read_ptx_sreg_ctaid_y())
#define BLOCK_Z ((long)__nvvm_read_ptx_sreg_ctaid_z())
#define BLOCKS ((long)__nvvm_read_ptx_sreg_nctaid_x()) // of the grid

#else

#define KERNEL void
#define SHARED static __attribute__((unused))
#define SHARED_POINTER(type) type *
#define SYNC() host_sync()
#define BOUNDS(threads, blocks)

extern long host_thread, host_threads, host_block[3], host_blocks;
void host_sync(void);

#define THREAD host_thread
#define THREADS host_threads
#define BLOCK host_block[0]
#define BLOCK_Y host_block[1]
#define BLOCK_Z host_block[2]
#define BLOCKS host_blocks

#endif

#define INLINE static inline __attribute__((always_inline, unused))

// EACH runs i over the elements of this thread, where the grid has one dimension.
#define EACH(i, n) for (long i = BLOCK * THREADS + THREAD; i < (n); i += BLOCKS * THREADS)

#endif
