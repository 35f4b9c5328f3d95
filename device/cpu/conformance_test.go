package cpu_test

import (
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/devicetest"
	"tensile/internal/needs"
)

func TestDevice(t *testing.T) {
	for _, engine := range []string{"gonum", "openblas"} {
		t.Run("engine="+engine, func(t *testing.T) {
			open := func(t *testing.T) device.Device {
				d, err := cpu.New(cpu.Options{NoOpenBLAS: engine == "gonum"})
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			if engine == "openblas" {
				d := open(t)
				defer d.Close()
				needs.OpenBLAS(t, d.Name())
			}
			devicetest.Run(t, open)
		})
	}
}
