#include "block.h"
#include "functions.h"

// softmax: x -> y, of rows of width, the softmax of each times factor; if it is causal, of the columns up to the row's
// own, the rows being counted from 0 to period. A block for each row.
KERNEL softmax(const float *x, float *y, long rows, long width, double by, long causal, long period) {
	float factor = (float)by;
	EACH_ROW(r, rows) {
		const float *from = x + r * width;
		float *to = y + r * width;
		long seen = causal ? r % period + 1 : width;
		float top = from[0];
		STRIDED(i, seen) top = larger(top, from[i]);
		top = block_max(top);
		double sum = 0;
		STRIDED(i, seen) {
			float e = exp32(factor * (from[i] - top));
			sum += e;
			to[i] = e;
		}
		float total = (float)block_sum(0, sum);
		STRIDED(i, width) to[i] = i < seen ? to[i] / total : 0;
	}
}

// softmax_dx: y dy -> dx, of rows of width: factor·y·(dy - Σ y·dy). A block for each row.
KERNEL softmax_dx(const float *y, const float *dy, float *dx, long rows, long width, double factor) {
	EACH_ROW(r, rows) {
		long begin = r * width;
		double product = 0;
		STRIDED(i, width) product += (double)y[begin + i] * dy[begin + i];
		product = block_sum(0, product);
		STRIDED(i, width) dx[begin + i] = (float)(factor * y[begin + i] * (dy[begin + i] - product));
		SYNC(); // before the next sum
	}
}

// additive_scores: q k v -> e, of n elements, for queries and keys of so many features: the sum of v·tanh(q+k).
KERNEL additive_scores(const float *q, const float *k, const float *v, float *e, long n, long queries, long keys,
	long features) {
	EACH(i, n) {
		long s = i % keys, query = i / keys;
		const float *left = q + query * features, *right = k + (query / queries * keys + s) * features;
		double sum = 0;
		for (long f = 0; f < features; f++)
			sum += (double)v[f] * tanh32(left[f] + right[f]);
		e[i] = (float)sum;
	}
}

// additive_scores_dq: q k v de -> dq, of n elements, and its share of dv per query; either may be 0.
KERNEL additive_scores_dq(const float *q, const float *k, const float *v, const float *de, float *dq, double *dv,
	long n, long queries, long keys, long features) {
	EACH(i, n) {
		long f = i % features, query = i / features;
		const float *right = k + query / queries * keys * features + f, *d = de + query * keys;
		float own = q[i];
		double grad = 0, share = 0;
		for (long s = 0; s < keys; s++) {
			float y = tanh32(own + right[s * features]);
			share += (double)d[s] * y;
			grad += (double)d[s] * (1 - y * y);
		}
		if (dq)
			dq[i] = (float)(grad * v[f]);
		if (dv)
			dv[i] = share;
	}
}

// additive_scores_dk: q k v de -> dk, of n elements.
KERNEL additive_scores_dk(const float *q, const float *k, const float *v, const float *de, float *dk, long n,
	long queries, long keys, long features) {
	EACH(i, n) {
		long f = i % features, key = i / features, s = key % keys, first = key / keys * queries;
		float own = k[i];
		double grad = 0;
		for (long query = first; query < first + queries; query++) {
			float y = tanh32(q[query * features + f] + own);
			grad += (double)de[query * keys + s] * (1 - y * y);
		}
		dk[i] = (float)(grad * v[f]);
	}
}
