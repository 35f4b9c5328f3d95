// The tile of a matrix product: c[m][n] = the sum over k of a[m][k]*b[k][n], for every kernel of product.c and conv.c.
//
// A block makes a tile of T by T elements of c, a thread R by R of them. The block goes over k in steps of D: while it
// multiplies one slice of a (T by D) and of b (D by T), which lie in shared memory, every thread already loads four
// elements of each operand's next slice into registers, and puts them into the other half of shared memory then. So
// there is one barrier a step.
//
// An element of c is one chain of fma over k in rising order, whatever T, D and R are. What lies beyond k, m or n
// counts as zero and is never read. Zeros after the end of a chain turn a -0 into +0, so each gets + 0 in the end.
// Where k is split, a block makes the chain of one part, and product_sum adds the parts in their order.

#ifndef PRODUCT_H
#define PRODUCT_H

#include "common.h"

typedef float vector __attribute__((vector_size(16)));
typedef float pair __attribute__((vector_size(8)));

#ifdef __NVPTX__
#define IN_SHARED __attribute__((address_space(3)))
#else
#define IN_SHARED
#endif
#define ALIGNED __attribute__((aligned(16)))

// How the operands are stored, and which four elements of a slice a thread loads.
enum {
	ROWS,     // k runs along memory: four of k, of one row
	COLS,     // m or n runs along memory: four of them, at one k
	WINDOWS,  // b: pixels under windows of an image, n the windows: four of k, of one window
	FILTERS,  // a: weights of filters by channel: four of k, of one channel
	POSITIONS // b: pixels under windows of an image, k the windows: four of n, at one k
};

// OPERANDS are the parameters that every product has. Distances are in elements. Where a dimension of an operand is
// made of images, plane is its extent in one image, and image the distance between two images; otherwise plane is 1 <<
// 30. Four elements of COLS must lie in one image.
#define OPERANDS \
	const float *a, const float *b, float *c, const float *bias, long m, long n, long k, long part, long parts, \
	long a_stride, long a_image, long a_batch, long b_stride, long b_image, long b_batch, long k_plane, long n_plane, \
	long c_stride, long c_image, long c_plane, long c_batch, long c_part, long bias_m, long bias_batch

#define OPERANDS_OF \
	a, b, c, bias, m, n, k, part, parts, a_stride, a_image, a_batch, b_stride, b_image, b_batch, k_plane, n_plane, \
	{ c_stride, c_image, c_plane, c_batch, c_part, bias_m, bias_batch, {0} }

// lattice are pixels of images, as the columns of c: of each image rows of `width`, from pixel (top, left) on, every
// down-th row and every right-th column of an image with rows of `pitch`. A width of 0: c is no such thing.
struct lattice {
	long width, pitch, top, left, down, right;
};

// output says where elements of c lie, and which bias is added to them.
struct output {
	long stride, image, plane, batch, part;
	long bias_m, bias_batch; // bias_m: a bias is one of a row of c, else of a column; bias_batch: and the next entry's
	struct lattice lattice;
};

// image says how k and n are made of a convolution's dimensions. k is (channel or image, j, i), n is (outer, y, x),
// each with the last fastest. The pixel of k and n is at row y*y_step + y_first + j*j_step of an image, and at a column
// alike.
struct image {
	long height, width;  // of the image that is read
	long js, is;         // extents of j and i
	long k_outer;        // distance in memory of two of k's outermost
	long j_step, i_step; // in pixels
	long ys, xs;         // extents of y and x
	long n_outer;        // distance in memory of two of n's outermost
	long y_step, x_step, y_first, x_first;
	long f_outer, f_j, f_i; // of FILTERS: distances of two k's outermost, j and i
};

struct product {
	const float *a, *b;
	float *c;
	const float *bias;
	long m, n, k;
	long part, parts; // of k, the length of one a multiple of 16
	long a_stride, a_image, a_batch, b_stride, b_image, b_batch, k_plane, n_plane;
	struct output out;
	struct image image;
};

