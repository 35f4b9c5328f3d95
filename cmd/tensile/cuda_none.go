//go:build !gpu

package main

import (
	"fmt"

	"tensile/device/cuda"
)

// cudaDriver returns CUDA's driver, which this build is without.
func cudaDriver(device string) (cuda.Driver, error) {
	return nil, fmt.Errorf("--device %s: this build has no CUDA driver: build with make gpu, or use cpu or sim:NAME (%s)",
		device, simNames())
}
