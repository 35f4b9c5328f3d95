package superneurons

import (
	"slices"

	"tensile/scheduler/rivals/layer"

	"tensile/graph"
)

// cheap are the kinds whose outputs are made again: POOL, ACT, LRN, BN and dropout (3.4), and what only moves data.
var cheap = []graph.Kind{
	graph.ReLU, graph.GELU, graph.Sigmoid, graph.Tanh, graph.Dropout, graph.BatchNorm, graph.LayerNorm, graph.LRN,
	graph.MaxPool, graph.MaxPoolIndices, graph.AvgPool, graph.Bias, graph.Slice, graph.SliceDX, graph.Pad,
	graph.Transpose,
}

// absent marks what is not there.
const absent = -1

// network is what the method sees of a graph.
type network struct {
	g       *graph.Graph
	layers  []layer.Layer
	of      []int  // per op: its layer, or -1
	forward int    // ops before the first that is not forward
	conv    []bool // per layer: a convolution
	fc      []bool // per layer: fully connected

	// Per storage:
	writers  [][]graph.OpID // forward ops that write it, ascending
	touching [][]graph.OpID // forward ops that read or write it, ascending
	newest   []int          // its version when the forward pass ends
	changed  [][]int        // the ops that write it after that, ascending
	last     []int          // the last op that touches it, or absent
	segment  []int          // the segment that makes it again, or absent

	chains []chain // the segments
}

// chain is a segment: storages of cheap layers, each made of the one before.
type chain struct {
	storages []graph.StorageID
	first    string // the name of the first op
	layers   int
	cost     graph.Bytes
	memory   bool // memory-centric
}

// newNetwork finds the layers and the segments, and which of them are memory-centric.
func newNetwork(g *graph.Graph, strategy Strategy) *network {
	n := &network{g: g, forward: len(g.Ops)}
	n.layers, n.of = layer.Find(g)
	for i := range g.Ops {
		if g.Ops[i].Phase != graph.Forward {
			n.forward = i
			break
		}
	}
	storages := len(g.Storages)
	n.writers, n.touching = make([][]graph.OpID, storages), make([][]graph.OpID, storages)
	n.last, n.newest = slices.Repeat([]int{absent}, storages), make([]int, storages)
	n.changed = make([][]int, storages)
	for i := range g.Ops {
		op := graph.OpID(i)
		for _, s := range g.Touches(op) {
			n.last[s] = i
			if i < n.forward {
				n.touching[s] = append(n.touching[s], op)
			}
		}
		for _, w := range g.Writes(op) {
			s := w.Storage
			switch {
			case i >= n.forward:
				n.changed[s] = append(n.changed[s], i)
			case !slices.Contains(n.writers[s], op):
				n.writers[s] = append(n.writers[s], op)
			}
			if i < n.forward {
				n.newest[s] = max(n.newest[s], w.Number)
			}
		}
	}
	n.classify()
	n.segments()
	peak := n.largestLayer()
	for i := range n.chains {
		c := &n.chains[i]
		c.memory = strategy == MemoryCentric || strategy == CostAware && c.cost > peak
	}
	return n
}

// classify finds the convolutions and the fully connected layers. A bias of its own belongs to the layer before.
func (n *network) classify() {
	n.conv, n.fc = make([]bool, len(n.layers)), make([]bool, len(n.layers))
	for i, l := range n.layers {
		switch l.Kind {
		case graph.Conv2D:
			n.conv[i] = true
		case graph.Linear, graph.MatMul:
			n.fc[i] = true
		case graph.Bias:
			if len(l.X) == 1 && len(n.writers[l.X[0]]) > 0 {
				if before := n.of[n.writers[l.X[0]][0]]; before >= 0 {
					n.conv[i], n.fc[i] = n.conv[before], n.fc[before]
				}
			}
		}
	}
}

// convolved reports whether a convolution makes a storage in the forward pass.
func (n *network) convolved(s graph.StorageID) bool {
	if n.g.Storages[s].Role != graph.Activation || len(n.writers[s]) == 0 {
		return false
	}
	l := n.of[n.writers[s][0]]
	return l >= 0 && n.conv[l]
}

// segments finds what can be made again, and joins it to segments.
func (n *network) segments() {
	g := n.g
	n.segment = slices.Repeat([]int{absent}, len(g.Storages))
	until := n.lastNeeds()
	for op := range n.forward {
		for _, w := range g.Writes(graph.OpID(op)) {
			s := w.Storage
			if writers := n.writers[s]; writers[len(writers)-1] != graph.OpID(op) || !n.isRemade(s, until[s]) {
				continue
			}
			at := absent
			for _, x := range n.sources(s) {
				at = max(at, n.segment[x])
			}
			if at < 0 {
				at = len(n.chains)
				n.chains = append(n.chains, chain{first: g.Ops[n.writers[s][0]].Name})
			}
			n.segment[s] = at
			n.chains[at].storages = append(n.chains[at].storages, s)
			n.chains[at].layers += len(n.writers[s])
		}
	}
	for i := range n.chains {
		c := &n.chains[i]
		for _, s := range c.storages {
			c.cost += g.Storages[s].Bytes
		}
		writers := n.writers[c.storages[len(c.storages)-1]]
		_, backward := n.usage(n.of[writers[len(writers)-1]])
		c.cost += backward
	}
}