// tap is what a k of a convolution means: how far its pixel is from that of j = i = 0 of the first channel or image, in
// elements and, in both halves of the second number, in rows and columns. A block tabulates it for as many k as it has
// threads, in a ring of two such tables, so that nobody divides in the loop. An end of k lies above every image.
typedef long tap __attribute__((vector_size(16)));

enum { OUTSIDE = -(1 << 30) };

// table is the ring; filters are distances of FILTERS, -1 where k has ended.
struct table {
	IN_SHARED tap *taps;
	IN_SHARED int *filters;
};

// tabulated writes the entry of this thread, of N: k is counted from the block's first one on.
INLINE void tabulated(const int N, const int A, const struct product *p, struct table table, int k, int begin,
                      int end) {
	const struct image *g = &p->image;
	k += (int)THREAD;
	int of = begin + k, is = (int)g->is, js = (int)g->js, rows = of / is, outer = rows / js, j = rows % js, i = of % is;
	int down = of < end ? j * (int)g->j_step : OUTSIDE, right = i * (int)g->i_step, at = k & (2 * N - 1);
	tap t = {outer * g->k_outer + down * g->width + right, (long)right << 32 | (unsigned)down};
	table.taps[at] = t;
	if (A == FILTERS) {
		table.filters[at] = of < end ? outer * (int)g->f_outer + j * (int)g->f_j + i * (int)g->f_i : -1;
	}
}

// loader is what a thread knows of the operand that it loads from: of the five forms, only what it needs.
struct loader {
	const float *at; // of ROWS and COLS the next element; of WINDOWS the pixel at j = i = 0; else the operand
	int k, end;      // the next k, and the one that it ends before; of a convolution counted from the block's first
	int place;       // of ROWS: k within its image
	int left;        // of COLS: how many columns there are from this one on; of FILTERS: whether there is this row
	int aligned;     // whether four elements can be loaded at once
	int row[4], col[4], base[4]; // of WINDOWS (the first) and POSITIONS: the pixel at j = i = 0, and where it lies
};

// pixel places window n of count at index s, and returns the number of its image or channel.
INLINE int pixel(const struct image *g, struct loader *l, int s, int n, int count) {
	int rest = n / (int)g->xs, x = n % (int)g->xs, y = rest % (int)g->ys;
	int row = y * (int)g->y_step + (int)g->y_first, col = x * (int)g->x_step + (int)g->x_first;
	l->base[s] = row * (int)g->width + col;
	l->row[s] = n < count ? row : OUTSIDE;
	l->col[s] = col;
	return rest / (int)g->ys;
}

// inside reports whether there is the pixel of a tap.
INLINE int inside(const struct image *g, const struct loader *l, int s, tap t) {
	int row = l->row[s] + (int)t[1], col = l->col[s] + (int)(t[1] >> 32);
	return (unsigned)row < (unsigned)g->height && (unsigned)col < (unsigned)g->width;
}

// opened returns the loader of the operand at x, whose tile begins at row (of a) or column (of b) first of count.
// extent is that of an image, in the direction in which ROWS or COLS run.
INLINE struct loader opened(const int T, const int D, const int N, const int form, const struct product *p,
                            const float *x, long stride, long image, long extent, long first, long count, int k, int end) {
	struct loader l = {0};
	unsigned t = (unsigned)THREAD;
	int plane = (int)extent;
	const struct image *g = &p->image;
	if (form == ROWS) {
		long row = first + t / (D / 4);
		l.k = k + t % (D / 4) * 4;
		l.end = row < count ? end : 0;
		int of = l.k / plane;
		l.place = l.k - of * plane;
		l.at = x + row * stride + of * image + l.place;
		l.aligned = (((long)x | stride * 4 | image * 4 | plane * 4L) & 15) == 0;
	}
	if (form == COLS) {
		long col = first + t % (T / 4) * 4;
		l.k = k + t / (T / 4);
		l.end = end;
		l.left = (int)(count - col);
		long of = (int)col / plane;
		l.at = x + l.k * stride + of * image + (col - of * plane);
		l.aligned = (((long)x | stride * 4 | image * 4) & 15) == 0;
	}
	if (form == WINDOWS) {
		l.k = t / T * 4;
		int outer = pixel(g, &l, 0, (int)first + t % T, (int)count);
		l.at = x + outer * g->n_outer + l.base[0];
	}
	if (form == FILTERS) {
		l.k = t / T * 4;
		l.left = first + t % T < count;
		l.at = x + (first + t % T) * stride;
	}
	if (form == POSITIONS) {
		l.k = t % D;
		l.at = x;
		for (int s = 0; s < 4; s++) {
			int outer = pixel(g, &l, s, (int)first + t / D + s * (N / D), (int)count);
			l.base[s] += outer * (int)g->n_outer;
		}
	}
	return l;
}

