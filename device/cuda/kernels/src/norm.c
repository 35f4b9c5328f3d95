#include "block.h"

// stats_chunks: x -> per channel and chunk the sum, and the sum of the squares of what the elements differ from the
// chunk's mean.
KERNEL stats_chunks(const float *x, double *sums, long count, long c, long size, long chunks) {
	long k = BLOCK / chunks, chunk = BLOCK % chunks;
	double sum = 0, squares = 0;
	EACH_OF_CHUNK(at, chunk, count, k, c, size) sum += x[at];
	sum = block_sum(0, sum);
	double mean = sum / (double)chunk_length(chunk, count);
	EACH_OF_CHUNK(at, chunk, count, k, c, size) {
		double d = x[at] - mean;
		squares += d * d;
	}
	squares = block_sum(1, squares);
	if (THREAD == 0) {
		sums[2 * BLOCK] = sum;
		sums[2 * BLOCK + 1] = squares;
	}
}

// stats: those -> mean variance, either of which may be 0. A block per channel. The squares are those around the
// chunks' means, and what these differ from the channel's (Chan, Golub and LeVeque).
KERNEL stats(const double *sums, float *mean, float *variance, long count, long chunks) {
	sums += 2 * BLOCK * chunks;
	double sum = 0, squares = 0;
	STRIDED(i, chunks) sum += sums[2 * i];
	double centre = block_sum(0, sum) / (double)count;
	STRIDED(i, chunks) {
		double n = (double)chunk_length(i, count), d = sums[2 * i] / n - centre;
		squares += sums[2 * i + 1] + n * d * d;
	}
	squares = block_sum(1, squares);
	if (THREAD == 0 && mean)
		mean[BLOCK] = (float)centre;
	if (THREAD == 0 && variance)
		variance[BLOCK] = (float)(squares / (double)count);
}

// batch_norm: x mean variance gamma beta -> y, of n elements.
KERNEL batch_norm(const float *x, const float *mean, const float *variance, const float *gamma, const float *beta,
	float *y, long n, long c, long size, double constant) {
	float epsilon = (float)constant;
	EACH(i, n) {
		long k = i / size % c;
		float factor = gamma[k] / __builtin_sqrtf(variance[k] + epsilon);
		y[i] = (x[i] - mean[k]) * factor + beta[k];
	}
}

// batch_norm_update: both running statistics, in place. factor makes a variance unbiased.
KERNEL batch_norm_update(const float *mean, const float *variance, float *running_mean, float *running_variance, long c,
	double momentum, double unbiased) {
	float share = (float)momentum, factor = (float)unbiased;
	EACH(k, c) {
		running_mean[k] = (1 - share) * running_mean[k] + share * mean[k];
		running_variance[k] = (1 - share) * running_variance[k] + share * (factor * variance[k]);
	}
}

// grad_chunks: x mean dy -> per channel and chunk the sums of dy and of dy·(x-mean).
KERNEL grad_chunks(const float *x, const float *mean, const float *dy, double *sums, long count, long c, long size,
	long chunks) {
	long k = BLOCK / chunks, chunk = BLOCK % chunks;
	double sum = 0, product = 0, centre = mean[k];
	EACH_OF_CHUNK(at, chunk, count, k, c, size) {
		double d = dy[at];
		sum += d;
		product += (x[at] - centre) * d;
	}
	sum = block_sum(0, sum);
	product = block_sum(1, product);
	if (THREAD == 0) {
		sums[2 * BLOCK] = sum;
		sums[2 * BLOCK + 1] = product;
	}
}

// grads: those -> dgamma dbeta, either of which may be 0, and three factors per channel for batch_norm_dx. A block per
// channel.
KERNEL grads(const double *sums, const float *variance, const float *gamma, float *dgamma, float *dbeta, float *factors,
	long count, long chunks, double epsilon) {
	sums += 2 * BLOCK * chunks;
	double sum = 0, product = 0;
	STRIDED(i, chunks) {
		sum += sums[2 * i];
		product += sums[2 * i + 1];
	}
	sum = block_sum(0, sum);
	product = block_sum(1, product);
	if (THREAD != 0)
		return;
	double inverse = 1 / __builtin_sqrt(variance[BLOCK] + epsilon);
	if (dgamma)
		dgamma[BLOCK] = (float)(product * inverse);
	if (dbeta)
		dbeta[BLOCK] = (float)sum;
	factors += 3 * BLOCK;
	factors[0] = (float)(gamma[BLOCK] * inverse);
	factors[1] = (float)(sum / (double)count);
	factors[2] = (float)(product * inverse * inverse / (double)count);
}

// batch_norm_dx: x mean dy -> dx, of n elements.
KERNEL batch_norm_dx(const float *x, const float *mean, const float *dy, float *dx, const float *factors, long n,
	long c, long size) {
	EACH(i, n) {
		long k = i / size % c;
		const float *f = factors + 3 * k;
		dx[i] = f[0] * (dy[i] - f[1] - (x[i] - mean[k]) * f[2]);
	}
}

// layer_norm: x gamma beta -> y mean scale, by rows of width, a block for each. Any output may be 0.
KERNEL layer_norm(const float *x, const float *gamma, const float *beta, float *y, float *mean, float *scale, long rows,
	long width, double epsilon) {
	EACH_ROW(r, rows) {
		const float *row = x + r * width;
		double sum = 0, squares = 0;
		STRIDED(i, width) sum += row[i];
		double centre = block_sum(0, sum) / (double)width;
		STRIDED(i, width) {
			double d = row[i] - centre;
			squares += d * d;
		}
		double inverse = 1 / __builtin_sqrt(block_sum(1, squares) / (double)width + epsilon);
		if (THREAD == 0 && mean)
			mean[r] = (float)centre;
		if (THREAD == 0 && scale)
			scale[r] = (float)inverse;
		if (y)
			STRIDED(i, width) y[r * width + i] = (float)((row[i] - centre) * inverse) * gamma[i] + beta[i];
	}
}

// layer_norm_columns: x mean scale dy -> per part of the rows and column, of n in all, the sums of dy·x' and of dy,
// where x' is the normalised input.
KERNEL layer_norm_columns(const float *x, const float *mean, const float *scale, const float *dy, double *products,
	double *sums, long n, long rows, long width, long part_rows) {
	EACH(i, n) {
		long column = i % width, first = i / width * part_rows;
		long end = first + part_rows < rows ? first + part_rows : rows;
		double product = 0, sum = 0;
		for (long r = first; r < end; r++) {
			float d = dy[r * width + column];
			product += d * ((x[r * width + column] - mean[r]) * scale[r]);
			sum += d;
		}
		products[i] = product;
		sums[i] = sum;
	}
}

// layer_norm_dx: x mean scale gamma dy -> dx, by rows of width. With g = gamma·dy and means over a row,
// dx = scale·(g - mean(g) - x'·mean(g·x')).
KERNEL layer_norm_dx(const float *x, const float *mean, const float *scale, const float *gamma, const float *dy,
	float *dx, long rows, long width) {
	EACH_ROW(r, rows) {
		long begin = r * width;
		double centre = mean[r], by = scale[r], sum = 0, product = 0;
		STRIDED(i, width) {
			double g = (double)gamma[i] * dy[begin + i];
			sum += g;
			product += g * (x[begin + i] - centre) * by;
		}
		sum = block_sum(0, sum) / (double)width;
		product = block_sum(1, product) / (double)width;
		STRIDED(i, width) {
			double g = (double)gamma[i] * dy[begin + i];
			dx[begin + i] = (float)(by * (g - sum - (x[begin + i] - centre) * by * product));
		}
	}
}
