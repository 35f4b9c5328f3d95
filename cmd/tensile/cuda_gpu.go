//go:build gpu

package main

import (
	"tensile/device/cuda"
	"tensile/device/cuda/driver"
)

// cudaDriver returns CUDA's driver, of which no device is open.
func cudaDriver() (cuda.Driver, error) {
	tellDriver()
	if err := driver.Load(); err != nil {
		return nil, err
	}
	return driver.New(), nil
}
