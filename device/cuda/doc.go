// Package cuda is the device on NVIDIA's GPUs.
//
// It stands on [Driver], which device/cuda/driver implements by gorgonia.org/cu, and internal/fakecuda without a GPU:
// this package is plain Go. The kernels are those of device/cuda/kernels.
package cuda
