#include "functions.h"

// gates are the four gates of one element after their nonlinearities, what it remembers from the step before, and its
// new state.
typedef struct {
	float input, forget, cell, output, before, state;
} gates;

// gates_of computes element i of rows of hidden; r and c are 0 in the first step.
INLINE gates gates_of(const float *x, const float *r, const float *c, long i, long hidden) {
	long at = i / hidden * 4 * hidden + i % hidden;
	float sum[4];
	for (int gate = 0; gate < 4; gate++)
		sum[gate] = r ? x[at + gate * hidden] + r[at + gate * hidden] : x[at + gate * hidden];
	gates g = {sigmoid32(sum[0]), sigmoid32(sum[1]), tanh32(sum[2]), sigmoid32(sum[3]), c ? c[i] : 0, 0};
	g.state = g.forget * g.before + g.input * g.cell;
	return g;
}

// lstm: x r c -> h state, of n elements each of which may be 0.
KERNEL lstm(const float *x, const float *r, const float *c, float *h, float *state, long n, long hidden) {
	EACH(i, n) {
		gates g = gates_of(x, r, c, i, hidden);
		if (h)
			h[i] = g.output * tanh32(g.state);
		if (state)
			state[i] = g.state;
	}
}

// lstm_grad: x r c dh dstate -> dx dc. dstate may be 0, as r and c, and each output.
KERNEL lstm_grad(const float *x, const float *r, const float *c, const float *dh, const float *dstate, float *dx,
	float *dc, long n, long hidden) {
	EACH(i, n) {
		gates g = gates_of(x, r, c, i, hidden);
		float y = tanh32(g.state), d = dh[i] * g.output * (1 - y * y); // of the new state
		if (dstate)
			d += dstate[i];
		if (dc)
			dc[i] = d * g.forget;
		if (!dx)
			continue;
		float *to = dx + i / hidden * 4 * hidden + i % hidden;
		to[0] = d * g.cell * g.input * (1 - g.input);
		to[hidden] = d * g.before * g.forget * (1 - g.forget);
		to[2 * hidden] = d * g.input * (1 - g.cell * g.cell);
		to[3 * hidden] = dh[i] * y * g.output * (1 - g.output);
	}
}
