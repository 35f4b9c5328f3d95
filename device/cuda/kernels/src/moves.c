#include "common.h"

// copy_rows: n elements in rows of width, from rows of another stride to rows of another.
KERNEL copy_rows(const float *x, float *y, long n, long width, long x_begin, long x_stride, long y_begin,
	long y_stride) {
	EACH(i, n) {
		long row = i / width, column = i % width;
		y[row * y_stride + y_begin + column] = x[row * x_stride + x_begin + column];
	}
}

// expand: x, rows of width -> y, each row so many times, n elements.
KERNEL expand(const float *x, float *y, long n, long times, long width) {
	EACH(i, n) y[i] = x[i / width / times * width + i % width];
}

// sum_over: x[A,count,width] -> y[A,width], n elements, by a thread each in the order of the rows.
KERNEL sum_over(const float *x, float *y, long n, long count, long width) {
	EACH(i, n) {
		const float *from = x + i / width * count * width + i % width;
		double sum = 0;
		for (long k = 0; k < count; k++)
			sum += from[k * width];
		y[i] = (float)sum;
	}
}

// slice_dx: dy, of rows of width, -> dx, of rows of stride, zero outside of the range.
KERNEL slice_dx(const float *dy, float *dx, long n, long width, long begin, long stride) {
	EACH(i, n) {
		long row = i / stride, column = i % stride - begin;
		dx[i] = column >= 0 && column < width ? dy[row * width + column] : 0;
	}
}

// slice_accumulate: dy, of n elements in rows of width, is added to the range of dx.
KERNEL slice_accumulate(float *dx, const float *dy, long n, long width, long begin, long stride) {
	EACH(i, n) {
		long row = i / width, column = i % width;
		dx[row * stride + begin + column] += dy[i];
	}
}

// pad: x, planes of h by w, -> y, planes of p by q, n elements.
KERNEL pad(const float *x, float *y, long n, long h, long w, long p, long q, long top, long left) {
	EACH(i, n) {
		long column = i % q - left, rest = i / q, row = rest % p - top, plane = rest / p;
		y[i] = row >= 0 && row < h && column >= 0 && column < w ? x[(plane * h + row) * w + column] : 0;
	}
}

// transpose: x[A,M,N,D] -> y[A,N,M,D], of n elements.
KERNEL transpose(const float *x, float *y, long n, long rows, long columns, long depth) {
	EACH(i, n) {
		long d = i % depth, rest = i / depth, m = rest % rows;
		rest /= rows;
		long k = rest % columns, a = rest / columns;
		y[i] = x[((a * rows + m) * columns + k) * depth + d];
	}
}
