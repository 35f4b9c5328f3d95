package cuda_test

import (
	"fmt"
	"testing"

	"tensile/device"
	"tensile/device/devicetest"
)

// TestDevice runs the conformance suite under some of the orders that streams allow.
func TestDevice(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() || raceEnabled {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device { return paged(t, seed).Paging() })
		})
	}
}
