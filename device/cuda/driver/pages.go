//go:build gpu

package driver

// #include <cuda.h>
//
// static CUmemAllocationProp tensileMemory(CUdevice device) {
// 	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
// 		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
// }
//
// static CUresult tensileGranularity(CUdevice device, size_t *bytes) {
// 	CUmemAllocationProp prop = tensileMemory(device);
// 	return cuMemGetAllocationGranularity(bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
// }
//
// static CUresult tensileCreate(CUdevice device, size_t bytes, CUmemGenericAllocationHandle *memory) {
// 	CUmemAllocationProp prop = tensileMemory(device);
// 	return cuMemCreate(memory, bytes, &prop, 0);
// }
//
// static CUresult tensileAccess(CUdevice device, CUdeviceptr address, size_t bytes) {
// 	CUmemAccessDesc access = {.location = tensileMemory(device).location,
// 		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
// 	return cuMemSetAccess(address, bytes, &access, 1);
// }
import "C"

import (
	"gorgonia.org/cu"

	"tensile/device/cuda"
	"tensile/graph"
)

// paging is addresses that were reserved, memory that was created, and where it is mapped.
type paging struct {
	reserved map[cuda.Address]graph.Bytes
	created  map[cuda.Memory]struct{}
	mapped   map[cuda.Address]graph.Bytes
}

func newPaging() paging {
	return paging{reserved: make(map[cuda.Address]graph.Bytes), created: make(map[cuda.Memory]struct{}),
		mapped: make(map[cuda.Address]graph.Bytes)}
}

// page returns the unit in which a device maps memory; 0: it does not, or the driver is one before CUDA 10.2, which has
// neither the attribute nor the calls.
func page(device cu.Device) (graph.Bytes, error) {
	var can C.int
	switch code := C.cuDeviceGetAttribute(&can, C.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		C.CUdevice(device)); {
	case code == C.CUDA_ERROR_INVALID_VALUE:
		return 0, nil
	case code != C.CUDA_SUCCESS:
		return 0, failed("cuDeviceGetAttribute", int(code))
	case can == 0:
		return 0, nil
	}
	var bytes C.size_t
	code := C.tensileGranularity(C.CUdevice(device), &bytes)
	if code == C.CUDA_ERROR_NOT_FOUND {
		return 0, nil
	}
	return graph.Bytes(bytes), failed("cuMemGetAllocationGranularity", int(code))
}

// ReserveAddresses reserves addresses without memory.
func (d *Driver) ReserveAddresses(size graph.Bytes) (cuda.Address, error) {
	var a C.CUdeviceptr
	if code := C.cuMemAddressReserve(&a, C.size_t(size), 0, 0, 0); code != C.CUDA_SUCCESS {
		return 0, failed("cuMemAddressReserve", int(code))
	}
	d.reserved[cuda.Address(a)] = size
	return cuda.Address(a), nil
}

// ReleaseAddresses gives back what ReserveAddresses returned.
func (d *Driver) ReleaseAddresses(a cuda.Address, size graph.Bytes) error {
	delete(d.reserved, a)
	return failed("cuMemAddressFree", int(C.cuMemAddressFree(C.CUdeviceptr(a), C.size_t(size))))
}

// CreateMemory takes memory of the device.
func (d *Driver) CreateMemory(size graph.Bytes) (cuda.Memory, error) {
	var m C.CUmemGenericAllocationHandle
	if code := C.tensileCreate(C.CUdevice(d.device), C.size_t(size), &m); code != C.CUDA_SUCCESS {
		return 0, failed("cuMemCreate", int(code))
	}
	d.created[cuda.Memory(m)] = struct{}{}
	return cuda.Memory(m), nil
}

// ReleaseMemory gives memory back as soon as it is mapped nowhere.
func (d *Driver) ReleaseMemory(m cuda.Memory) error {
	delete(d.created, m)
	return failed("cuMemRelease", int(C.cuMemRelease(C.CUmemGenericAllocationHandle(m))))
}

// Map gives addresses memory.
func (d *Driver) Map(a cuda.Address, size graph.Bytes, m cuda.Memory) error {
	code := C.cuMemMap(C.CUdeviceptr(a), C.size_t(size), 0, C.CUmemGenericAllocationHandle(m), 0)
	if code == C.CUDA_SUCCESS {
		d.mapped[a] = size
	}
	return failed("cuMemMap", int(code))
}

// Access lets the device read and write what was mapped.
func (d *Driver) Access(a cuda.Address, size graph.Bytes) error {
	code := C.tensileAccess(C.CUdevice(d.device), C.CUdeviceptr(a), C.size_t(size))
	return failed("cuMemSetAccess", int(code))
}

// Unmap takes back what one Map has mapped.
func (d *Driver) Unmap(a cuda.Address, size graph.Bytes) error {
	delete(d.mapped, a)
	return failed("cuMemUnmap", int(C.cuMemUnmap(C.CUdeviceptr(a), C.size_t(size))))
}
