// Package cudaabi holds what a program needs to call CUDA's driver without NVIDIA's toolkit: a header and a library
// libcuda.a, which gcc makes (build.sh). The package itself has tests only.
//
// The library holds a jump for each call of the header. It loads libcuda.so.1, the driver's own library, when
// tensileCudaOpen is called and not before, so that one binary runs with and without a driver and needs libc alone.
package cudaabi
