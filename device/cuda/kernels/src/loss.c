#include "block.h"
#include "functions.h"

// A label below 0 does not count. class_of is that of another, or -1 if it is none of the classes.
INLINE long class_of(float label, long classes) {
	if (!(label >= 0 && label < (float)classes))
		return -1;
	long k = (long)label;
	return (float)k == label && k < classes ? k : -1;
}

// softmax_xent: logits labels -> the losses of the rows, 0 of one that does not count, and probabilities, which may be
// 0. A block for each row.
KERNEL softmax_xent(const float *logits, const float *labels, double *losses, float *probabilities, long rows,
	long classes) {
	EACH_ROW(r, rows) {
		const float *from = logits + r * classes;
		float *to = probabilities ? probabilities + r * classes : 0;
		float top = from[0];
		STRIDED(i, classes) top = larger(top, from[i]);
		top = block_max(top);
		double sum = 0;
		STRIDED(i, classes) sum += exp32(from[i] - top);
		sum = block_sum(0, sum);
		float total = (float)sum, label = labels[r];
		if (to)
			STRIDED(i, classes) to[i] = exp32(from[i] - top) / total;
		if (THREAD != 0)
			continue;
		long k = class_of(label, classes);
		losses[r] = label < 0 ? 0 : k < 0 ? __builtin_nan("") : log64(sum) - ((double)from[k] - top);
	}
}

// labels_counted is the number of labels that count, at least 1.
INLINE double labels_counted(const float *labels, long rows) {
	double count = 0;
	STRIDED(i, rows) count += labels[i] < 0 ? 0 : 1;
	count = block_sum(0, count);
	return count > 1 ? count : 1;
}

// xent_mean: losses labels -> loss, their mean. One block.
KERNEL xent_mean(const double *losses, const float *labels, float *loss, long rows) {
	double count = labels_counted(labels, rows), sum = 0;
	STRIDED(i, rows) sum += losses[i];
	sum = block_sum(1, sum);
	if (THREAD == 0)
		*loss = (float)(sum / count);
}

// count_labels: labels -> their count. One block.
KERNEL count_labels(const float *labels, float *count, long rows) {
	double n = labels_counted(labels, rows);
	if (THREAD == 0)
		*count = (float)n;
}

// softmax_xent_dx: probabilities labels count -> dlogits, of n elements.
KERNEL softmax_xent_dx(const float *probabilities, const float *labels, const float *count, float *dlogits, long n,
	long classes) {
	EACH(i, n) {
		float label = labels[i / classes], p = probabilities[i];
		long k = class_of(label, classes);
		p = i % classes == k ? p - 1 : p;
		dlogits[i] = label < 0 ? 0 : k < 0 ? float_of(0x7fffffff) : p / *count;
	}
}

// mean_square_dx: a b -> da.
KERNEL mean_square_dx(const float *a, const float *b, float *da, long n) {
	float factor = (float)(2 / (double)n);
	EACH(i, n) da[i] = factor * (a[i] - b[i]);
}

// xent_chunks: logits targets -> the sum of -target·log σ(x) - (1-target)·log(1-σ(x)) per chunk of the n elements.
KERNEL xent_chunks(const float *logits, const float *targets, double *sums, long n) {
	double sum = 0;
	EACH_OF_CHUNK(at, BLOCK, n, 0, 1, n) {
		float x = logits[at];
		sum += (x > 0 ? x : 0) - (double)x * targets[at] + log1pexp32(x > 0 ? -x : x);
	}
	sum = block_sum(0, sum);
	if (THREAD == 0)
		sums[BLOCK] = sum;
}

// sigmoid_xent_dx: logits targets -> dlogits.
KERNEL sigmoid_xent_dx(const float *logits, const float *targets, float *dlogits, long n) {
	EACH(i, n) dlogits[i] = (sigmoid32(logits[i]) - targets[i]) / (float)n;
}