// loaded returns the next four elements.
INLINE vector loaded(const int D, const int N, const int form, const struct product *p, struct loader *l,
                     struct table table, long stride, long image) {
	vector v = {0, 0, 0, 0};
	const struct image *g = &p->image;
	if (form == ROWS) {
		int plane = (int)p->k_plane;
		if (l->aligned && l->k + 4 <= l->end) {
			v = *(const vector *)l->at;
		} else {
			const float *at = l->at;
			int place = l->place;
			for (int s = 0; s < 4; s++) {
				if (l->k + s < l->end) {
					v[s] = *at;
				}
				at++;
				if (++place == plane) {
					place = 0;
					at += image - plane;
				}
			}
		}
		l->k += D;
		l->at += D;
		l->place += D;
		if (l->place >= plane) {
			int images = l->place / plane;
			l->place -= images * plane;
			l->at += images * (image - plane);
		}
	}
	if (form == COLS) {
		if (l->k < l->end) {
			if (l->aligned && l->left >= 4) {
				v = *(const vector *)l->at;
			} else {
				for (int s = 0; s < 4; s++) {
					if (s < l->left) {
						v[s] = l->at[s];
					}
				}
			}
		}
		l->k += D;
		l->at += D * stride;
	}
	if (form == WINDOWS || form == FILTERS) {
		const IN_SHARED tap *taps = table.taps + (l->k & (2 * N - 1));
		const IN_SHARED int *filters = table.filters + (l->k & (2 * N - 1));
		for (int s = 0; s < 4; s++) {
			if (form == FILTERS) {
				if (l->left && filters[s] >= 0) {
					v[s] = l->at[filters[s]];
				}
			} else {
				tap t = taps[s];
				if (inside(g, l, 0, t)) {
					v[s] = l->at[t[0]];
				}
			}
		}
		l->k += D;
	}
	if (form == POSITIONS) {
		tap t = table.taps[l->k & (2 * N - 1)];
		for (int s = 0; s < 4; s++) {
			if (inside(g, l, s, t)) {
				v[s] = (l->at + t[0])[l->base[s]];
			}
		}
		l->k += D;
	}
	return v;
}

// put stores a thread's four elements into a slice, which has k as its rows.
INLINE void put(const int T, const int D, const int N, const int form, IN_SHARED float *slice, vector v) {
	const int S = T + 4; // the distance of two rows: with T alone, the threads of a warp would meet in the same bank
	unsigned t = (unsigned)THREAD;
	if (form == COLS) {
		*(IN_SHARED vector *)&slice[t / (T / 4) * S + t % (T / 4) * 4] = v;
	}
	for (int s = 0; s < 4; s++) {
		if (form == ROWS) {
			slice[(t % (D / 4) * 4 + s) * S + t / (D / 4)] = v[s];
		}
		if (form == WINDOWS || form == FILTERS) {
			slice[(t / T * 4 + s) * S + t % T] = v[s];
		}
		if (form == POSITIONS) {
			slice[t % D * S + t / D + s * (N / D)] = v[s];
		}
	}
}

// fragment loads what a thread needs of a row of a slice: R elements, in groups of up to four that lie half a tile
// apart.
INLINE void fragment(const int T, const int R, const IN_SHARED float *row, float *to) {
	if (R == 2) {
		pair v = *(const IN_SHARED pair *)row;
		to[0] = v[0], to[1] = v[1];
	} else {
		for (int i = 0; i < R; i += 4) {
			vector v = *(const IN_SHARED vector *)&row[i / 4 * (T / 2)];
			to[i] = v[0], to[i + 1] = v[1], to[i + 2] = v[2], to[i + 3] = v[3];
		}
	}
}

