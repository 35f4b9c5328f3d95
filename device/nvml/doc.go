// Package nvml asks NVIDIA's management library how busy a GPU is, which a predictor takes as the utilisation of
// TENSILE's section IV-A, and lists the GPUs of this machine with their memory, links and processes. It links nothing:
// without a driver, [Open] and [List] return an error.
//
// A GPU is named by its UUID or PCI bus id: NVML's order of GPUs is not CUDA's.
package nvml
