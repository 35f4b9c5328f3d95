#include "common.h"

// Convolutions with so few filters or channels in a group that tiles of a product would be nearly empty, those with
// groups of one channel above all. The order of sums is that of conv.c, without the weights that meet no pixel.

#define GROUPED \
	long filters, long channels, long group_filters, long group_channels, long height, long width, long p, long q, \
	long rs, long ss, long y_stride, long x_stride, long y_pad, long x_pad

// grouped: x w (b) -> y. A block makes up to as many pixels as it has threads, of one plane of y.
KERNEL grouped(const float *x, const float *w, const float *bias, float *y, GROUPED) {
	int pixels = (int)(p * q), parts = (pixels + (int)THREADS - 1) / (int)THREADS, plane = (int)BLOCK / parts;
	int pixel = (int)BLOCK % parts * (int)THREADS + (int)THREAD, filter = plane % (int)filters;
	if (pixel >= pixels) {
		return;
	}
	int top = pixel / (int)q * (int)y_stride - (int)y_pad, left = pixel % (int)q * (int)x_stride - (int)x_pad;
	long channel = plane / (int)filters * channels + filter / (int)group_filters * group_channels;
	const float *from = x + channel * height * width;
	const float *weight = w + filter * group_channels * rs * ss;
	float sum = 0;
	for (int c = 0; c < (int)group_channels; c++) {
		for (int r = 0; r < (int)rs; r++) {
			for (int s = 0; s < (int)ss; s++) {
				if ((unsigned)(top + r) < (unsigned)height && (unsigned)(left + s) < (unsigned)width) {
					sum = __builtin_fmaf(weight[s], from[(top + r) * (int)width + left + s], sum);
				}
			}
			weight += ss;
		}
		from += height * width;
	}
	sum += 0.0f;
	y[(long)plane * pixels + pixel] = bias ? sum + bias[filter] : sum;
}

// grouped_dx: w dy -> dx. A block makes up to as many pixels as it has threads, of one plane of dx.
KERNEL grouped_dx(const float *w, const float *dy, float *dx, GROUPED) {
	int pixels = (int)(height * width), parts = (pixels + (int)THREADS - 1) / (int)THREADS, plane = (int)BLOCK / parts;
	int pixel = (int)BLOCK % parts * (int)THREADS + (int)THREAD, channel = plane % (int)channels;
	if (pixel >= pixels) {
		return;
	}
	int y = pixel / (int)width + (int)y_pad, x = pixel % (int)width + (int)x_pad, group = channel / (int)group_channels;
	const float *from = dy + (plane / (int)channels * filters + group * group_filters) * p * q;
	const float *weight = w + (group * group_filters * group_channels + channel % group_channels) * rs * ss;
	float sum = 0;
	for (int k = 0; k < (int)group_filters; k++) {
		for (int r = y % (int)y_stride, row = y / (int)y_stride; r < (int)rs; r += (int)y_stride, row--) {
			for (int s = x % (int)x_stride, col = x / (int)x_stride; s < (int)ss; s += (int)x_stride, col--) {
				if ((unsigned)row < (unsigned)p && (unsigned)col < (unsigned)q) {
					sum = __builtin_fmaf(weight[r * (int)ss + s], from[row * (int)q + col], sum);
				}
			}
		}
		from += p * q;
		weight += group_channels * rs * ss;
	}
	dx[(long)plane * pixels + pixel] = sum + 0.0f;
}

// place is a pixel of dy.
struct place {
	int image, row, col;
};

INLINE struct place place_of(int i, int p, int q) {
	struct place at = {i / q / p, i / q % p, i % q};
	return at;
}

// grouped_dw: dy x -> dw. A block makes one weight: each of its 128 threads a chain over every 128th pixel of dy, in
// all images, and then halves of these sums are added to each other.
KERNEL grouped_dw(const float *dy, const float *x, float *dw, long images, GROUPED) {
	BOUNDS(128, 1);
	SHARED float sums[128];
	int t = (int)THREAD, weight = (int)BLOCK, s = weight % (int)ss, r = weight / (int)ss % (int)rs;
	int c = weight / (int)(ss * rs) % (int)group_channels, filter = weight / (int)(ss * rs * group_channels);
	const float *from = x + (filter / (int)group_filters * group_channels + c) * height * width;
	const float *gradient = dy + filter * p * q;
	struct place at = place_of(t, (int)p, (int)q), by = place_of(128, (int)p, (int)q);
	float sum = 0;
	while (at.image < (int)images) {
		int row = at.row * (int)y_stride - (int)y_pad + r, col = at.col * (int)x_stride - (int)x_pad + s;
		if ((unsigned)row < (unsigned)height && (unsigned)col < (unsigned)width) {
			sum = __builtin_fmaf(gradient[at.image * filters * p * q + at.row * (int)q + at.col],
			                     from[at.image * channels * height * width + row * (int)width + col], sum);
		}
		at.col += by.col;
		if (at.col >= (int)q) {
			at.col -= (int)q;
			at.row++;
		}
		at.row += by.row;
		if (at.row >= (int)p) {
			at.row -= (int)p;
			at.image++;
		}
		at.image += by.image;
	}
	sums[t] = sum + 0.0f;
	for (int half = 64; half > 0; half /= 2) {
		SYNC();
		if (t < half) {
			sums[t] += sums[t + half];
		}
	}
	if (t == 0) {
		dw[weight] = sums[0];
	}
}