// place returns where column n of c lies in its row.
INLINE long place(const struct output *o, int n) {
	int image = n / (int)o->plane, rest = n - image * (int)o->plane;
	const struct lattice *l = &o->lattice;
	if (l->width > 0) {
		int y = rest / (int)l->width, x = rest - y * (int)l->width;
		return image * o->image + (l->top + y * l->down) * l->pitch + l->left + x * l->right;
	}
	return image * o->image + rest;
}

// A sum gets the bias of its row, or of its column, and +0 for the other: the bits of c are those of (sum + row) +
// column.
INLINE float row_bias(const struct product *p, long batch, long m) {
	const struct output *o = &p->out;
	return p->bias && o->bias_m ? p->bias[batch * o->bias_batch + m] : 0;
}

INLINE float column_bias(const struct product *p, long batch, long n) {
	const struct output *o = &p->out;
	return p->bias && !o->bias_m ? p->bias[batch * o->bias_batch + n] : 0;
}

// stored puts a thread's elements of c where they belong.
INLINE void stored(const int T, const int R, const struct product *p, long batch, long part, int m, int n,
                   float sum[]) {
	const struct output *o = &p->out;
	const int G = R < 4 ? R : 4; // elements that lie side by side
	float *c = p->c + batch * o->batch + part * o->part;
	int aligned = (((long)c | o->stride * 4 | o->image * 4 | o->plane * 4) & 15) == 0 && o->lattice.width == 0;
#pragma GCC unroll 8
	for (int j = 0; j < R; j += G) {
		int n0 = n + j / G * (T / 2);
		if (n0 >= (int)p->n) {
			continue;
		}
		float *to[4], bias[4] = {0};
#pragma GCC unroll 8
		for (int s = 0; s < G; s++) {
			to[s] = c + place(o, n0 + s);
			if (n0 + s < (int)p->n) {
				bias[s] = column_bias(p, batch, n0 + s);
			}
		}
#pragma GCC unroll 8
		for (int i = 0; i < R; i++) {
			int row = m + i / G * (T / 2) + i % G;
			if (row >= (int)p->m) {
				continue;
			}
			long at = row * o->stride;
			float up = row_bias(p, batch, row), v[4];
#pragma GCC unroll 8
			for (int s = 0; s < G; s++) {
				v[s] = sum[i * R + j + s] + up + bias[s];
			}
			if (G == 4 && aligned && n0 + 4 <= (int)p->n) {
				*(vector *)(to[0] + at) = (vector){v[0], v[1], v[2], v[3]};
				continue;
			}
#pragma GCC unroll 8
			for (int s = 0; s < G; s++) {
				if (n0 + s < (int)p->n) {
					to[s][at] = v[s];
				}
			}
		}
	}
}

// tile is what a block makes.
struct tile {
	int m, n; // its first element
	long part, batch;
};

INLINE struct tile tile_of(const int T, const struct product *p, unsigned block) {
	unsigned down = ((unsigned)p->m + T - 1) / T, across = ((unsigned)p->n + T - 1) / T, rest = block / down / across;
	struct tile t = {block % down * T, block / down % across * T, rest % (unsigned)p->parts, rest / (unsigned)p->parts};
	return t;
}

// spot returns where a thread's elements are in a tile. A warp is 4 by 8 threads.
INLINE void spot(const int T, const int R, unsigned thread, int *m, int *n) {
	const int W = T / R / 8, G = R < 4 ? R : 4;
	unsigned lane = thread % 32, warp = thread / 32;
	*m = (warp / W * 4 + lane / 8) * G;
	*n = (warp % W * 8 + lane % 8) * G;
}

// REREAD reads a special register another time, so that what follows from it takes no registers in between.
#ifdef __NVPTX__
#define REREAD(name, value) ({ unsigned v; __asm__ volatile("mov.u32 %0, %%" name ";" : "=r"(v)); v; })
#else
#define REREAD(name, value) ((unsigned)(value))
#endif

