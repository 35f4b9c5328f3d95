#include "functions.h"

// embedding: table ids -> y, n elements in rows of width. A row whose id is none of the table's is NaN.
KERNEL embedding(const float *table, const long *ids, float *y, long n, long width, long rows) {
	EACH(i, n) {
		long id = ids[i / width];
		y[i] = id >= 0 && id < rows ? table[id * width + i % width] : float_of(0x7fffffff);
	}
}

KERNEL zero(float *x, long n) {
	EACH(i, n) x[i] = 0;
}

// chain: ids -> links, by which embedding_dw goes through equal ids. Of each position: twice the next position with the
// same id, 0 if there is none, and 1 more if it is the first.
KERNEL chain(const long *ids, long *links, long n) {
	EACH(i, n) {
		long id = ids[i], first = 1, next = 0;
		for (long j = i - 1; j >= 0 && first; j--)
			first = ids[j] != id;
		for (long j = i + 1; j < n && next == 0; j++)
			next = ids[j] == id ? j : 0;
		links[i] = 2 * next + first;
	}
}

// embedding_dw: ids dy -> dtable, its rows from begin on, which are zero. n is the number of dy's elements, in rows of
// width. The first position of an id adds up the rows of all, in their order; an id of other rows is left out.
KERNEL embedding_dw(const long *ids, const long *links, const float *dy, float *dtable, long n, long width, long begin,
	long rows) {
	EACH(i, n) {
		long at = i / width, column = i % width, row = ids[at] - begin;
		if (row < 0 || row >= rows || (links[at] & 1) == 0)
			continue;
		float sum = 0;
		do {
			sum += dy[at * width + column];
			at = links[at] >> 1;
		} while (at > 0);
		dtable[row * width + column] = sum;
	}
}

// bias: x b -> y, n elements in rows of width.
KERNEL bias(const float *x, const float *b, float *y, long n, long width) {
	EACH(i, n) y[i] = x[i] + b[i % width];
}
