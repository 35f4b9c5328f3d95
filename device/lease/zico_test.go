package lease_test

import (
	"testing"

	"tensile/device/lease"
	"tensile/scheduler/rivals/zico"
)

// Random worlds end under Zico's scheduler.
func TestZicoWorlds(t *testing.T) { lease.LiveWorlds(t, func() lease.Method { return zico.New() }) }

// Whatever it is told the scheduler says something.
func TestZicoHostile(t *testing.T) {
	for seed := range uint64(400) {
		lease.HostileTo(t, seed, func() lease.Method { return zico.New() })
	}
}

func FuzzZicoWorlds(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { lease.LiveWorld(t, seed, func() lease.Method { return zico.New() }) })
}
