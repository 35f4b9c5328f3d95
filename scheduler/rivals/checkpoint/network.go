package checkpoint

import (
	"slices"

	"tensile/scheduler/rivals/layer"

	"tensile/graph"
	"tensile/scheduler"
)

// network is the forward pass of a job as a sequence with places for cuts: place i is behind the op forward[i].
type network struct {
	g       *graph.Graph
	bytes   []graph.Bytes // per storage, as placed
	forward []graph.OpID  // in the order of the graph
	layers  int
	ended   []int  // per place: how many layers have ended there
	crosses []int  // per place: how many storages cross it
	torn    []bool // per place: a layer goes on behind it, or an op there overwrites what crosses it
	lives   []life // per storage
	writers [][]graph.OpID
}

// life says where in the forward pass a storage is made, and written and used last; counted from 1, 0: nowhere.
type life struct{ made, written, used int }

func newNetwork(j *scheduler.Job, align graph.Bytes) *network {
	g := j.Graph
	n := &network{g: g, writers: make([][]graph.OpID, len(g.Storages))}
	for s := range g.Storages {
		n.bytes = append(n.bytes, scheduler.RoundUp(g.Storages[s].Bytes, align))
	}
	for i := range g.Ops {
		op := &g.Ops[i]
		if op.Phase == graph.Forward {
			n.forward = append(n.forward, op.ID)
		}
		for _, w := range g.Writes(op.ID) {
			if known := n.writers[w.Storage]; !slices.Contains(known, op.ID) {
				n.writers[w.Storage] = append(known, op.ID)
			}
		}
	}
	n.crosses, n.ended, n.torn = make([]int, len(n.forward)), make([]int, len(n.forward)), make([]bool, len(n.forward))
	n.lives = make([]life, len(g.Storages))
	n.findCrossings()
	n.findLayers()
	return n
}

// findCrossings notes what crosses each place.
func (n *network) findCrossings() {
	g := n.g
	for i, op := range n.forward {
		for _, r := range g.Reads(op) {
			n.lives[r.Storage].used = i + 1
		}
		for _, w := range g.Writes(op) {
			x := &n.lives[w.Storage]
			if x.made == 0 {
				x.made = i + 1
			}
			x.written, x.used = i+1, i+1
		}
	}
	for s, x := range n.lives {
		if g.Storages[s].Role.FromHost() || x.made == 0 {
			continue
		}
		for place := x.made - 1; place < x.used-1; place++ {
			n.crosses[place]++
			n.torn[place] = n.torn[place] || place < x.written-1
		}
	}
}

// findLayers counts the layers that have ended at each place, and keeps cuts out of them.
func (n *network) findLayers() {
	layers, of := layer.Find(n.g)
	n.layers = len(layers)
	places := make([][2]int, len(layers)) // the places of each layer's first and last op
	for i, op := range n.forward {
		if l := of[op]; l >= 0 {
			if op == layers[l].Forward[0] {
				places[l][0] = i
			}
			places[l][1] = i
		}
	}
	for _, p := range places {
		for place := p[0]; place < p[1]; place++ {
			n.torn[place] = true
		}
		n.ended[p[1]]++
	}
	for i := range n.ended[min(1, len(n.ended)):] {
		n.ended[i+1] += n.ended[i]
	}
}

// cuts lists the places where the forward pass may be cut: where one storage crosses, or none. Where there is no such
// place for more than 2 sqrt(n) layers of n, as in recurrent networks, there are others in between: see narrowest.
func (n *network) cuts() []int {
	far := 2 * int(isqrt(int64(n.layers), 1))
	var all []int
	last := -1 // place of the last cut
	for place := range n.crosses {
		end := place == len(n.crosses)-1
		if !end && (n.torn[place] || n.crosses[place] > 1) {
			continue
		}
		before := 0
		if last >= 0 {
			before = n.ended[last]
		}
		if n.ended[place]-before > far {
			all = append(all, n.narrowest(last+1, place)...)
		}
		if !end {
			all = append(all, place)
		}
		last = place
	}
	return all
}

// narrowest lists, of the places from one on up to another, those that the fewest storages cross among as many layers
// as a segment of sqrt(n) has.
func (n *network) narrowest(from, to int) (all []int) {
	size := int(isqrt(int64(n.layers), 1))
	first, begin := 0, 0 // of these layers: the first of all, and how many layers have ended before
	if from > 0 {
		begin = n.ended[from-1]
	}
	for place := from; place < to; place++ {
		if n.ended[place]-begin > size {
			first, begin = len(all), n.ended[place]
		}
		if n.torn[place] {
			continue
		}
		if len(all) > first && n.crosses[place] < n.crosses[all[first]] {
			all = all[:first]
		}
		if len(all) == first || n.crosses[place] == n.crosses[all[first]] {
			all = append(all, place)
		}
	}
	return all
}
