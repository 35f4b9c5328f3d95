package cpu_test

import (
	"fmt"
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/devicetest"
)

func TestDevice(t *testing.T) {
	for _, threads := range []int{1, 3} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device {
				d, err := cpu.New(cpu.Options{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				return d
			})
		})
	}
}
