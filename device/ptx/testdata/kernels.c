// Kernels of the tests. kernels.ptx is what clang-19 makes of them (see clang in compile_test.go); gcc compiles the same
// source, where a call runs one thread and what needs other threads is left out.

typedef float float4 __attribute__((vector_size(16)));

#ifdef __NVPTX__
#define KERNEL __attribute__((nvptx_kernel)) void
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#define SHARED static __attribute__((address_space(3)))
#else
#define KERNEL void
__thread unsigned THREAD, BLOCK, THREADS;
#endif
#define INDEX ((long)BLOCK * THREADS + THREAD)

static const float table[7] = {1, 2, -3, 4, 0.5f, 6, 7.25f};

__attribute__((noinline)) static float powers(float a, int n)
{
	float s = a;
	for (int i = 0; i < n; i++)
		s = s * a + 1.0f;
	return s;
}

struct pair {
	float a, b;
	int n;
	double c;
};

__attribute__((noinline)) static struct pair next(struct pair p, float x)
{
	p.a += x;
	p.n++;
	p.c *= x;
	return p;
}

KERNEL axpy(float *y, const float *x, double a, long n)
{
	long i = INDEX;
	if (i < n)
		y[i] = y[i] + (float)a * x[i];
}

KERNEL functions(float *y, const float *x, double a, long n)
{
	long i = INDEX;
	if (i >= n)
		return;
	float v = x[i];
	float r = __builtin_fmaf(v, v, (float)a) / __builtin_sqrtf(v * v + 1) + table[i % 7] + powers(v, (int)(i % 11));
	struct pair p = {v, r, (int)i, a};
	p = next(p, v);
	y[i] = p.a + p.b + (float)p.n + (float)p.c;
}

KERNEL integers(long *y, const long *x, long n)
{
	long i = INDEX;
	if (i >= n)
		return;
	long a = x[2 * i], b = x[2 * i + 1];
	unsigned long ua = a, ub = b;
	int c = (int)a, d = (int)b;
	short e = (short)a, f = (short)b;
	signed char g = (signed char)a;
	long *out = y + 24 * i;
	out[0] = a + b;
	out[1] = a * b - (a ^ b);
	out[2] = b ? (a >> 1) / (b | 1) : a % 7;
	out[3] = (long)(ua % (ub | 1));
	out[4] = (c >> 1) / (d | 1);
	out[5] = (unsigned)c % ((unsigned)d | 1);
	out[6] = a >> (b & 63);
	out[7] = (long)(ua << (b & 63));
	out[8] = c << (d & 31);
	out[9] = c >> (d & 31);
	out[10] = __builtin_popcountl(ua) + __builtin_popcount((unsigned)c);
	out[11] = (a ? __builtin_clzl(ua) : 64) + (c ? __builtin_clz((unsigned)c) : 32);
	out[12] = (long)((unsigned __int128)ua * ub >> 64);
	out[13] = (long)((__int128)a * b >> 64);
	out[14] = e * f + g;
	out[15] = (short)(e + f) - (signed char)(g << 1);
	out[16] = a < b ? a : b;
	out[17] = (long)(ua > ub ? ua : ub);
	out[18] = (c < 0 ? -c : c) + (c > d) + (ua < ub);
	out[19] = (long)__builtin_bswap64(ua) ^ __builtin_bswap32((unsigned)c);
	out[20] = (long)(ua << 13 | ua >> 51) + (long)((unsigned)c << 7 | (unsigned)c >> 25);
	out[21] = (long)(((__int128)a * b + a) >> 3);
	out[22] = (ua >> 5 & 127) + (int)(((unsigned)c << 5 & 0x7fffffff) >> 20);
	out[23] = (float)a == (float)b || (e < f && g != 3);
}

KERNEL conversions(double *y, const double *x, long n)
{
	long i = INDEX;
	if (i >= n)
		return;
	double d = x[i];
	float f = (float)d;
	double *out = y + 16 * i;
	out[0] = f;
	out[1] = d > -2e9 && d < 2e9 ? (int)d : 0;
	out[2] = d > -9e18 && d < 9e18 ? (double)(long)d : 1;
	out[3] = d >= 0 && d < 1.8e19 ? (double)(unsigned long)d : 2;
	out[4] = __builtin_floor(d) + __builtin_ceilf(f);
	out[5] = __builtin_rint(d) + __builtin_truncf(f);
	out[6] = __builtin_fabs(d) - __builtin_copysignf(3, f);
	out[7] = (float)(long)(f > -9e18f && f < 9e18f ? f : 0);
	out[8] = d < f ? 1 : d == f ? 2 : d > f ? 3 : 4;
	out[9] = __builtin_fmax(d, 1.5) + __builtin_fminf(f, -2);
	out[10] = __builtin_sqrt(d < 0 ? -d : d) / (d + 3);
	out[11] = 1 / d;
	out[12] = 1 / f;
	out[13] = __builtin_fma(d, d, d);
	out[14] = __builtin_isnan(d) + 2 * __builtin_isinf(f) + 4 * (d != d);
	out[15] = (float)(unsigned char)(d >= 0 && d < 255 ? d : 0) + (float)(short)(d > -30000 && d < 30000 ? d : 0);
}

