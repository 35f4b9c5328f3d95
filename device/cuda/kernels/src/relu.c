#include "common.h"

// relu: x -> y. NaN stays NaN.
KERNEL relu(const float *x, float *y, long n) {
	EACH(i, n) {
		float v = x[i];
		y[i] = v > 0 || v != v ? v : 0;
	}
}

// relu_dx: y dy -> dx: dy where y is positive.
KERNEL relu_dx(const float *y, const float *dy, float *dx, long n) {
	EACH(i, n) {
		float v = dy[i];
		dx[i] = y[i] > 0 ? v : 0;
	}
}
