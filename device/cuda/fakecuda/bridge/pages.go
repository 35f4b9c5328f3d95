//go:build gpu

package bridge

// #include <cuda.h>
import "C"

import (
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/graph"
)

// mustBeOurs refuses what a kind of memory says but that it is the device's, as the fake's is.
func mustBeOurs(prop *C.CUmemAllocationProp) error {
	ours := C.CUmemAllocationProp{_type: C.CU_MEM_ALLOCATION_TYPE_PINNED,
		location: C.CUmemLocation{_type: C.CU_MEM_LOCATION_TYPE_DEVICE}}
	if *prop != ours {
		return refuse(cuda.InvalidValue, "the fake has no memory of the kind %+v", *prop)
	}
	return nil
}

//export fakeMemGetAllocationGranularity
func fakeMemGetAllocationGranularity(bytes *C.size_t, prop *C.CUmemAllocationProp,
	which C.CUmemAllocationGranularity_flags) C.CUresult {
	return ask(C.CUdevice(prop.location.id), func(p cuda.Properties) error {
		if which != C.CU_MEM_ALLOC_GRANULARITY_MINIMUM {
			return refuse(cuda.InvalidValue, "the fake has no granularity %d", which)
		}
		*bytes = C.size_t(p.Page)
		return mustBeOurs(prop)
	})
}

//export fakeMemAddressReserve
func fakeMemAddressReserve(address *C.CUdeviceptr, size, alignment C.size_t, hint C.CUdeviceptr,
	flags C.ulonglong) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		if alignment != 0 || hint != 0 || flags != 0 {
			return refuse(cuda.InvalidValue, "the fake chooses addresses itself")
		}
		a, err := d.ReserveAddresses(graph.Bytes(size))
		*address = C.CUdeviceptr(a)
		return err
	})
}

//export fakeMemAddressFree
func fakeMemAddressFree(address C.CUdeviceptr, size C.size_t) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		return d.ReleaseAddresses(cuda.Address(address), graph.Bytes(size))
	})
}

//export fakeMemCreate
func fakeMemCreate(memory *C.CUmemGenericAllocationHandle, size C.size_t, prop *C.CUmemAllocationProp,
	flags C.ulonglong) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		if flags != 0 {
			return refuse(cuda.InvalidValue, "the fake knows no flags %d of memory", flags)
		}
		if err := mustBeOurs(prop); err != nil {
			return err
		}
		m, err := d.CreateMemory(graph.Bytes(size))
		*memory = C.CUmemGenericAllocationHandle(m)
		return err
	})
}

//export fakeMemRelease
func fakeMemRelease(memory C.CUmemGenericAllocationHandle) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.ReleaseMemory(cuda.Memory(memory)) })
}

//export fakeMemMap
func fakeMemMap(address C.CUdeviceptr, size, offset C.size_t, memory C.CUmemGenericAllocationHandle,
	flags C.ulonglong) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		if offset != 0 || flags != 0 {
			return refuse(cuda.InvalidValue, "an offset of %d and flags %d: CUDA wants 0", offset, flags)
		}
		return d.Map(cuda.Address(address), graph.Bytes(size), cuda.Memory(memory))
	})
}

//export fakeMemSetAccess
func fakeMemSetAccess(address C.CUdeviceptr, size C.size_t, access *C.CUmemAccessDesc, n C.size_t) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		ours := C.CUmemAccessDesc{location: C.CUmemLocation{_type: C.CU_MEM_LOCATION_TYPE_DEVICE},
			flags: C.CU_MEM_ACCESS_FLAGS_PROT_READWRITE}
		if n != 1 || *access != ours {
			return refuse(cuda.InvalidValue, "access by others than the device, or not to read and write")
		}
		return d.Access(cuda.Address(address), graph.Bytes(size))
	})
}

//export fakeMemUnmap
func fakeMemUnmap(address C.CUdeviceptr, size C.size_t) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		return d.Unmap(cuda.Address(address), graph.Bytes(size))
	})
}
