package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tensile/graph"
)

// Pack packs a graph for a request. One that is not a script's has no latencies.
func Pack(g *graph.Graph, latency []time.Duration) (Packed, error) {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	if err := json.NewEncoder(w).Encode(g); err != nil {
		return Packed{}, err
	}
	if err := w.Close(); err != nil {
		return Packed{}, err
	}
	return Packed{Graph: to.Bytes(), Latency: latency}, nil
}

// Unpack returns the graph, and how many bytes its JSON form has. One of more than [MaxLayout] is refused.
func (p *Packed) Unpack() (*graph.Graph, int, error) {
	r, err := gzip.NewReader(bytes.NewReader(p.Graph))
	if err != nil {
		return nil, 0, fmt.Errorf("a graph is not packed by gzip: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxLayout+1))
	if err != nil {
		return nil, 0, fmt.Errorf("unpack a graph: %w", err)
	}
	if len(text) > MaxLayout {
		return nil, 0, fmt.Errorf("a graph has more than %d bytes", MaxLayout)
	}
	g, err := graph.Read(bytes.NewReader(text))
	if err != nil {
		return nil, 0, err
	}
	if p.Latency != nil && len(p.Latency) != len(g.Ops) {
		return nil, 0, fmt.Errorf("there are latencies of %d ops, and its graph has %d", len(p.Latency), len(g.Ops))
	}
	return g, len(text), nil
}
