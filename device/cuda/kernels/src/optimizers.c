#include "common.h"

KERNEL sgd(float *w, const float *dw, long n, double learning_rate) {
	float rate = (float)learning_rate;
	EACH(i, n) w[i] -= rate * dw[i];
}

KERNEL sgd_momentum(float *w, const float *dw, float *m, long n, double learning_rate, double momentum) {
	float rate = (float)learning_rate, keep = (float)momentum;
	EACH(i, n) {
		float v = keep * m[i] + dw[i];
		m[i] = v;
		w[i] -= rate * v;
	}
}

// power is x to the n, n >= 1, by squaring.
INLINE double power(double x, long n) {
	double product = 1;
	for (; n > 0; n >>= 1, x *= x)
		if (n & 1)
			product *= x;
	return product;
}

// adam: at step iteration+1. The corrections of both moments are worked into the factors rate and root.
KERNEL adam(float *w, const float *dw, float *m, float *v, long n, const long *iteration, double learning_rate,
	double decay1, double decay2, double constant) {
	long step = *iteration + 1;
	float beta1 = (float)decay1, beta2 = (float)decay2, fresh1 = (float)(1 - decay1), fresh2 = (float)(1 - decay2);
	float rate = (float)(learning_rate / (1 - power(decay1, step))), epsilon = (float)constant;
	float root = (float)(1 / __builtin_sqrt(1 - power(decay2, step)));
	EACH(i, n) {
		float g = dw[i], m1 = beta1 * m[i] + fresh1 * g, v1 = beta2 * v[i] + fresh2 * g * g;
		m[i] = m1;
		v[i] = v1;
		w[i] -= rate * m1 / (__builtin_sqrtf(v1) * root + epsilon);
	}
}
