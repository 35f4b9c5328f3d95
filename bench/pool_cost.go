package bench

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"tensile/observe/report"
	"tensile/plan/pool"
)

// PackingCost is what a search costs for a number of buffers.
type PackingCost struct {
	Instance    string  `json:"instance"`
	Buffers     int     `json:"buffers"`
	Time        float64 `json:"ms"`
	PerThousand float64 `json:"ms_per_1000_buffers"`
	LowerBound  int64   `json:"lower_bound_bytes"`
	Height      int64   `json:"height_bytes"`
	Ratio       float64 `json:"ratio"` // height to lower bound
}

// What cost is measured on: repeated training steps, and synthetic traces of growing size.
var (
	costCopies = []int{1, 2, 4, 8, 11}
	costSizes  = []int{1_000, 10_000, 100_000}
)

// costs measures the training step of a file repeated, and synthetic ones.
func (m *packer) costs(path string, copies, sizes []int) ([]PackingCost, error) {
	step, err := readBuffers(path)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(path), ".csv")
	rows := []PackingCost{}
	add := func(instance string, buffers []pool.Buffer) error {
		l, took, err := m.pack(instance, buffers, pool.Options{})
		ms := report.Milliseconds(took)
		rows = append(rows, PackingCost{Instance: instance, Buffers: len(buffers), Time: ms,
			PerThousand: ms * 1000 / float64(max(1, len(buffers))), LowerBound: l.LowerBound, Height: l.Height,
			Ratio: heightRatio(l.Height, l.LowerBound)})
		return err
	}
	for _, k := range copies {
		if err := add(fmt.Sprintf("%s x %d", name, k), repeated(step, k)); err != nil {
			return nil, err
		}
	}
	for _, n := range sizes {
		if err := add("synthetic step", syntheticStep(n, 1)); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// repeated is k times the same buffers one after another: each copy begins where the last of the one before it ends.
func repeated(buffers []pool.Buffer, k int) []pool.Buffer {
	length := 0
	for _, b := range buffers {
		length = max(length, b.Spans[len(b.Spans)-1].To)
	}
	var all []pool.Buffer
	for copy := range k {
		for _, b := range buffers {
			spans := make([]pool.Span, len(b.Spans))
			for i, s := range b.Spans {
				spans[i] = pool.Span{From: s.From + copy*length, To: s.To + copy*length}
			}
			b.Spans = spans
			all = append(all, b)
		}
	}
	return all
}

// syntheticStep resembles a training step of n buffers: four in ten are activations, whose lifetimes nest, five in ten
// live shortly, and one in ten is resident throughout. There are few different sizes, as in a network.
func syntheticStep(n int, seed uint64) []pool.Buffer {
	rng := rand.New(rand.NewPCG(seed, 0))
	const brief = 6 // slots
	buffers := make([]pool.Buffer, n)
	for i := range buffers {
		at := rng.IntN(n)
		span := pool.Span{From: at, To: at + 1 + rng.IntN(brief)}
		switch kind := rng.IntN(10); {
		case kind < 4:
			span = pool.Span{From: at / 2, To: n - at/2}
		case kind == 9:
			span = pool.Span{From: 0, To: n + brief}
		}
		buffers[i] = pool.Buffer{Size: int64(512) << rng.IntN(14) * int64(1+rng.IntN(9)), Spans: []pool.Span{span}}
	}
	return buffers
}
