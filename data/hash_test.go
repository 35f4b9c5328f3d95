package data

import "testing"

// The first outputs of the SplitMix64 generator with seed 0, as its authors publish them.
func TestMixIsSplitMix64(t *testing.T) {
	state := uint64(0)
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec} {
		if got := mix(state); got != want {
			t.Errorf("output %d is %#x, want %#x", i, got, want)
		}
		state += 0x9e3779b97f4a7c15
	}
}

func TestDerivedKeysDiffer(t *testing.T) {
	seen := map[uint64][2]int{}
	for seed := range 100 {
		for part := range 100 {
			k := derive(uint64(seed), part)
			if other, ok := seen[k]; ok {
				t.Fatalf("derive gives %#x for %v and for seed %d part %d", k, other, seed, part)
			}
			seen[k] = [2]int{seed, part}
		}
	}
}
