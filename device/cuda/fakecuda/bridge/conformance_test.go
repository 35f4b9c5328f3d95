//go:build gpu

package bridge

import (
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/driver"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
)

// TestDevice runs the conformance suite on the device through cu.
func TestDevice(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device {
		Install(fakecuda.New(fakecuda.Options{Seed: 1, Page: 1024}))
		d, err := cuda.New(driver.New(), cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Paging()
	})
}
