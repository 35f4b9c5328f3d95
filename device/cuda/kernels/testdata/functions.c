// The functions of src/functions.h, for the test of their accuracy, and the digest of what kernels have written.

#include "functions.h"

#define OF_FLOATS(name, expression)                                                                                    \
	KERNEL name(const float *x, float *y, long n) {                                                                    \
		EACH(i, n) {                                                                                                   \
			float v = x[i];                                                                                            \
			y[i] = expression;                                                                                         \
		}                                                                                                              \
	}

#define OF_DOUBLES(name, expression)                                                                                   \
	KERNEL name(const double *x, double *y, long n) {                                                                  \
		EACH(i, n) {                                                                                                   \
			double v = x[i];                                                                                           \
			y[i] = expression;                                                                                         \
		}                                                                                                              \
	}

INLINE float normal_cdf(float v) {
	float density;
	return normal_cdf32(v, &density);
}

OF_FLOATS(of_exp32, exp32(v))
OF_FLOATS(of_tanh32, tanh32(v))
OF_FLOATS(of_sigmoid32, sigmoid32(v))
OF_FLOATS(of_log1pexp32, log1pexp32(v))
OF_FLOATS(of_gauss32, gauss32(v))
OF_FLOATS(of_normal_cdf32, normal_cdf(v))
OF_DOUBLES(of_exp64, exp64(v))
OF_DOUBLES(of_log64, log64(v))
OF_DOUBLES(of_power64, power64(v, -0.37))

// digest_of goes on with a sum, FNV-1a, over bytes.
KERNEL digest_of(const unsigned char *x, long n, unsigned long *sum) {
	for (long i = 0; i < n; i++)
		*sum = (*sum ^ x[i]) * 0x100000001b3;
}
