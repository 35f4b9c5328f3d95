//go:build gpu

package driver

// #include <stdlib.h>
// #include <cuda.h>
// #include <load.h>
import "C"

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"tensile/device/cuda"
)

// library is the driver's, as every installation of it has it.
const library = "libcuda.so.1"

// Load loads the driver's library, once for the process; all calls go there from then on.
func Load() error { return load() }

func open(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		err = f.Close()
	}
	return err
}

var load = sync.OnceValue(func() error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var problem *C.char
	switch code := C.tensileCudaOpen(name, &problem); {
	case code < 0:
		defer C.free(unsafe.Pointer(problem))
		return fmt.Errorf("no NVIDIA driver (%s): install it to use a GPU", C.GoString(problem))
	case code != C.CUDA_SUCCESS:
		err := failed("cuInit", int(code))
		return cuda.Barred(err, "/dev", open)
	}
	return nil
})
