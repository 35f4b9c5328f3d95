package cpu_test

import (
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/devicetest"
)

func TestDevice(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := cpu.New(cpu.Options{NoOpenBLAS: true})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
