//go:build gpu

package bridge

// #include <cuda.h>
// void tensileFakeInstall(void);
// void tensileFakeSetCurrent(int has);
// int tensileFakeCurrent(void);
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
)

// behind is what is behind the C interface.
var behind struct {
	sync.Mutex
	fake  *fakecuda.Driver
	pins  map[unsafe.Pointer]C.size_t
	texts map[C.CUresult]string // what the fake said last of a code
	words map[string]*C.char    // as C has them; a text is never freed
}

// Install has the calls of CUDA's driver go to a fake. It takes the place of any other driver, and of any other fake.
func Install(fake *fakecuda.Driver) {
	behind.Lock()
	defer behind.Unlock()
	behind.fake = fake
	behind.pins = make(map[unsafe.Pointer]C.size_t)
	behind.texts = make(map[C.CUresult]string)
	if behind.words == nil {
		behind.words = make(map[string]*C.char)
	}
	C.tensileFakeInstall()
}

// call makes a call of the fake.
func call(f func(*fakecuda.Driver) error) C.CUresult {
	behind.Lock()
	defer behind.Unlock()
	if behind.fake == nil {
		return C.CUDA_ERROR_NOT_INITIALIZED
	}
	return codeOf(f(behind.fake))
}

// inContext is call on a thread that has a context.
func inContext(f func(*fakecuda.Driver) error) C.CUresult {
	if C.tensileFakeCurrent() == 0 {
		return C.CUDA_ERROR_INVALID_CONTEXT
	}
	return call(f)
}

// codeOf returns the code of an error, and keeps its text for cuGetErrorString.
func codeOf(err error) C.CUresult {
	if err == nil {
		return C.CUDA_SUCCESS
	}
	code := C.CUresult(C.CUDA_ERROR_UNKNOWN)
	text := err.Error()
	if own, ok := errors.AsType[*cuda.Error](err); ok {
		code, text = C.CUresult(own.Code), own.Text
	}
	behind.texts[code] = text
	return code
}

func refuse(code cuda.Code, format string, args ...any) error {
	return &cuda.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// base is added to the fake's handles, which count from 1, since C's are addresses.
const base = 1 << 20

type handles interface {
	C.CUcontext | C.CUmodule | C.CUfunction | C.CUstream | C.CUevent
}

func handle[H handles, N ~uint64](n N) H {
	p := uintptr(n) + base
	return *(*H)(unsafe.Pointer(&p))
}

func number[N ~uint64, H handles](h H) N {
	p := *(*uintptr)(unsafe.Pointer(&h))
	if p == 0 {
		return 0
	}
	return N(p - base)
}

// names are those of the codes that the fake uses.
var names = map[C.CUresult]string{
	C.CUDA_SUCCESS:                              "CUDA_SUCCESS",
	C.CUDA_ERROR_INVALID_VALUE:                  "CUDA_ERROR_INVALID_VALUE",
	C.CUDA_ERROR_OUT_OF_MEMORY:                  "CUDA_ERROR_OUT_OF_MEMORY",
	C.CUDA_ERROR_NOT_INITIALIZED:                "CUDA_ERROR_NOT_INITIALIZED",
	C.CUDA_ERROR_INVALID_DEVICE:                 "CUDA_ERROR_INVALID_DEVICE",
	C.CUDA_ERROR_INVALID_CONTEXT:                "CUDA_ERROR_INVALID_CONTEXT",
	C.CUDA_ERROR_INVALID_PTX:                    "CUDA_ERROR_INVALID_PTX",
	C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION:        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	C.CUDA_ERROR_INVALID_HANDLE:                 "CUDA_ERROR_INVALID_HANDLE",
	C.CUDA_ERROR_NOT_FOUND:                      "CUDA_ERROR_NOT_FOUND",
	C.CUDA_ERROR_NOT_READY:                      "CUDA_ERROR_NOT_READY",
	C.CUDA_ERROR_ILLEGAL_ADDRESS:                "CUDA_ERROR_ILLEGAL_ADDRESS",
	C.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	C.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:     "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	C.CUDA_ERROR_LAUNCH_FAILED:                  "CUDA_ERROR_LAUNCH_FAILED",
	C.CUDA_ERROR_NOT_SUPPORTED:                  "CUDA_ERROR_NOT_SUPPORTED",
	C.CUDA_ERROR_UNKNOWN:                        "CUDA_ERROR_UNKNOWN",
}

// word returns a text as C has it. The mutex is held.
func word(text string) *C.char {
	if behind.words[text] == nil {
		behind.words[text] = C.CString(text)
	}
	return behind.words[text]
}

//export fakeInit
func fakeInit(C.uint) C.CUresult { return C.CUDA_SUCCESS }

//export fakeGetErrorName
func fakeGetErrorName(code C.CUresult, name **C.char) C.CUresult {
	behind.Lock()
	defer behind.Unlock()
	text, ok := names[code]
	if !ok {
		return C.CUDA_ERROR_INVALID_VALUE
	}
	*name = word(text)
	return C.CUDA_SUCCESS
}

//export fakeGetErrorString
func fakeGetErrorString(code C.CUresult, text **C.char) C.CUresult {
	behind.Lock()
	defer behind.Unlock()
	*text = word(cmp.Or(behind.texts[code], "no text"))
	return C.CUDA_SUCCESS
}
