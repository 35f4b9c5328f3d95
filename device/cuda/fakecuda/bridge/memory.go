//go:build gpu

package bridge

// #include <cuda.h>
import "C"

import (
	"unsafe"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/graph"
)

// host returns memory of the host.
func host(p unsafe.Pointer, size C.size_t) []byte { return unsafe.Slice((*byte)(p), size) }

//export fakeMemGetInfo
func fakeMemGetInfo(free, total *C.size_t) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		f, t, err := d.Free()
		*free, *total = C.size_t(f), C.size_t(t)
		return err
	})
}

//export fakeMemAlloc
func fakeMemAlloc(address *C.CUdeviceptr, size C.size_t) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		a, err := d.Alloc(graph.Bytes(size))
		*address = C.CUdeviceptr(a)
		return err
	})
}

//export fakeMemFree
func fakeMemFree(address C.CUdeviceptr) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.Release(cuda.Address(address)) })
}

//export fakeMemHostRegister
func fakeMemHostRegister(p unsafe.Pointer, size C.size_t, flags C.uint) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		if flags != 0 {
			return refuse(cuda.InvalidValue, "the fake knows no flags %d of pinned memory", flags)
		}
		if err := d.Pin(host(p, size)); err != nil {
			return err
		}
		behind.pins[p] = size
		return nil
	})
}

//export fakeMemHostUnregister
func fakeMemHostUnregister(p unsafe.Pointer) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		size := behind.pins[p]
		delete(behind.pins, p)
		return d.Unpin(host(p, size))
	})
}

//export fakeMemcpyHtoDAsync
func fakeMemcpyHtoDAsync(to C.CUdeviceptr, from unsafe.Pointer, size C.size_t, s C.CUstream) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		return d.CopyIn(number[cuda.Stream](s), cuda.Address(to), host(from, size))
	})
}

//export fakeMemcpyDtoHAsync
func fakeMemcpyDtoHAsync(to unsafe.Pointer, from C.CUdeviceptr, size C.size_t, s C.CUstream) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		return d.CopyOut(number[cuda.Stream](s), host(to, size), cuda.Address(from))
	})
}

//export fakeMemsetD32Async
func fakeMemsetD32Async(to C.CUdeviceptr, word C.uint, n C.size_t, s C.CUstream) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		return d.Fill(number[cuda.Stream](s), cuda.Address(to), uint32(word), int(n))
	})
}
