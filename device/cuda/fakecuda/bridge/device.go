//go:build gpu

package bridge

// #include <cuda.h>
// void tensileFakeSetCurrent(int has);
import "C"

import (
	"encoding/hex"
	"strings"
	"unsafe"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
)

// ask hands the properties of a device on.
func ask(device C.CUdevice, f func(cuda.Properties) error) C.CUresult {
	return call(func(d *fakecuda.Driver) error {
		all, err := d.Devices()
		if err != nil {
			return err
		}
		if device < 0 || int(device) >= len(all) {
			return refuse(C.CUDA_ERROR_INVALID_DEVICE, "there is no device %d", device)
		}
		return f(all[device])
	})
}

//export fakeDeviceGetCount
func fakeDeviceGetCount(n *C.int) C.CUresult {
	return call(func(d *fakecuda.Driver) error {
		all, err := d.Devices()
		*n = C.int(len(all))
		return err
	})
}

//export fakeDeviceGet
func fakeDeviceGet(device *C.CUdevice, i C.int) C.CUresult {
	return ask(C.CUdevice(i), func(cuda.Properties) error {
		*device = C.CUdevice(i)
		return nil
	})
}

// put writes a text that ends with a zero byte.
func put(to *C.char, size C.int, text string) error {
	if int(size) <= len(text) {
		return refuse(cuda.InvalidValue, "%q is longer than %d bytes", text, size)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(to)), size), text+"\x00")
	return nil
}

//export fakeDeviceGetName
func fakeDeviceGetName(name *C.char, size C.int, device C.CUdevice) C.CUresult {
	return ask(device, func(p cuda.Properties) error { return put(name, size, p.Name) })
}

//export fakeDeviceGetPCIBusId
func fakeDeviceGetPCIBusId(id *C.char, size C.int, device C.CUdevice) C.CUresult {
	return ask(device, func(p cuda.Properties) error {
		return put(id, size, strings.TrimPrefix(p.Bus, "0000")) // CUDA's domains have four digits
	})
}

//export fakeDeviceGetUuid
func fakeDeviceGetUuid(id *C.CUuuid, device C.CUdevice) C.CUresult {
	return ask(device, func(p cuda.Properties) error {
		bytes, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(p.UUID, "GPU-"), "-", ""))
		copy(unsafe.Slice((*byte)(unsafe.Pointer(id)), 16), bytes)
		return err
	})
}

//export fakeDeviceTotalMem
func fakeDeviceTotalMem(bytes *C.size_t, device C.CUdevice) C.CUresult {
	return ask(device, func(p cuda.Properties) error {
		*bytes = C.size_t(p.Memory)
		return nil
	})
}

//export fakeDeviceGetAttribute
func fakeDeviceGetAttribute(value *C.int, attribute C.CUdevice_attribute, device C.CUdevice) C.CUresult {
	return ask(device, func(p cuda.Properties) error {
		maps, mode := 0, C.CU_COMPUTEMODE_DEFAULT
		if p.Page > 0 {
			maps = 1
		}
		if p.Exclusive {
			mode = C.CU_COMPUTEMODE_EXCLUSIVE_PROCESS
		}
		v, ok := map[C.CUdevice_attribute]int{
			C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: p.Major,
			C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: p.Minor,
			C.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:     p.Processors,
			C.CU_DEVICE_ATTRIBUTE_CLOCK_RATE:               p.Clock,
			C.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:        p.MemoryClock,
			C.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:  p.BusWidth,
			C.CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:       p.CopyEngines,
			C.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:    p.ThreadsPerBlock,
			C.CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:             int(mode),

			C.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: maps,
		}[attribute]
		if !ok {
			return refuse(cuda.InvalidValue, "the fake has no attribute %d", attribute)
		}
		*value = C.int(v)
		return nil
	})
}

//export fakeDevicePrimaryCtxRetain
func fakeDevicePrimaryCtxRetain(context *C.CUcontext, device C.CUdevice) C.CUresult {
	return call(func(d *fakecuda.Driver) error {
		*context = handle[C.CUcontext](uint64(1))
		return d.Open(int(device))
	})
}

//export fakeDevicePrimaryCtxRelease
func fakeDevicePrimaryCtxRelease(C.CUdevice) C.CUresult {
	return call(func(d *fakecuda.Driver) error { return d.Close() })
}

//export fakeCtxSetCurrent
func fakeCtxSetCurrent(context C.CUcontext) C.CUresult {
	if context == nil {
		C.tensileFakeSetCurrent(0)
		return C.CUDA_SUCCESS
	}
	code := call(func(d *fakecuda.Driver) error { return d.Enter() })
	if code == C.CUDA_SUCCESS {
		C.tensileFakeSetCurrent(1)
	}
	return code
}

//export fakeCtxSynchronize
func fakeCtxSynchronize() C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.Synchronize() })
}
