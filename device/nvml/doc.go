// Package nvml asks NVIDIA's management library how busy a GPU is, which a predictor takes as the utilisation of
// TENSILE's section IV-A, and which chip it is. It links nothing: without a driver, [Open] returns an error.
package nvml
