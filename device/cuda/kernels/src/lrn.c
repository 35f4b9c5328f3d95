#include "functions.h"

// Images of c channels, each of size pixels; around each channel a window of channels reaches half of them each way.
// Each thread makes one element.

typedef struct {
	float factor, epsilon;
	double exponent;
} normalisation;

INLINE long first_of(long k, long half) { return k > half ? k - half : 0; }
INLINE long end_of(long k, long half, long c) { return k + half + 1 < c ? k + half + 1 : c; }

// scale_of is Epsilon + Factor·Σx² of channel k; x is the pixel in channel 0.
INLINE float scale_of(const float *x, long k, long c, long size, long half, normalisation l) {
	float s = l.epsilon;
	for (long j = first_of(k, half); j < end_of(k, half, c); j++) {
		float v = x[j * size];
		s += l.factor * v * v;
	}
	return s;
}

// shrink is s^-Exponent. For three quarters, which every known network has, two roots do.
INLINE float shrink(float s, normalisation l) {
	if (l.exponent == 0.75) {
		float root = __builtin_sqrtf(s);
		return 1 / (root * __builtin_sqrtf(root));
	}
	return (float)power64(s, -l.exponent);
}

// lrn: x -> y, of n elements.
KERNEL lrn(const float *x, float *y, long n, long c, long size, long half, double factor, double exponent,
	double epsilon) {
	normalisation l = {(float)factor, (float)epsilon, exponent};
	EACH(i, n) {
		long k = i / size % c;
		y[i] = x[i] * shrink(scale_of(x + i - k * size, k, c, size, half, l), l);
	}
}

// lrn_dx: x y dy -> dx, of n elements: dx = dy·s^-Exponent - 2·Factor·Exponent·x·Σ dy·y/s over the window, whose scales
// are computed again.
KERNEL lrn_dx(const float *x, const float *y, const float *dy, float *dx, long n, long c, long size, long half,
	double factor, double exponent, double epsilon) {
	normalisation l = {(float)factor, (float)epsilon, exponent};
	float slope = (float)(2 * factor * exponent);
	EACH(i, n) {
		long k = i / size % c, pixel = i - k * size;
		float sum = 0, own = 1;
		for (long j = first_of(k, half); j < end_of(k, half, c); j++) {
			long at = pixel + j * size;
			float s = scale_of(x + pixel, j, c, size, half, l);
			own = j == k ? s : own;
			sum += dy[at] * y[at] / s;
		}
		dx[i] = dy[i] * shrink(own, l) - slope * x[i] * sum;
	}
}
