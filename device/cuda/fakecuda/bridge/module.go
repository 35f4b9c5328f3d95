//go:build gpu

package bridge

// #include <cuda.h>
import "C"

import (
	"errors"
	"unsafe"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
)

//export fakeModuleLoadDataEx
func fakeModuleLoadDataEx(m *C.CUmodule, image unsafe.Pointer, n C.uint, options *C.CUjit_option,
	values *unsafe.Pointer) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		made, err := d.Load(C.GoString((*C.char)(image)))
		if err != nil {
			tell(err, unsafe.Slice(options, n), unsafe.Slice((*uintptr)(unsafe.Pointer(values)), n))
			return err
		}
		*m = handle[C.CUmodule](made)
		return nil
	})
}

// tell writes an error into the buffer for those of the compiler, if there is one.
func tell(err error, options []C.CUjit_option, values []uintptr) {
	var to *C.char
	size := 0
	for i, o := range options {
		switch o {
		case C.CU_JIT_ERROR_LOG_BUFFER:
			to = *(**C.char)(unsafe.Pointer(&values[i]))
		case C.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			size = int(values[i])
		}
	}
	if own, ok := errors.AsType[*cuda.Error](err); ok && to != nil && size > 0 {
		put(to, C.int(size), own.Text[:min(len(own.Text), size-1)])
	}
}

//export fakeModuleUnload
func fakeModuleUnload(m C.CUmodule) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error { return d.Unload(number[cuda.Module](m)) })
}

//export fakeModuleGetFunction
func fakeModuleGetFunction(f *C.CUfunction, m C.CUmodule, name *C.char) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		made, err := d.Function(number[cuda.Module](m), C.GoString(name))
		if err != nil {
			return err
		}
		*f = handle[C.CUfunction](made)
		return nil
	})
}

//export fakeLaunchKernel
func fakeLaunchKernel(f C.CUfunction, gridX, gridY, gridZ, blockX, blockY, blockZ, shared C.uint, s C.CUstream,
	parameters, extra *unsafe.Pointer) C.CUresult {
	return inContext(func(d *fakecuda.Driver) error {
		if shared != 0 || extra != nil {
			return refuse(cuda.InvalidValue, "the fake knows no dynamic shared memory and no extra parameters")
		}
		l := cuda.Launch{Function: number[cuda.Function](f), Op: "a launch through C",
			Grid:  [3]uint32{uint32(gridX), uint32(gridY), uint32(gridZ)},
			Block: [3]uint32{uint32(blockX), uint32(blockY), uint32(blockZ)}}
		for _, p := range unsafe.Slice(parameters, d.Params(l.Function)) {
			l.Args = append(l.Args, *(*uint64)(p))
		}
		return d.Launch(number[cuda.Stream](s), l)
	})
}
