package lease_test

import (
	"testing"

	"tensile/device/lease"
	"tensile/scheduler/rivals/waterwave"
)

// Random worlds end under Waterwave's pairs, whatever the node groups are.
func TestWaterwaveWorlds(t *testing.T) {
	for _, split := range []int{0, 1, 4, 100} {
		lease.LiveWorlds(t, func() lease.Method { return waterwave.New(waterwave.Options{Split: split}) })
	}
}

// Whatever it is told the method says something.
func TestWaterwaveHostile(t *testing.T) {
	for seed := range uint64(400) {
		lease.HostileTo(t, seed, func() lease.Method { return waterwave.New(waterwave.Options{Split: int(seed % 5)}) })
	}
}

func FuzzWaterwaveWorlds(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64, split uint8) {
		lease.LiveWorld(t, seed, func() lease.Method { return waterwave.New(waterwave.Options{Split: int(split)}) })
	})
}