KERNEL histogram(float *y, const int *x, long n)
{
	float counts[16];
	for (int i = 0; i < 16; i++)
		counts[i] = 0;
	for (long i = 0; i < n; i++)
		counts[x[i]] += 1;
	for (int i = 0; i < 16; i++)
		y[INDEX * 16 + i] = counts[i];
}

KERNEL collatz(int *y, const int *x, long n)
{
	long i = INDEX;
	if (i >= n)
		return;
	unsigned v = (unsigned)x[i];
	int steps = 0;
	while (v > 1) {
		if (v & 1) {
			v = 3 * v + 1;
			if (v % 5 == 0)
				steps += 100;
		} else {
			v /= 2;
		}
		steps++;
	}
	y[i] = steps;
}

KERNEL vectors(float4 *y, const float4 *x, long n)
{
	long i = INDEX;
	if (i < n)
		y[i] = x[i] * x[i] + y[i];
}

#ifdef __NVPTX__

KERNEL blockSum(float *y, const float *x, long n)
{
	SHARED float sums[256];
	float s = 0;
	for (long i = INDEX; i < n; i += 4 * THREADS)
		s += x[i];
	sums[THREAD] = s;
	__syncthreads();
	for (unsigned k = THREADS / 2; k > 0; k /= 2) {
		if (THREAD < k)
			sums[THREAD] += sums[THREAD + k];
		__syncthreads();
	}
	if (THREAD == 0)
		y[BLOCK] = sums[0];
}

KERNEL warpSum(float *y, const float *x, long n)
{
	float s = 0;
	for (long i = THREAD; i < n; i += 32)
		s += x[i];
	for (int d = 16; d; d /= 2)
		s += __nvvm_shfl_sync_bfly_f32(-1, s, d, 31);
	y[THREAD] = s;
	int b = __nvvm_vote_ballot_sync(-1, s > 0);
	if (b == -1)
		y[32 + THREAD] = (float)__nvvm_shfl_sync_down_i32(-1, (int)THREAD, 3, 31);
}

KERNEL transposed(float *y, const float *x, long n)
{
	SHARED float tile[32][33];
	unsigned column = __nvvm_read_ptx_sreg_tid_x(), row = __nvvm_read_ptx_sreg_tid_y();
	for (unsigned r = row; r < 32; r += 8)
		tile[r][column] = x[r * n + column];
	__syncthreads();
	for (unsigned r = row; r < 32; r += 8)
		y[r * n + column] = tile[column][r];
}

KERNEL counted(unsigned *y, unsigned long *z, const unsigned *x, long n)
{
	long i = INDEX;
	if (i >= n)
		return;
	__atomic_fetch_add(&y[x[i] & 3], 1, __ATOMIC_RELAXED);
	__atomic_fetch_max(&y[4], x[i], __ATOMIC_RELAXED);
	__atomic_fetch_add(z, (unsigned long)x[i], __ATOMIC_RELAXED);
}

KERNEL product(float *c, const float *a, const float *b, long n)
{
	SHARED float4 as[16][16], bs[16][16];
	unsigned tx = __nvvm_read_ptx_sreg_tid_x() % 16, ty = __nvvm_read_ptx_sreg_tid_x() / 16;
	float4 sum[4] = {};
	const float4 *a4 = (const float4 *)a, *b4 = (const float4 *)b;
	for (long k = 0; k < n; k += 16) {
		as[ty][tx] = a4[((k + ty) * n + BLOCK * 64) / 4 + tx];
		bs[ty][tx] = b4[((k + ty) * n + __nvvm_read_ptx_sreg_ctaid_y() * 64) / 4 + tx];
		__syncthreads();
#pragma unroll
		for (int i = 0; i < 16; i++) {
			float4 x = as[i][ty], y = bs[i][tx];
			for (int r = 0; r < 4; r++)
				for (int s = 0; s < 4; s++)
					sum[r][s] = __builtin_fmaf(x[r], y[s], sum[r][s]);
		}
		__syncthreads();
	}
	for (int r = 0; r < 4; r++)
		*(float4 *)&c[(BLOCK * 64 + ty * 4 + r) * n + __nvvm_read_ptx_sreg_ctaid_y() * 64 + tx * 4] = sum[r];
}

#endif
