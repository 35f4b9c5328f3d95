#include "product.h"

#define IMAGE \
	long height, long width, long js, long is, long k_outer, long j_step, long i_step, long ys, long xs, long n_outer, \
	long y_step, long x_step, long y_first, long x_first

#define IMAGE_OF \
	height, width, js, is, k_outer, j_step, i_step, ys, xs, n_outer, y_step, x_step, y_first, x_first

#define PRODUCT_OF(name, T, D, R, A, B) \
	KERNEL name(OPERANDS, IMAGE) { \
		BOUNDS(T / R * (T / R), 1); \
		SHARED ALIGNED float memory[4 * D * (T + 4)]; \
		SHARED tap taps[2 * (T / R * (T / R))]; \
		struct product p = {OPERANDS_OF, {IMAGE_OF, 0, 0, 0}}; \
		product(T, D, R, A, B, p, memory, (struct table){taps, 0}); \
	}

// conv: w x -> y. m is the filter, n the image and the pixel of y, k the channel and the weight.
PRODUCT(conv, ROWS, WINDOWS)

// conv_dw: dy x -> dw. m is the filter, n the channel and the weight, k the image and the pixel of dy.
PRODUCT(conv_dw, ROWS, POSITIONS)

#undef PRODUCT_OF
#define PRODUCT_OF(name, T, D, R, A, B) \
	KERNEL name(OPERANDS, IMAGE, long f_outer, long f_j, long f_i, long out_width, long pitch, long top, long left, \
	            long down, long right) { \
		BOUNDS(T / R * (T / R), 1); \
		SHARED ALIGNED float memory[4 * D * (T + 4)]; \
		SHARED tap taps[2 * (T / R * (T / R))]; \
		SHARED int filters[2 * (T / R * (T / R))]; \
		struct product p = {OPERANDS_OF, {IMAGE_OF, f_outer, f_j, f_i}}; \
		p.out.lattice = (struct lattice){out_width, pitch, top, left, down, right}; \
		product(T, D, R, A, B, p, memory, (struct table){taps, filters}); \
	}

// conv_dx: w dy -> dx, of the pixels of dx that lie at the same place between two windows. m is the channel, n the
// image and the pixel, k the filter and those of its weights that meet these pixels.
PRODUCT(conv_dx, FILTERS, WINDOWS)
