//go:build gpu

package driver

// #include <cuda.h>
//
// // An address as a number: Go's checks of pointers do not know host memory that is not Go's.
// static CUresult tensileUnregister(uintptr_t p) { return cuMemHostUnregister((void *)p); }
import "C"

import (
	"syscall"
	"unsafe"

	"gorgonia.org/cu"

	"tensile/device/cuda"
	"tensile/graph"
)

// Free returns what is free of the device's memory, and all of it.
func (d *Driver) Free() (free, total graph.Bytes, err error) {
	f, t, err := cu.MemInfo()
	return graph.Bytes(f), graph.Bytes(t), wrap("cuMemGetInfo", err)
}

// Alloc allocates memory of the device.
func (d *Driver) Alloc(size graph.Bytes) (cuda.Address, error) {
	p, err := cu.MemAlloc(int64(size))
	if err != nil {
		return 0, wrap("cuMemAlloc", err)
	}
	a := cuda.Address(p)
	d.memory[a] = struct{}{}
	return a, nil
}

// Release frees what Alloc returned.
func (d *Driver) Release(a cuda.Address) error {
	delete(d.memory, a)
	return wrap("cuMemFree", cu.MemFree(cu.DevicePtr(a)))
}

// Pin keeps host memory where it is, so that copies by the device's engines reach it. Before, it has the system make
// the memory, of huge pages where it can: the driver takes page after page, and asks for each that is not there yet.
func (d *Driver) Pin(memory []byte) error {
	const populateWrite = 23                           // MADV_POPULATE_WRITE, of Linux 5.14
	_ = syscall.Madvise(memory, syscall.MADV_HUGEPAGE) // a system without them
	_ = syscall.Madvise(memory, populateWrite)         // without that, or without memory: cuMemHostRegister says so
	p := unsafe.Pointer(unsafe.SliceData(memory))
	if code := C.cuMemHostRegister(p, C.size_t(len(memory)), 0); code != C.CUDA_SUCCESS {
		return failed("cuMemHostRegister", int(code))
	}
	d.pinned[uintptr(p)] = struct{}{}
	return nil
}

// Unpin undoes Pin.
func (d *Driver) Unpin(memory []byte) error {
	return d.unpin(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}

func (d *Driver) unpin(p uintptr) error {
	delete(d.pinned, p)
	return failed("cuMemHostUnregister", int(C.tensileUnregister(C.uintptr_t(p))))
}

// CopyIn copies from pinned host memory to the device.
func (d *Driver) CopyIn(s cuda.Stream, to cuda.Address, from []byte) error {
	return wrap("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(cu.DevicePtr(to), unsafe.Pointer(unsafe.SliceData(from)),
		int64(len(from)), handle[cu.Stream](s)))
}

// CopyOut copies from the device to pinned host memory.
func (d *Driver) CopyOut(s cuda.Stream, to []byte, from cuda.Address) error {
	return wrap("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(to)), cu.DevicePtr(from),
		int64(len(to)), handle[cu.Stream](s)))
}

// Fill writes a word of 32 bits over and over.
func (d *Driver) Fill(s cuda.Stream, to cuda.Address, word uint32, words int) error {
	return wrap("cuMemsetD32Async", cu.MemsetD32Async(cu.DevicePtr(to), uint(word), int64(words),
		handle[cu.Stream](s)))
}
