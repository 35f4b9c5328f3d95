// Functions made of correctly rounded operations alone, so that their bits are those of any chip. Errors are relative
// and were measured (TestFunctions); an ulp of a float is 6e-8 to 1.2e-7.

#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "common.h"

INLINE float float_of(int bits) {
	union { int i; float f; } u = {.i = bits};
	return u.f;
}

INLINE int bits_of(float f) {
	union { int i; float f; } u = {.f = f};
	return u.i;
}

INLINE double double_of(long bits) {
	union { long i; double d; } u = {.i = bits};
	return u.d;
}

INLINE long bits_of64(double d) {
	union { long i; double d; } u = {.d = d};
	return u.i;
}

INLINE float power_of_two(int k) { return float_of((k + 127) << 23); } // -126 <= k <= 127

// reduced splits x, of an absolute value below 128, into k·ln 2 and a rest of at most ln 2 / 2. It returns the rest.
INLINE float reduced(float x, int *k) {
	const float big = 12582912; // 1.5·2²³: adding it rounds to an integer
	float t = __builtin_fmaf(x, 1.44269504f, big), n = t - big;
	*k = bits_of(t) - bits_of(big);
	return __builtin_fmaf(n, -1.42860682e-6f, __builtin_fmaf(n, -0.693145752f, x)); // both halves of ln 2
}

// above_one is exp(r)-1 for |r| <= ln 2 / 2, by Taylor's series.
INLINE float above_one(float r) {
	float p = 1 / 5040.f;
	p = __builtin_fmaf(p, r, 1 / 720.f);
	p = __builtin_fmaf(p, r, 1 / 120.f);
	p = __builtin_fmaf(p, r, 1 / 24.f);
	p = __builtin_fmaf(p, r, 1 / 6.f);
	p = __builtin_fmaf(p, r, 0.5f);
	return __builtin_fmaf(p, r * r, r);
}

// exp32 is within 1.5e-7, where it is a normal number.
INLINE float exp32(float x) {
	x = x > 89 ? 89 : x;
	x = x < -105 ? -105 : x;
	int k;
	float r = reduced(x, &k);
	if (x != x)
		k = 0;
	int half = k / 2;
	return (1 + above_one(r)) * power_of_two(half) * power_of_two(k - half);
}

// tanh32 is within 3e-7.
INLINE float tanh32(float x) {
	float a = x < 0 ? -x : x;
	a = a > 10 ? 10 : a;
	int k;
	float r = reduced(2 * a, &k);
	if (x != x)
		k = 0;
	float scale = power_of_two(k), e = __builtin_fmaf(scale, above_one(r), scale - 1); // exp(2a)-1
	float y = e / (e + 2);
	return x < 0 ? -y : y;
}

// sigmoid32 is within 3e-7, where it is a normal number.
INLINE float sigmoid32(float x) { return 1 / (1 + exp32(-x)); }

// log1pexp32 is log(1+exp(x)) for x <= 0, within 4e-7.
INLINE float log1pexp32(float x) {
	float e = exp32(x), s = e / (2 + e), z = s * s; // 2·atanh(s)
	float p = 1 / 15.f;
	p = __builtin_fmaf(p, z, 1 / 13.f);
	p = __builtin_fmaf(p, z, 1 / 11.f);
	p = __builtin_fmaf(p, z, 1 / 9.f);
	p = __builtin_fmaf(p, z, 1 / 7.f);
	p = __builtin_fmaf(p, z, 1 / 5.f);
	p = __builtin_fmaf(p, z, 1 / 3.f);
	return 2 * __builtin_fmaf(p, z * s, s);
}

// gauss32 is exp(-x²/2) within 2e-7, where it is a normal number. What x² loses when it is rounded is put back.
INLINE float gauss32(float x) {
	float h = x * x, lost = __builtin_fmaf(x, x, -h);
	float e = exp32(-0.5f * h);
	return e == 0 ? 0 : __builtin_fmaf(e, -0.5f * lost, e);
}

// normal_cdf32 is the distribution function of the standard normal distribution, within 5e-7 for x >= -13, and density
// is exp(-x²/2). The polynomial is exp(a²/2)·Φ(-a) in t = 1/(1+a/3), fitted at Chebyshev's points for a up to 14.5.
INLINE float normal_cdf32(float x, float *density) {
	float a = x < 0 ? -x : x;
	float e = gauss32(a), t = 3 / (3 + a);
	float p = -0.0277257927f;
	p = __builtin_fmaf(p, t, 0.154525969f);
	p = __builtin_fmaf(p, t, -0.325093396f);
	p = __builtin_fmaf(p, t, 0.284266106f);
	p = __builtin_fmaf(p, t, -0.102342484f);
	p = __builtin_fmaf(p, t, 0.143376894f);
	p = __builtin_fmaf(p, t, 0.105254649f);
	p = __builtin_fmaf(p, t, 0.134916689f);
	p = __builtin_fmaf(p, t, 0.132815204f);
	p = __builtin_fmaf(p, t, 6.15824041e-6f);
	*density = e;
	return x < 0 ? e * p : 1 - e * p;
}

// log64 is the logarithm of a positive normal number, within 1e-15 of the larger of it and 1.
INLINE double log64(double x) {
	if (!(x > 0 && x < __builtin_inf()))
		return x == 0 ? -__builtin_inf() : x > 0 ? x : __builtin_nan("");
	// x = m·2^e with m from √½ to √2
	long b = bits_of64(x) - 0x3fe6a09e667f3bcd;
	double e = (double)(b >> 52), m = double_of((b & 0xfffffffffffff) + 0x3fe6a09e667f3bcd);
	double s = (m - 1) / (m + 1), z = s * s, p = 0; // log m = 2·atanh(s)
	for (int n = 23; n >= 3; n -= 2)
		p = (p + 1.0 / n) * z;
	return e * 0.6931471805599453 + 2 * __builtin_fma(p, s, s);
}

// exp64 is within 1e-15 where it is a normal number, and 0 or infinite beyond.
INLINE double exp64(double x) {
	if (!(x > -708))
		return x != x ? x : 0;
	if (x > 709)
		return __builtin_inf();
	const double big = 6755399441055744; // 1.5·2⁵²
	double t = __builtin_fma(x, 1.4426950408889634, big), n = t - big;
	long k = bits_of64(t) - bits_of64(big);
	double r = __builtin_fma(n, -1.2996506893889888e-08, __builtin_fma(n, -0.6931471675634384, x));
	double p = 1;
	for (int n = 14; n >= 1; n--)
		p = __builtin_fma(p, r * (1.0 / n), 1);
	return p * double_of((k + 1023) << 52);
}

// power64 is x to a power for positive x, within 1e-13 where both x and it are from 1e-50 to 1e50.
INLINE double power64(double x, double exponent) { return exp64(exponent * log64(x)); }

#endif
