//go:build gpu

package driver

// #include <cuda.h>
//
// // cu's own launch allocates twice and takes a pointer per parameter; ours are words already.
// static CUresult tensileLaunch(uintptr_t function, uintptr_t stream, uint32_t *grid, uint32_t *block, uint64_t *args,
// 		int n) {
// 	void *parameters[n + 1];
// 	for (int i = 0; i < n; i++)
// 		parameters[i] = &args[i];
// 	return cuLaunchKernel((CUfunction)function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0,
// 		(CUstream)stream, parameters, NULL);
// }
import "C"

import (
	"bytes"
	"runtime"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"tensile/device/cuda"
)

// maxLog is the limit of what is kept of the words of the driver's compiler, in bytes.
const maxLog = 4096

// Load compiles PTX. The error of a text that the driver refuses has its compiler's words.
func (d *Driver) Load(ptx string) (cuda.Module, error) {
	text := make([]byte, maxLog)
	m, err := cu.LoadDataEx(ptx, &cu.JITErrorLogBuffer{Buffer: text})
	runtime.KeepAlive(text)
	if err != nil {
		words, _, _ := bytes.Cut(text, []byte{0})
		return 0, failed("cuModuleLoadDataEx", codeOf(err), strings.Join(strings.Fields(string(words)), " "))
	}
	module := cuda.Module(number(m))
	d.modules[module] = struct{}{}
	return module, nil
}

// Unload unloads what Load returned.
func (d *Driver) Unload(m cuda.Module) error {
	delete(d.modules, m)
	return wrap("cuModuleUnload", handle[cu.Module](m).Unload())
}

// Function finds a kernel.
func (d *Driver) Function(m cuda.Module, name string) (cuda.Function, error) {
	f, err := handle[cu.Module](m).Function(name)
	if err != nil {
		return 0, failed("cuModuleGetFunction", codeOf(err), name)
	}
	return cuda.Function(number(f)), nil
}

// Launch puts a launch of a kernel on a stream.
func (d *Driver) Launch(s cuda.Stream, l cuda.Launch) error {
	code := C.tensileLaunch(C.uintptr_t(l.Function), C.uintptr_t(s), (*C.uint32_t)(&l.Grid[0]),
		(*C.uint32_t)(&l.Block[0]), (*C.uint64_t)(unsafe.SliceData(l.Args)), C.int(len(l.Args)))
	return failed("cuLaunchKernel", int(code), l.Op)
}
