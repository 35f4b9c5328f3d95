package vdnn

import (
	"slices"

	"tensile/scheduler/rivals/layer"

	"tensile/graph"
	"tensile/plan"
)

// Offload says which layers offload their inputs.
type Offload int

// The static policies of the paper (III-C), and none.
const (
	Nothing Offload = iota
	Conv            // convolutions
	All             // all layers of feature extraction
)

// activations are in place in the paper, and so have nothing to offload (III-A).
var activations = []graph.Kind{graph.ReLU, graph.GELU, graph.Sigmoid, graph.Tanh}

// losses, with activations, neither offload nor prefetch; classifiers, the fully connected layers, do not offload
// (III-A).
var (
	losses      = []graph.Kind{graph.Softmax, graph.SoftmaxXent, graph.SigmoidXent, graph.MeanSquare}
	classifiers = []graph.Kind{graph.Linear, graph.MatMul, graph.Bias}
)

// isPassive reports whether layers of a kind take no part in the copies of vDNN.
func isPassive(k graph.Kind) bool {
	return slices.Contains(activations, k) || slices.Contains(losses, k)
}

// offloads reports whether layers of a kind offload their inputs. The paper knows convolutions and poolings; batch
// norms, and what else is no activation, loss or classifier, do so in shriramsb/vdnn-plus-plus.
func (o Offload) offloads(k graph.Kind) bool {
	switch o {
	case Conv:
		return k == graph.Conv2D
	case All:
		return !isPassive(k) && !slices.Contains(classifiers, k)
	}
	return false
}

// input is the input of a layer that the layer offloads.
type input struct {
	storage graph.StorageID
	made    int  // the step that makes what it holds; -1: the loader does
	end     int  // the last step of the layer's forward ops: it is then released
	again   bool // it is used later on
}

// walk writes the moves of one job. Steps are the ops in the order of the graph.
type walk struct {
	g          *graph.Graph
	layers     []layer.Layer
	of         []int     // per op: its layer
	offloaded  [][]input // per layer
	prefetched []bool    // per layer
	away       []bool    // per storage
	plan       *plan.Plan
}

// offload adds the moves of vDNN to a plan that has everything else: steps in the order of the graph, arrivals,
// outputs, and drops after the last use, or later.
func offload(g *graph.Graph, p *plan.Plan, layers []layer.Layer, of []int, which Offload) {
	w := &walk{g: g, layers: layers, of: of, offloaded: make([][]input, len(layers)),
		prefetched: make([]bool, len(layers)), away: make([]bool, len(g.Storages)), plan: p}
	w.findInputs(which)
	w.release()
	begins := w.backward()
	for slot := range g.Ops {
		if n := begins[slot]; n >= 0 {
			w.begin(n, slot)
		}
		w.need(g.Touches(graph.OpID(slot)), slot)
		if n := of[slot]; n >= 0 {
			for _, x := range w.offloaded[n] {
				if x.end == slot && x.again {
					w.away[x.storage] = true
				}
			}
		}
	}
	plan.Sort(p.Moves)
}

// findInputs lists what each layer offloads: what it is the last layer in forward to read (in a fork the last consumer
// alone offloads: general knowledge, in none of our sources). The last layer that is neither an activation nor a loss
// offloads nothing, since its backward comes next (so in a public re-implementation, shriramsb/vdnn-plus-plus).
func (w *walk) findInputs(which Offload) {
	g := w.g
	lastForward := make([]int, len(g.Storages)) // per storage: the last forward op that touches it
	writes, touches := make([][]int, len(g.Storages)), make([][]int, len(g.Storages))
	for op := range g.Ops {
		id := graph.OpID(op)
		for _, s := range g.Touches(id) {
			touches[s] = append(touches[s], op)
			if n := w.of[op]; n >= 0 && g.Ops[op].Forward == graph.NoOp {
				lastForward[s] = op
			}
		}
		for _, v := range g.Writes(id) {
			writes[v.Storage] = append(writes[v.Storage], op)
		}
	}
	last := len(w.layers) - 1
	for last >= 0 && isPassive(w.layers[last].Kind) {
		last--
	}
	for n := range w.features() {
		l := &w.layers[n]
		if n == last || !which.offloads(l.Kind) {
			continue
		}
		end := int(l.Forward[len(l.Forward)-1])
		for _, s := range l.X {
			role := g.Storages[s].Role
			if role != graph.Activation && role != graph.Input || lastForward[s] > end {
				continue
			}
			x := input{storage: s, made: -1, end: end}
			next, _ := slices.BinarySearch(touches[s], end+1)
			if x.again = next < len(touches[s]); x.again && touches[s][next] == end+1 {
				continue // the next step uses it
			}
			if before, _ := slices.BinarySearch(writes[s], end+1); before > 0 {
				x.made = writes[s][before-1]
			}
			w.offloaded[n] = append(w.offloaded[n], x)
		}
	}
}

