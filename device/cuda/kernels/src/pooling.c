#include "common.h"

// Planes of h by w become planes of p by q. The gradients are gathered: a thread makes one pixel of dx and goes through
// the windows that hold it, in the order of dy.
#define GEOMETRY                                                                                                       \
	long h, long w, long p, long q, long kernel_h, long kernel_w, long stride_h, long stride_w, long pad_h, long pad_w

// A range along a dimension, the end not included.
typedef struct {
	long from, to;
} range;

// window is the part of output i's window that is not padding. It is never empty.
INLINE range window(long i, long extent, long kernel, long stride, long pad) {
	long from = i * stride - pad, to = from + kernel;
	return (range){from > 0 ? from : 0, to < extent ? to : extent};
}

// windows are the outputs whose windows hold input i.
INLINE range windows(long i, long outputs, long kernel, long stride, long pad) {
	long before = i + pad - kernel; // the last input, moved by pad, that ends before
	long from = before < 0 ? 0 : before / stride + 1, to = (i + pad) / stride + 1;
	return (range){from, to < outputs ? to : outputs};
}

#define ROWS(i) window(i, h, kernel_h, stride_h, pad_h)
#define COLUMNS(i) window(i, w, kernel_w, stride_w, pad_w)

// largest is the window's largest element, or NaN.
INLINE float largest(const float *x, long w, range rows, range columns) {
	float best = x[rows.from * w + columns.from];
	for (long i = rows.from; i < rows.to; i++)
		for (long j = columns.from; j < columns.to; j++) {
			float v = x[i * w + j];
			best = v > best || v != v ? v : best;
		}
	return best;
}

// max_pool: x -> y, of n elements.
KERNEL max_pool(const float *x, float *y, long n, GEOMETRY) {
	EACH(i, n) {
		long column = i % q, rest = i / q, row = rest % p, plane = rest / p;
		y[i] = largest(x + plane * h * w, w, ROWS(row), COLUMNS(column));
	}
}

// max_pool_indices: x -> y indices, either of which may be 0.
KERNEL max_pool_indices(const float *x, float *y, unsigned char *indices, long n, GEOMETRY) {
	EACH(i, n) {
		long column = i % q, rest = i / q, row = rest % p, plane = rest / p;
		const float *from = x + plane * h * w;
		range rows = ROWS(row), columns = COLUMNS(column);
		float best = largest(from, w, rows, columns);
		if (y)
			y[i] = best;
		if (!indices)
			continue;
		int index = 255; // none, where best is NaN
		for (long k = rows.from; k < rows.to; k++)
			for (long l = columns.from; l < columns.to; l++)
				if (index == 255 && from[k * w + l] == best)
					index = (int)((k - rows.from) * (columns.to - columns.from) + l - columns.from);
		indices[i] = (unsigned char)index;
	}
}

// is_first is whether (row, column), whose element is best, is the first of a window that is best.
INLINE int is_first(const float *x, long w, range rows, range columns, long row, long column, float best) {
	for (long i = rows.from; i <= row; i++)
		for (long j = columns.from; j < (i < row ? columns.to : column); j++)
			if (x[i * w + j] == best)
				return 0;
	return 1;
}

// max_pool_dx: x y dy -> dx, of n elements. A window gives its gradient to its first element equal to y.
KERNEL max_pool_dx(const float *x, const float *y, const float *dy, float *dx, long n, GEOMETRY) {
	EACH(i, n) {
		long column = i % w, rest = i / w, row = rest % h, plane = rest / h;
		const float *from = x + plane * h * w;
		float v = x[i], sum = 0;
		range down = windows(row, p, kernel_h, stride_h, pad_h), right = windows(column, q, kernel_w, stride_w, pad_w);
		for (long k = down.from; k < down.to; k++)
			for (long l = right.from; l < right.to; l++) {
				long at = (plane * p + k) * q + l;
				if (y[at] == v && is_first(from, w, ROWS(k), COLUMNS(l), row, column, v))
					sum += dy[at];
			}
		dx[i] = sum;
	}
}

// max_pool_indices_dx: indices dy -> dx, of n elements.
KERNEL max_pool_indices_dx(const unsigned char *indices, const float *dy, float *dx, long n, GEOMETRY) {
	EACH(i, n) {
		long column = i % w, rest = i / w, row = rest % h, plane = rest / h;
		float sum = 0;
		range down = windows(row, p, kernel_h, stride_h, pad_h), right = windows(column, q, kernel_w, stride_w, pad_w);
		for (long k = down.from; k < down.to; k++) {
			range rows = ROWS(k);
			for (long l = right.from; l < right.to; l++) {
				range columns = COLUMNS(l);
				long at = (plane * p + k) * q + l;
				if (indices[at] == (row - rows.from) * (columns.to - columns.from) + column - columns.from)
					sum += dy[at];
			}
		}
		dx[i] = sum;
	}
}

// divisor is what the sum of a window is divided by.
INLINE float divisor(range rows, range columns, long inside, long kernel_h, long kernel_w) {
	return (float)(inside ? (rows.to - rows.from) * (columns.to - columns.from) : kernel_h * kernel_w);
}

// avg_pool: x -> y, of n elements.
KERNEL avg_pool(const float *x, float *y, long n, GEOMETRY, long inside) {
	EACH(i, n) {
		long column = i % q, rest = i / q, row = rest % p, plane = rest / p;
		const float *from = x + plane * h * w;
		range rows = ROWS(row), columns = COLUMNS(column);
		float sum = 0;
		for (long k = rows.from; k < rows.to; k++)
			for (long l = columns.from; l < columns.to; l++)
				sum += from[k * w + l];
		y[i] = sum / divisor(rows, columns, inside, kernel_h, kernel_w);
	}
}

// avg_pool_dx: dy -> dx, of n elements.
KERNEL avg_pool_dx(const float *dy, float *dx, long n, GEOMETRY, long inside) {
	EACH(i, n) {
		long column = i % w, rest = i / w, row = rest % h, plane = rest / h;
		float sum = 0;
		range down = windows(row, p, kernel_h, stride_h, pad_h), right = windows(column, q, kernel_w, stride_w, pad_w);
		for (long k = down.from; k < down.to; k++)
			for (long l = right.from; l < right.to; l++)
				sum += dy[(plane * p + k) * q + l] / divisor(ROWS(k), COLUMNS(l), inside, kernel_h, kernel_w);
		dx[i] = sum;
	}
}
