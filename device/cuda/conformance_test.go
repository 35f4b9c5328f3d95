package cuda_test

import (
	"fmt"
	"testing"

	"tensile/device"
	"tensile/device/devicetest"
	"tensile/internal/long"
)

// TestDevice runs the conformance suite under some of the orders that streams allow.
func TestDevice(t *testing.T) {
	seeds := long.Rounds(1, 5)
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device { return paged(t, seed).Paging() })
		})
	}
}
