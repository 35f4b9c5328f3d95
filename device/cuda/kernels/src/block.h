// Sums and maxima over the threads of a block. Their number is a power of two up to 256, and all of them must come.

#ifndef BLOCK_H
#define BLOCK_H

#include "common.h"

SHARED double block_sums[2][256];
SHARED float block_tops[256];

// block_sum adds up one number of each thread, which all get: halves of the block are added, until one number is left.
// Sums that follow one another take turns between the two memories, so that none overwrites what is still being read.
INLINE double block_sum(int memory, double v) {
	SHARED_POINTER(double) sums = block_sums[memory];
	long t = THREAD;
	sums[t] = v;
	SYNC();
	for (long half = THREADS / 2; half > 0; half /= 2) {
		if (t < half)
			sums[t] += sums[t + half];
		SYNC();
	}
	return sums[0];
}

INLINE float larger(float a, float b) { return b > a || b != b ? b : a; } // NaN wins

// block_max is the largest of one number of each thread, or NaN. A block_sum must come before the next.
INLINE float block_max(float v) {
	long t = THREAD;
	block_tops[t] = v;
	SYNC();
	for (long half = THREADS / 2; half > 0; half /= 2) {
		if (t < half)
			block_tops[t] = larger(block_tops[t], block_tops[t + half]);
		SYNC();
	}
	return block_tops[0];
}

// EACH_ROW runs r over the rows of this block.
#define EACH_ROW(r, rows) for (long r = BLOCK; r < (rows); r += BLOCKS)

// STRIDED runs i over the elements of this thread, where the block has n.
#define STRIDED(i, n) for (long i = THREAD; i < (n); i += THREADS)

enum { chunk_size = 8192 }; // chunkSize in sums.go

// chunk_length is the number of elements of a chunk of count elements.
INLINE long chunk_length(long chunk, long count) {
	long left = count - chunk * chunk_size;
	return left < chunk_size ? left : chunk_size;
}

// A walk goes through the elements of a chunk of a channel, which has pixels of many images. They are counted image by
// image.
typedef struct {
	long left, image, pixel, images_on, pixels_on;
} walk;

INLINE walk walk_of(long chunk, long count, long size) {
	long first = chunk * chunk_size + THREAD;
	return (walk){chunk_length(chunk, count) - THREAD, first / size, first % size, THREADS / size, THREADS % size};
}

INLINE void step(walk *w, long size) {
	w->left -= THREADS;
	w->image += w->images_on;
	w->pixel += w->pixels_on;
	if (w->pixel >= size) {
		w->pixel -= size;
		w->image++;
	}
}

// EACH_OF_CHUNK runs at over the elements of this thread in a chunk of channel k of c.
#define EACH_OF_CHUNK(at, chunk, count, k, c, size)                                                                    \
	for (walk w = walk_of(chunk, count, size); w.left > 0; step(&w, size))                                             \
		for (long at = (w.image * (c) + (k)) * (size) + w.pixel, once = 1; once; once = 0)

#endif
