//go:build gpu

package driver_test

import (
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/driver"
	"tensile/device/devicetest"
	_ "tensile/internal/long" // the flag -long
)

// TestDevice runs the suite of devices on this machine's first GPU.
func TestDevice(t *testing.T) {
	if err := driver.Load(); err != nil {
		t.Skipf("needs an NVIDIA GPU and its driver: %v", err)
	}
	if _, err := driver.New().Devices(); err != nil {
		t.Fatal(err)
	}
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := cuda.New(driver.New(), cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Paging()
	})
}
