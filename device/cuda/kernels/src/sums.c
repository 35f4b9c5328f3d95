#include "block.h"

// chunk_sums: x, of channels of count elements, -> a sum per channel and chunk, a block for each.
KERNEL chunk_sums(const float *x, double *sums, long count, long c, long size, long chunks) {
	long k = BLOCK / chunks, chunk = BLOCK % chunks;
	double sum = 0;
	EACH_OF_CHUNK(at, chunk, count, k, c, size) sum += x[at];
	sum = block_sum(0, sum);
	if (THREAD == 0)
		sums[BLOCK] = sum;
}

// sum_chunks: the sums of a channel's chunks -> their sum divided by a number, a block per channel.
KERNEL sum_chunks(const double *sums, float *total, long chunks, double divisor) {
	double sum = 0;
	STRIDED(i, chunks) sum += sums[BLOCK * chunks + i];
	sum = block_sum(0, sum);
	if (THREAD == 0)
		total[BLOCK] = (float)(sum / divisor);
}

// column_sums: x, of rows of width -> a sum per part, which are rows that follow one another, and column, of n in all.
KERNEL column_sums(const float *x, double *sums, long n, long rows, long width, long part_rows) {
	EACH(i, n) {
		long column = i % width, first = i / width * part_rows;
		long end = first + part_rows < rows ? first + part_rows : rows;
		double sum = 0;
		for (long r = first; r < end; r++)
			sum += x[r * width + column];
		sums[i] = sum;
	}
}

// sum_parts: the sums of parts -> their sum, per column.
KERNEL sum_parts(const double *sums, float *total, long width, long parts) {
	EACH(column, width) {
		double sum = 0;
		for (long p = 0; p < parts; p++)
			sum += sums[p * width + column];
		total[column] = (float)sum;
	}
}

// square_chunks: a b -> the sum of (a-b)² per chunk of the n elements.
KERNEL square_chunks(const float *a, const float *b, double *sums, long n) {
	double sum = 0;
	EACH_OF_CHUNK(at, BLOCK, n, 0, 1, n) {
		double d = (double)a[at] - b[at];
		sum += d * d;
	}
	sum = block_sum(0, sum);
	if (THREAD == 0)
		sums[BLOCK] = sum;
}
