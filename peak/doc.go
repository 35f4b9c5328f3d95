// Package peak computes the memory footprint of a plan over its slots, its peak and who holds it.
//
// It follows GPU Memory Peak Analysis (TENSILE, Algorithm 1) in what it reports, but on slots instead of times: bytes
// belong to a storage for whole slots, so the peak cannot be under-counted when a prediction is wrong. Scratch counts.
package peak
