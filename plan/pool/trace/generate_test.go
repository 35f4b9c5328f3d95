package trace

import (
	"fmt"
	"math/rand/v2"
)

// training makes a trace like one of a training job. Sizes are few, layers are equal, ids are used again at random.
type training struct {
	rng     *rand.Rand
	t       Trace
	free    []string
	ids     int
	noReads bool
}

func (g *training) malloc(size int64) string {
	var id string
	if n := len(g.free); n > 0 && g.rng.IntN(4) > 0 {
		k := g.rng.IntN(n)
		id = g.free[k]
		g.free[k] = g.free[n-1]
		g.free = g.free[:n-1]
	} else {
		id = fmt.Sprintf("b%d", g.ids)
		g.ids++
	}
	g.t = append(g.t, Event{Malloc, id, size})
	return id
}

func (g *training) drop(id string) {
	g.t = append(g.t, Event{Kind: Free, Block: id})
	g.free = append(g.free, id)
}

func (g *training) touch(kind Kind, ids ...string) {
	for _, id := range ids {
		if !g.noReads {
			g.t = append(g.t, Event{Kind: kind, Block: id})
		}
	}
}

// start mallocs parameters and does something that does not come again.
func (g *training) start(layers int) []string {
	weights := make([]string, layers)
	for i := range weights {
		weights[i] = g.malloc(64)
		g.touch(Write, weights[i])
	}
	x := g.malloc(1000)
	g.drop(x)
	return weights
}

// iteration goes forward and backward through equal layers. late is the block of the iteration before that is freed in
// this one, or ""; the one that is left for the next is returned.
func (g *training) iteration(weights []string, late string, wraps bool) string {
	x := g.malloc(16)
	g.touch(Write, x)
	acts := []string{x}
	for _, w := range weights {
		y, scratch := g.malloc(16), g.malloc(8)
		g.touch(Read, acts[len(acts)-1], w)
		g.touch(Write, scratch, y)
		g.drop(scratch)
		acts = append(acts, y)
	}
	if late != "" {
		g.touch(Read, late)
		g.drop(late)
	}
	grad := g.malloc(16)
	g.touch(Write, grad)
	for i := len(weights) - 1; i >= 0; i-- {
		before := g.malloc(16)
		g.touch(Read, grad, acts[i+1], acts[i], weights[i])
		g.touch(Write, before, weights[i])
		g.drop(grad)
		g.drop(acts[i+1])
		grad = before
	}
	g.drop(grad)
	late = ""
	if wraps {
		late = g.malloc(24)
		g.touch(Write, late)
	}
	g.drop(x)
	return late
}

// randomTrace is a valid trace of a few events over few blocks and sizes, with repetitions more or less exact.
func randomTrace(rng *rand.Rand) Trace {
	var pieces [][]byte
	for range 1 + rng.IntN(3) {
		piece := make([]byte, 1+rng.IntN(8))
		for i := range piece {
			piece[i] = byte(rng.IntN(256))
		}
		pieces = append(pieces, piece)
	}
	var script []byte
	for n := rng.IntN(60); len(script) < n; {
		piece := pieces[rng.IntN(len(pieces))]
		for range 1 + rng.IntN(4) {
			script = append(script, piece...)
		}
	}
	return traceOf(script)
}

// traceOf makes a valid trace of any bytes: each is an event on the oldest or newest of the present blocks, or a
// malloc.
func traceOf(script []byte) Trace {
	var t Trace
	var present []string
	for i, b := range script {
		at := 0
		if k := int(b>>3) % 4; k < len(present) && b>>5&1 == 0 {
			at = k
		} else if k < len(present) {
			at = len(present) - 1 - k
		}
		if kind := Kind(b % 4); kind == Malloc || len(present) == 0 {
			id := fmt.Sprint(i)
			t = append(t, Event{Malloc, id, int64(b >> 6)})
			present = append(present, id)
		} else {
			t = append(t, Event{Kind: kind, Block: present[at]})
			if kind == Free {
				present = append(present[:at:at], present[at+1:]...)
			}
		}
	}
	return t
}
