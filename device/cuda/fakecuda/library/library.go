//go:build gpu

// Command library is the fake as a driver's library: go build -tags gpu -buildmode=c-shared makes a libcuda.so.1 for
// programs that are not Go's, such as those of scripts/gpu.
package main

// #include <cuda.h>
import "C"

import (
	"tensile/device/cuda/fakecuda"
	"tensile/device/cuda/fakecuda/bridge"
)

func init() { bridge.Install(fakecuda.New(fakecuda.Options{Seed: 1})) }

// tensileFakeReady returns when the fake is there: Go starts in the background of a library.
//
//export tensileFakeReady
func tensileFakeReady() {}

func main() {}
