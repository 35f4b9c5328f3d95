package weights

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"tensile/graph"
)

// Initialise fills a persistent storage as its graph says. The content depends on the storage's name, its init and the
// seed alone. It panics for graph.InitFile: that content is not made up.
func Initialise(s graph.Storage, seed uint64, to []float32) {
	name := fnv.New64a()
	_, _ = name.Write([]byte(s.Name)) // a hash takes everything
	random := rand.New(rand.NewPCG(seed, name.Sum64()))
	for i := range to {
		switch s.Init.Kind {
		case graph.InitZero:
			to[i] = 0
		case graph.InitOne:
			to[i] = 1
		case graph.InitNormal:
			to[i] = float32(random.NormFloat64() * s.Init.Scale)
		default:
			panic(fmt.Sprintf("weights: the init of storage %s is %q", s.Name, s.Init.Kind))
		}
	}
}
