package kernel

import (
	"fmt"
	"math"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// softmaxXent: logits labels -> loss probabilities. The loss is the mean, over the rows whose label is not negative, of
// log Σexp(logit) - logit[label], each row's maximum being taken off first so that nothing overflows. Without such a
// row it is zero.
func softmaxXent[T gemm.Float](c *Call[T]) {
	logits, labels, loss, probabilities := c.In[0], c.In[1], c.Out[0], c.Out[1]
	n := len(labels)
	losses := make([]float64, n)
	c.eachOf(n, 4*len(logits)/n, func(r int) {
		row := item(logits, r, n)
		var out []T
		if probabilities != nil {
			out = item(probabilities, r, n)
		}
		top, sum := softmax(out, row, 1)
		if label := labels[r]; !(label < 0) {
			losses[r] = math.Log(sum) - (float64(row[class(label, len(row))]) - float64(top))
		}
	})
	total := 0.0
	for _, l := range losses {
		total += l
	}
	if loss != nil {
		loss[0] = T(total / float64(max(1, counted(labels))))
	}
}

// counted is the number of labels that are not negative.
func counted[T gemm.Float](labels []T) (n int) {
	for _, label := range labels {
		if !(label < 0) {
			n++
		}
	}
	return n
}

// softmax writes the probabilities of a row times factor to out unless it is nil, and returns the row's maximum and the
// sum of the exponentials relative to it.
func softmax[T gemm.Float](out, row []T, factor float64) (top T, sum float64) {
	top = vector.Largest(row)
	sum = vector.ExpSum(out, row, factor, float64(top))
	vector.Divide(out, sum)
	return top, sum
}

// softmaxXentDX: probabilities labels -> dlogits, (probabilities - onehot)/N, N being the number of labels that count,
// and zero in the rows of others.
func softmaxXentDX[T gemm.Float](c *Call[T]) {
	probabilities, labels, dx := c.In[0], c.In[1], c.Out[0]
	n := len(labels)
	count := T(counted(labels))
	c.eachOf(n, len(dx)/n, func(r int) {
		label, from, to := labels[r], item(probabilities, r, n), item(dx, r, n)
		if label < 0 {
			clear(to)
			return
		}
		hit := class(label, len(from))
		for i, v := range from {
			to[i] = v / count
		}
		to[hit] = (from[hit] - 1) / count
	})
}

// class returns a label as an index of one of count classes.
func class[T gemm.Float](label T, count int) int {
	k := int(label)
	if T(k) != label || k < 0 || k >= count {
		panic(fmt.Sprintf("kernel: label %v is not one of the classes 0 to %d", label, count-1))
	}
	return k
}
