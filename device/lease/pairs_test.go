package lease_test

import (
	"testing"

	"tensile/device/lease"
	"tensile/device/lease/pairs"
)

// Random worlds end under Waterwave's pairs, whatever the node groups are.
func TestPairsWorlds(t *testing.T) {
	for _, split := range []int{0, 1, 4, 100} {
		lease.LiveWorlds(t, func() lease.Method { return pairs.New(pairs.Options{Split: split}) })
	}
}

// Whatever it is told the method says something.
func TestPairsHostile(t *testing.T) {
	for seed := range uint64(400) {
		lease.HostileTo(t, seed, func() lease.Method { return pairs.New(pairs.Options{Split: int(seed % 5)}) })
	}
}

func FuzzPairsWorlds(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64, split uint8) {
		lease.LiveWorld(t, seed, func() lease.Method { return pairs.New(pairs.Options{Split: int(split)}) })
	})
}
