//go:build gpu

package driver

// #include <cuda.h>
import "C"

import (
	"reflect"
	"strings"

	"tensile/device/cuda"
)

// wrap returns what cu says of a call as an error of ours.
func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	return failed(call, codeOf(err))
}

// codeOf returns the driver's number of an error of cu, which has no name for its type.
func codeOf(err error) int {
	if v := reflect.ValueOf(err); v.CanInt() {
		return int(v.Int())
	}
	return int(cuda.Unknown)
}

// failed returns the error of a call, with the driver's words for the code and whatever else is known.
func failed(call string, code int, more ...string) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	text := []string{"an error that it has no name for"}
	var name, words *C.char
	if C.cuGetErrorName(C.CUresult(code), &name) == C.CUDA_SUCCESS && name != nil {
		text[0] = C.GoString(name)
	}
	if C.cuGetErrorString(C.CUresult(code), &words) == C.CUDA_SUCCESS && words != nil {
		text = append(text, C.GoString(words))
	}
	for _, m := range more {
		if m != "" {
			text = append(text, m)
		}
	}
	return &cuda.Error{Call: call, Code: cuda.Code(code), Text: strings.Join(text, ": ")}
}
