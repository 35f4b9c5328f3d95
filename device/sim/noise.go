package sim

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"tensile/graph"
)

// noisy varies a kernel's duration by up to the share Options.Noise. What comes out depends on the seed, the job's
// name, the iteration and the command's place in its section alone, and not on what else the device does, unless
// Options.Pace does.
func (d *Device) noisy(job string, iteration, index int, alone time.Duration) time.Duration {
	if d.options.Pace != nil {
		alone = time.Duration(math.Round(float64(alone) * d.options.Pace(d.now)))
	}
	if d.options.Noise == 0 {
		return alone
	}
	h := fnv.New64a()
	io.WriteString(h, job)
	var key [16]byte
	binary.LittleEndian.PutUint64(key[:8], uint64(iteration))
	binary.LittleEndian.PutUint64(key[8:], uint64(index))
	h.Write(key[:])
	unit := 2*rand.New(rand.NewPCG(d.options.Seed, h.Sum64())).Float64() - 1
	vary := float64(d.options.Noise * unit) // the conversion keeps machines from fusing it with the sum
	return time.Duration(math.Round(float64(alone) * (1 + vary)))
}

// mispredicted returns what an op takes that should take a latency. The factors depend on the seed, the kind and the
// op's place in its graph alone: jobs of one graph have the same.
func (d *Device) mispredicted(g *graph.Graph, op graph.OpID, latency time.Duration) time.Duration {
	if d.options.Mispredicted == 0 {
		return latency
	}
	normal := func(of uint64) float64 { return rand.New(rand.NewPCG(d.options.Seed, of)).NormFloat64() }
	kind := fnv.New64a()
	io.WriteString(kind, string(g.Ops[op].Kind))
	exponent := d.options.Mispredicted * (normal(kind.Sum64()) + normal(uint64(op)))
	return time.Duration(math.Round(float64(latency) * math.Exp(exponent)))
}
