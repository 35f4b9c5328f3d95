package graphtest

import (
	"hash/fnv"
	"math/rand/v2"

	"tensile/device"
	"tensile/graph"
)

// Init fills a persistent storage before the first iteration, in the way that its Init names.
func Init(seed uint64) func(s graph.Storage, to []float32) {
	return func(s graph.Storage, to []float32) {
		rng := generator(seed, s.Name, 0)
		for i := range to {
			switch s.Init.Kind {
			case graph.InitZero:
				to[i] = 0
			case graph.InitOne:
				to[i] = 1
			default:
				to[i] = float32(rng.NormFloat64() * s.Init.Scale)
			}
		}
	}
}

// Input fills an input of g for an iteration: labels with classes 0 and 1, everything else with values in [-1, 1).
func Input(g *graph.Graph, seed uint64) func(iteration int, s graph.StorageID, to device.Memory) {
	return func(iteration int, s graph.StorageID, memory device.Memory) {
		name := g.Storages[s].Name
		rng := generator(seed, name, iteration+1)
		for i, to := 0, memory.Float32(); i < len(to); i++ {
			if name == "labels" {
				to[i] = float32(rng.IntN(2))
			} else {
				to[i] = 2*rng.Float32() - 1
			}
		}
	}
}

func generator(seed uint64, name string, iteration int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed+uint64(iteration), h.Sum64()))
}
