#include "product.h"

#define PRODUCT_OF(name, T, D, R, A, B) \
	KERNEL name(OPERANDS) { \
		BOUNDS(T / R * (T / R), 2); \
		SHARED ALIGNED float memory[4 * D * (T + 4)]; \
		struct product p = {OPERANDS_OF, {0}}; \
		product(T, D, R, A, B, p, memory, (struct table){0}); \
	}

// a and b as they stand (n), or stored the other way round (t). A dimension of images can be k of nt, in both operands
// (k_plane), and n of nn and tn, in b (n_plane) and c.
PRODUCT(product_nn, ROWS, COLS)
PRODUCT(product_nt, ROWS, ROWS)
PRODUCT(product_tn, COLS, COLS)
PRODUCT(product_tt, COLS, ROWS)

// product_sum adds up the parts of k: sums[batch][part][m][n] -> c.
KERNEL product_sum(const float *sums, float *c, const float *bias, long m, long n, long parts, long batches,
                   long c_stride, long c_image, long c_plane, long c_batch, long bias_m, long bias_batch,
                   long width, long pitch, long top, long left, long down, long right) {
	struct product p = {.bias = bias, .out = {c_stride, c_image, c_plane, c_batch, 0, bias_m, bias_batch,
	                                          {width, pitch, top, left, down, right}}};
	EACH(i, m * n * batches) {
		unsigned rest = (unsigned)i, col = rest % (unsigned)n;
		rest /= (unsigned)n;
		unsigned row = rest % (unsigned)m, batch = rest / (unsigned)m;
		const float *from = sums + batch * parts * m * n + (long)row * n + col;
		float sum = from[0];
		for (long s = 1; s < parts; s++) {
			sum += from[s * m * n];
		}
		c[batch * c_batch + row * c_stride + place(&p.out, (int)col)] =
			sum + row_bias(&p, batch, row) + column_bias(&p, batch, col);
	}
}