// features returns how many layers are for the extraction of features, which alone offload (III-A): up to the first
// fully connected one after all convolutions and poolings. What follows, with its dropouts, is the classifier.
func (w *walk) features() int {
	last := len(w.layers)
	for n := len(w.layers) - 1; n >= 0; n-- {
		switch k := w.layers[n].Kind; {
		case slices.Contains(classifiers, k):
			last = n
		case k == graph.Conv2D || k == graph.MaxPool || k == graph.MaxPoolIndices || k == graph.AvgPool:
			return last
		}
	}
	return len(w.layers) // it has neither
}

// release writes the moves of forward: the copy out begins with the layer's compute, since that only reads; at its end
// both streams are joined if it offloads, and what was offloaded is released (III-B). What no op uses again is released
// and not copied; nor is the batch, which the host has.
func (w *walk) release() {
	for n := range w.layers {
		for _, x := range w.offloaded[n] {
			if !x.again {
				w.drop(x.storage, x.end)
				continue
			}
			if w.g.Storages[x.storage].Role == graph.Activation {
				begin := max(int(w.layers[n].Forward[0])-1, x.made)
				w.move(plan.Move{Kind: plan.Out, Storage: x.storage, After: begin})
				w.plan.Steps[x.end].Join = true
			}
			w.move(plan.Move{Kind: plan.Drop, Storage: x.storage, After: x.end})
		}
	}
}

// drop has a storage leave after a step for good.
func (w *walk) drop(s graph.StorageID, after int) {
	i := slices.IndexFunc(w.plan.Moves, func(m plan.Move) bool { return m.Kind == plan.Drop && m.Storage == s })
	w.plan.Moves[i].After = min(w.plan.Moves[i].After, after)
}

// backward returns per step the layer whose backward begins there, or -1.
func (w *walk) backward() []int {
	begins := slices.Repeat([]int{-1}, len(w.g.Ops))
	for n := range w.layers {
		if l := &w.layers[n]; len(l.Backward) > 0 {
			begins[l.Backward[0]] = n
		}
	}
	return begins
}

// begin writes the moves with which the backward of layer n begins: those of its own that are late, then a prefetch,
// which is joined at its end (III-B).
func (w *walk) begin(n, slot int) {
	l := &w.layers[n]
	for _, op := range l.Backward {
		w.need(w.g.Touches(op), slot)
	}
	if isPassive(l.Kind) {
		return
	}
	p := w.findPrefetchLayer(n)
	if p < 0 {
		return
	}
	for _, x := range w.offloaded[p] {
		if w.away[x.storage] {
			w.fetch(x.storage, slot, false)
			w.plan.Steps[l.Backward[len(l.Backward)-1]].Join = true
		}
	}
}

// findPrefetchLayer is the listing of that name (III-B): the nearest layer before n that has offloaded and was not yet
// prefetched, up to the next convolution, which may be it; -1: none.
func (w *walk) findPrefetchLayer(n int) int {
	for id := n - 1; id >= 0; id-- {
		waits := slices.ContainsFunc(w.offloaded[id], func(x input) bool { return w.away[x.storage] })
		if waits && !w.prefetched[id] {
			w.prefetched[id] = true
			return id
		}
		if w.layers[id].Kind == graph.Conv2D {
			break
		}
	}
	return -1
}

// need fetches before a step what is away, and has the step wait. Neither the paper nor the public codes say what
// happens then.
func (w *walk) need(touched []graph.StorageID, slot int) {
	for _, s := range touched {
		if w.away[s] {
			w.fetch(s, slot, true)
		}
	}
}

// fetch has a storage come in before a step.
func (w *walk) fetch(s graph.StorageID, slot int, sync bool) {
	w.away[s] = false
	w.move(plan.Move{Kind: plan.In, Storage: s, After: slot - 1, Sync: sync})
}

func (w *walk) move(m plan.Move) { w.plan.Moves = append(w.plan.Moves, m) }