// sources returns what the ops that make a storage read of other activations.
func (n *network) sources(s graph.StorageID) []graph.StorageID {
	var all []graph.StorageID
	for _, op := range n.writers[s] {
		for _, v := range n.g.Reads(op) {
			if v.Storage != s && !n.g.Storages[v.Storage].Role.Persistent() && !slices.Contains(all, v.Storage) {
				all = append(all, v.Storage)
			}
		}
	}
	return all
}

// cheapLayers reports whether a storage is made by cheap layers of one input each, and by nothing else.
func (n *network) cheapLayers(s graph.StorageID) bool {
	if n.g.Storages[s].Role != graph.Activation || len(n.writers[s]) == 0 {
		return false
	}
	for _, op := range n.writers[s] {
		l := n.of[op]
		if l < 0 || n.conv[l] || n.fc[l] || !slices.Contains(cheap, n.layers[l].Kind) || len(n.layers[l].X) != 1 {
			return false
		}
	}
	return true
}

// lastNeeds returns, per storage, the last op before which it may have to be there if all that cheap layers make is
// made again: its own last use, and that of what is made of it.
func (n *network) lastNeeds() []int {
	until := slices.Clone(n.last)
	for op := n.forward - 1; op >= 0; op-- {
		for _, w := range n.g.Writes(graph.OpID(op)) {
			if n.cheapLayers(w.Storage) {
				for _, v := range n.g.Reads(graph.OpID(op)) {
					until[v.Storage] = max(until[v.Storage], until[w.Storage])
				}
			}
		}
	}
	return until
}

// isRemade reports whether a storage is dropped after the forward pass and made again, until some op: cheap layers make
// it, one layer reads it there, the backward pass needs it, and what it is made of is the same until then.
func (n *network) isRemade(s graph.StorageID, until int) bool {
	return n.cheapLayers(s) && n.last[s] >= n.forward && n.isReadOnce(s) && n.steady(s, until)
}

// isReadOnce reports whether each version of a storage is read in the forward pass by one layer at most beside the one
// that makes it, and one of them is: neither a fork nor what a layer keeps for itself.
func (n *network) isReadOnce(s graph.StorageID) bool { return n.readers(s) == 1 }

// readers is the largest number of layers that read one version of a storage in the forward pass, beside the layer that
// makes it: 0, 1, or 2 for more.
func (n *network) readers(s graph.StorageID) int {
	reader := make(map[int]int) // by version
	maker := absent
	for _, op := range n.touching[s] {
		for _, v := range n.g.Reads(op) {
			if v.Storage != s || n.of[op] == maker && v.Number == 0 && n.made(op, s) == absent {
				continue // the layer reads what it has made itself
			}
			if before, ok := reader[v.Number]; ok && before != n.of[op] {
				return 2
			}
			reader[v.Number] = n.of[op]
		}
		if n.made(op, s) == 0 {
			maker = n.of[op]
		}
	}
	return min(len(reader), 1)
}

// isKept reports whether a storage is a join or a fork: not made again though it is no checkpoint.
func (n *network) isKept(s graph.StorageID) bool {
	if n.g.Storages[s].Role != graph.Activation || len(n.writers[s]) == 0 {
		return false
	}
	for _, op := range n.writers[s] {
		if l := n.of[op]; l < 0 || n.fc[l] {
			return false
		} else if len(n.layers[l].X) > 1 {
			return true
		}
	}
	return n.readers(s) > 1
}

// made returns the version of a storage that an op makes, or absent.
func (n *network) made(op graph.OpID, s graph.StorageID) int {
	for _, w := range n.g.Writes(op) {
		if w.Storage == s {
			return w.Number
		}
	}
	return absent
}

// steady reports whether the ops that make a storage can be repeated before some op, with the same result.
func (n *network) steady(s graph.StorageID, until int) bool {
	g := n.g
	if n.changed[s] != nil {
		return false
	}
	for _, op := range n.writers[s] {
		if !g.Repeatable(op) {
			return false
		}
		for _, w := range g.Writes(op) {
			if w.Storage != s && !g.Pure(op) {
				return false
			}
		}
		for _, v := range g.Reads(op) {
			if v.Storage == s {
				continue
			}
			if v.Number != n.newest[v.Storage] || len(n.changed[v.Storage]) > 0 && n.changed[v.Storage][0] < until {
				return false
			}
		}
	}
	return true
}

// usage returns what a layer has on the device in its forward and in its backward pass: every tensor that its ops read
// or write, parameters left out, as if nothing were done in place (l_i, section 3).
func (n *network) usage(layer int) (forward, backward graph.Bytes) {
	return n.tensors(n.layers[layer].Forward), n.tensors(n.layers[layer].Backward)
}

func (n *network) tensors(ops []graph.OpID) (sum graph.Bytes) {
	var seen []graph.Version
	for _, op := range ops {
		for _, v := range append(n.g.Reads(op), n.g.Writes(op)...) {
			if !n.g.Storages[v.Storage].Role.Persistent() && !slices.Contains(seen, v) {
				seen = append(seen, v)
				sum += n.g.Storages[v.Storage].Bytes
			}
		}
	}
	return sum
}

// largestLayer is l_peak, the most that a layer has on the device (3.4, step 1).
func (n *network) largestLayer() (peak graph.Bytes) {
	for i := range n.layers {
		forward, backward := n.usage(i)
		peak = max(peak, forward, backward)
	}
	return peak
}