// product makes the tile of this block. It needs 4*D*(T+4) floats of shared memory, for a convolution a table, and
// blocks of T*T/(R*R) threads. The blocks are one for each tile of c, part of k and entry of the batch, the tiles of a
// column of tiles next to each other.
INLINE void product(const int T, const int D, const int R, const int A, const int B, struct product p,
                    IN_SHARED float *memory, struct table table) {
	const int N = T / R * (T / R), CONVOLUTION = B == WINDOWS || B == POSITIONS, SLICE = D * (T + 4);
	struct tile tile = tile_of(T, &p, (unsigned)BLOCK);
	long begin = tile.part * p.part, end = begin + p.part < p.k ? begin + p.part : p.k;
	long a_plane = A == ROWS ? p.k_plane : 1 << 30, b_plane = B == ROWS ? p.k_plane : p.n_plane;
	const float *at_a = p.a + tile.batch * p.a_batch, *at_b = p.b + tile.batch * p.b_batch;
	struct loader a = opened(T, D, N, A, &p, at_a, p.a_stride, p.a_image, a_plane, tile.m, p.m, begin, end);
	struct loader b = opened(T, D, N, B, &p, at_b, p.b_stride, p.b_image, b_plane, tile.n, p.n, begin, end);
	int m, n;
	spot(T, R, (unsigned)THREAD, &m, &n);

	float sum[64];
#pragma GCC unroll 64
	for (int i = 0; i < R * R; i++) {
		sum[i] = 0;
	}
	int steps = (int)(end - begin + D - 1) / D;
	if (CONVOLUTION) {
		tabulated(N, A, &p, table, 0, begin, end);
		SYNC();
	}
	if (steps > 0) {
		put(T, D, N, A, memory, loaded(D, N, A, &p, &a, table, p.a_stride, p.a_image));
		put(T, D, N, B, memory + 2 * SLICE, loaded(D, N, B, &p, &b, table, p.b_stride, p.b_image));
		SYNC();
	}
	for (int step = 0; step < steps; step++) {
		int half = step % 2 * SLICE;
		vector next_a = {0}, next_b = {0};
		if (CONVOLUTION && step % (N / D) == 0) {
			// It is half a ring ahead: what stood there was last read two barriers ago.
			tabulated(N, A, &p, table, step * D + N, begin, end);
		}
		if (step + 1 < steps) {
			next_a = loaded(D, N, A, &p, &a, table, p.a_stride, p.a_image);
			next_b = loaded(D, N, B, &p, &b, table, p.b_stride, p.b_image);
		}
#pragma GCC unroll 16
		for (int k = 0; k < D; k++) {
			float u[8], v[8];
			fragment(T, R, memory + half + k * (T + 4) + m, u);
			fragment(T, R, memory + 2 * SLICE + half + k * (T + 4) + n, v);
#pragma GCC unroll 8
			for (int i = 0; i < R; i++) {
#pragma GCC unroll 8
				for (int j = 0; j < R; j++) {
					sum[i * R + j] = __builtin_fmaf(u[i], v[j], sum[i * R + j]);
				}
			}
		}
		if (step + 1 < steps) {
			put(T, D, N, A, memory + SLICE - half, next_a);
			put(T, D, N, B, memory + 3 * SLICE - half, next_b);
			SYNC();
		}
	}
	tile = tile_of(T, &p, REREAD("ctaid.x", BLOCK));
	spot(T, R, REREAD("tid.x", THREAD), &m, &n);
	stored(T, R, &p, tile.batch, tile.part, tile.m + m, tile.n + n, sum);
}

// PRODUCT makes three kernels, whose tiles are of 16, 64 and 128 rows and columns.
#define PRODUCT(name, A, B) \
	PRODUCT_OF(name##_16, 16, 16, 2, A, B) \
	PRODUCT_OF(name##_64, 64, 16, 4, A, B) \
	PRODUCT_OF(name##_128, 128, 8, 8, A, B)

#endif
