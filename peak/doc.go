// Package peak computes the memory footprint of a plan over its slots, its peak and who holds it.
//
// It follows GPU Memory Peak Analysis (TENSILE, Algorithm 1) in what it reports, but on slots instead of times: bytes
// belong to a storage for whole slots, so the peak cannot be under-counted when a prediction is wrong. Scratch counts.
// The paper's five causes of a change (IV-B) are the begin and the end of residencies: what is there when an iteration
// begins (Entry), what an op makes, what a copy brings in, what leaves after a copy out, and what is released.
//
// [Of] looks at a whole plan, in linear time. A [Curve] follows one change after another, each in logarithmic time;
// what Of says is what it must agree with.
package peak
