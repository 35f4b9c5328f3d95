package fakecuda

import (
	"slices"

	"tensile/device/cuda"
)

// Graph is a CUDA graph: operations that a capture took, with nothing between them but the edges that it saw.
type Graph struct {
	nodes  []*node
	before [][]*node // of each
	lanes  []lane    // a launch comes after the one before it, so that each node has one lane for all
	last   []*node   // those that end the latest launch

	origin  *stream
	streams []*stream // Streams that are being captured.
}

// BeginCapture has a graph take what is put on a stream from now on, and on streams that come to wait for that.
func (d *Driver) BeginCapture(s cuda.Stream) error {
	of, err := d.uncaptured("cuStreamBeginCapture", s)
	if err != nil {
		return err
	}
	g := &Graph{origin: of}
	g.begin(of)
	return nil
}

// uncaptured counts a call, and returns its stream unless that is being captured.
func (d *Driver) uncaptured(call string, s cuda.Stream) (*stream, error) {
	if err := d.enter(call); err != nil {
		return nil, err
	}
	of, err := d.stream(call, s)
	if err == nil && of.capture != nil {
		err = refuse(call, cuda.StreamCaptureBad, "stream %d is being captured", s)
	}
	return of, err
}

func (g *Graph) begin(s *stream) {
	s.capture, s.outside, s.waits = g, s.waits, nil
	g.streams = append(g.streams, s)
}

// join prepares a stream to wait for a record, which a capture took, or which was put if from is nil.
func (s *stream) join(call string, from *Graph) error {
	switch {
	case from == s.capture:
	case s.capture != nil || len(from.streams) == 0:
		return refuse(call, captureIsolation, "the event was not recorded in the capture that goes on")
	default:
		from.begin(s)
	}
	return nil
}

// take adds what was put on a stream that is being captured.
func (g *Graph) take(s *stream, n *node) {
	n.capture = g
	g.nodes = append(g.nodes, n)
	g.before = append(g.before, s.waits)
}

// EndCapture returns the graph of the capture that was begun on a stream. Streams that have joined it must have been
// waited for.
func (d *Driver) EndCapture(s cuda.Stream) (*Graph, error) {
	const call = "cuStreamEndCapture"
	if err := d.enter(call); err != nil {
		return nil, err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return nil, err
	} else if of.capture == nil || of.capture.origin != of {
		return nil, refuse(call, cuda.StreamCaptureBad, "no capture was begun on stream %d", s)
	}
	g := of.capture
	joined := make(map[*node]bool)
	for _, n := range of.waits {
		joined[n] = true
	}
	for i, n := range slices.Backward(g.nodes) {
		for _, b := range g.before[i] {
			joined[b] = joined[b] || joined[n]
		}
	}
	var loose *node
	for _, other := range g.streams {
		for _, n := range other.waits {
			if !joined[n] {
				loose = n
			}
		}
		other.capture, other.waits, other.outside = nil, other.outside, nil
	}
	g.streams = nil
	if loose != nil {
		return nil, refuse(call, unjoinedCapture, "stream %d does not wait for %s", s, loose)
	}
	for range g.nodes {
		d.lanes++
		g.lanes = append(g.lanes, lane{number: d.lanes})
	}
	return g, nil
}

// LaunchGraph puts the operations of a graph on a stream as one.
func (d *Driver) LaunchGraph(s cuda.Stream, g *Graph) error {
	of, err := d.uncaptured("cuGraphLaunch", s)
	if err != nil {
		return err
	}
	first := append(slices.Clone(of.waits), g.last...)
	copies, isLast := make(map[*node]*node), make(map[*node]bool)
	for i, n := range g.nodes {
		copied := &node{what: n.what, call: d.count, stream: s, run: n.run, unit: n.unit, time: n.time}
		copies[n], isLast[copied] = copied, true
		var before []*node
		for _, b := range g.before[i] {
			before = append(before, copies[b])
			isLast[copies[b]] = false
		}
		if before == nil {
			before = first
		}
		d.add(&g.lanes[i], copied, before)
	}
	g.last = nil
	for _, n := range g.nodes {
		if c := copies[n]; isLast[c] {
			g.last = append(g.last, c)
		}
	}
	if len(g.nodes) > 0 {
		of.waits = slices.Clone(g.last)
	}
	return nil
}
