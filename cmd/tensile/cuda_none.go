//go:build !gpu

package main

import (
	"errors"

	"tensile/device/cuda"
)

// cudaDriver returns CUDA's driver, which this build is without.
func cudaDriver() (cuda.Driver, error) {
	return nil, errors.New("this build has no CUDA driver: build with make gpu")
}
