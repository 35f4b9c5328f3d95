#include "functions.h"

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

KERNEL add(const float *a, const float *b, float *y, long n) {
	EACH(i, n) y[i] = a[i] + b[i];
}

KERNEL mul(const float *a, const float *b, float *y, long n) {
	EACH(i, n) y[i] = a[i] * b[i];
}

// scale: in place.
KERNEL scale(float *a, long n, double factor) {
	float by = (float)factor;
	EACH(i, n) a[i] *= by;
}

KERNEL affine(const float *x, float *y, long n, double factor, double shift) {
	float by = (float)factor, plus = (float)shift;
	EACH(i, n) y[i] = x[i] * by + plus;
}

// power: x -> x to a power, as C's pow has it.
KERNEL power(const float *x, float *y, long n, double exponent) {
	double magnitude = exponent < 0 ? -exponent : exponent;
	int whole = magnitude < 4503599627370496 ? magnitude == (double)(long)magnitude : 1; // 2⁵²
	int odd = magnitude < 4503599627370496 && whole && ((long)magnitude & 1);
	EACH(i, n) {
		double v = x[i], size = v < 0 ? -v : v, p;
		if (exponent == 2)
			p = v * v;
		else if (exponent == 1)
			p = v;
		else if (exponent == 0)
			p = 1;
		else if (exponent == -1)
			p = 1 / v;
		else if (exponent == 0.5)
			p = __builtin_sqrt(v);
		else {
			p = power64(size, exponent);
			if (v < 0)
				p = !whole ? __builtin_nan("") : odd ? -p : p;
		}
		y[i] = (float)p;
	}
}

KERNEL exponential(const float *x, float *y, long n) {
	EACH(i, n) y[i] = exp32(x[i]);
}

KERNEL logarithm(const float *x, float *y, long n) {
	EACH(i, n) y[i] = (float)log64(x[i]);
}

// error_function: near zero by Taylor's series, elsewhere by the normal distribution.
KERNEL error_function(const float *x, float *y, long n) {
	EACH(i, n) {
		float v = x[i], size = v < 0 ? -v : v, density;
		if (size < 1) {
			float s = v * v, p = 1 / 76204800.f; // 1/(10!·21)
			p = __builtin_fmaf(p, s, -1 / 6894720.f);
			p = __builtin_fmaf(p, s, 1 / 685440.f);
			p = __builtin_fmaf(p, s, -1 / 75600.f);
			p = __builtin_fmaf(p, s, 1 / 9360.f);
			p = __builtin_fmaf(p, s, -1 / 1320.f);
			p = __builtin_fmaf(p, s, 1 / 216.f);
			p = __builtin_fmaf(p, s, -1 / 42.f);
			p = __builtin_fmaf(p, s, 0.1f);
			p = __builtin_fmaf(p, s, -1 / 3.f);
			p = __builtin_fmaf(p, s, 1);
			y[i] = 1.12837917f * v * p; // 2/√π
		} else {
			float e = 2 * normal_cdf32(size * 1.41421356f, &density) - 1;
			y[i] = v < 0 ? -e : v != v ? v : e;
		}
	}
}

// gelu: x -> x·Φ(x).
KERNEL gelu(const float *x, float *y, long n) {
	EACH(i, n) {
		float v = x[i], density;
		y[i] = v * normal_cdf32(v, &density);
	}
}

// gelu_dx: x dy -> dx, dy times the slope Φ(x) + x·φ(x).
KERNEL gelu_dx(const float *x, const float *dy, float *dx, long n) {
	EACH(i, n) {
		float v = x[i], density, below = normal_cdf32(v, &density);
		dx[i] = dy[i] * (below + v * (density * 0.398942280f)); // 1/√2π
	}
}

KERNEL sigmoid(const float *x, float *y, long n) {
	EACH(i, n) y[i] = sigmoid32(x[i]);
}

// sigmoid_dx: y dy -> dx.
KERNEL sigmoid_dx(const float *y, const float *dy, float *dx, long n) {
	EACH(i, n) {
		float v = y[i];
		dx[i] = dy[i] * v * (1 - v);
	}
}

KERNEL hyperbolic_tangent(const float *x, float *y, long n) {
	EACH(i, n) y[i] = tanh32(x[i]);
}

// tanh_dx: y dy -> dx.
KERNEL tanh_dx(const float *y, const float *dy, float *dx, long n) {
	EACH(i, n) {
		float v = y[i];
		dx[i] = dy[i] * (1 - v * v);
	}
}

// blend: t a b -> t*a + (1-t)*b.
KERNEL blend(const float *t, const float *a, const float *b, float *y, long n) {
	EACH(i, n) {
		float v = t[i];
		y[i] = v * a[i] + (1 - v) * b[i];
	}
}

// blend_grad: t a b dy -> dt da db, each of which may be 0.
KERNEL blend_grad(const float *t, const float *a, const float *b, const float *dy, float *dt, float *da, float *db,
	long n) {
	EACH(i, n) {
		float v = t[i], d = dy[i];
		if (dt)
			dt[i] = d * (a[i] - b[i]);
		if (da)
			da[i] = d * v;
		if (db)
			db[i] = d * (1 - v);
	}
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
INLINE unsigned long mix(unsigned long z) {
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

// dropout: x -> y. The mask is that of the CPU's kernel: element i is kept by a hash of seed, iteration, key and i,
// when its 53 bits are not below the threshold.
KERNEL dropout(const float *x, float *y, long n, const long *iteration, unsigned long seed, unsigned long key,
	unsigned long threshold, double factor) {
	const unsigned long golden = 0x9e3779b97f4a7c15; // 2⁶⁴ divided by the golden ratio, made odd
	unsigned long state = mix(mix(mix(seed + golden) ^ (unsigned long)*iteration) ^ key);
	float by = (float)factor;
	EACH(i, n) {
		float v = x[i] * by;
		y[i] = mix(state + golden * (unsigned long)(i + 1)) >> 11 >= threshold ? v : 0;
	}
}
