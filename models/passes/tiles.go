package passes

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Tiles returns the graph rewritten by the pass of this name with tiles of the given number of rows of a parameter of a
// shape; nil means Shape.TileRows, with which a tile has the bits that it has in the whole on every device. Others are
// for tests.
func Tiles(g *graph.Graph, rows func(graph.Shape) int) (*graph.Graph, Outcome, error) {
	if rows == nil {
		rows = graph.Shape.TileRows
	}
	tiled, o := apply(g, &pass{name: "tiles", run: func(r *rewrite) { tile(r, rows) }})
	return tiled, o, valid(tiled)
}

// tiles makes the gradient of a large parameter, and updates the parameter, some rows at a time. Each op that has a
// part in the gradient, and the update, becomes an op per tile. The parameter stays one storage, of which each update
// writes some rows: it has as many versions as tiles. Gradients and what the optimizer remembers become a storage per
// tile, so that an update works on the parameter and a tile of the rest.
//
// That holds for what treats each element by itself (sgd, sgd_momentum, adam; add, accumulate, scale) of gradients that
// can be made in parts (linear_dw, embedding_dw) and that nothing else reads.
func tiles(r *rewrite) { tile(r, graph.Shape.TileRows) }

// leaves make gradients and have rows as an attribute; sums treat each element of gradients by itself; updates do so
// with a parameter, its gradient and their state.
var (
	leaves  = []graph.Kind{graph.LinearDW, graph.EmbeddingDW}
	sums    = []graph.Kind{graph.Add, graph.Accumulate, graph.Scale}
	updates = []graph.Kind{graph.SGD, graph.Momentum, graph.Adam}
)

func tile(r *rewrite, rows func(graph.Shape) int) {
	t := &tiler{rewrite: r, made: make(map[graph.Version]graph.OpID), readers: make(map[graph.Version][]graph.OpID),
		of: make([]*tiling, len(r.g.Ops)), parts: make(map[graph.TensorID][]graph.TensorID),
		stores: make(map[graph.StorageID][]graph.StorageID)}
	for i := range r.g.Ops {
		for _, v := range r.g.Reads(graph.OpID(i)) {
			t.readers[v] = append(t.readers[v], graph.OpID(i))
		}
		for _, v := range r.g.Writes(graph.OpID(i)) {
			t.made[v] = graph.OpID(i)
		}
	}
	updated := make(map[graph.StorageID]graph.OpID) // by the first op that writes it
	var parameters []graph.StorageID
	for i := range r.g.Ops {
		for _, out := range r.g.Ops[i].Outputs {
			s := r.g.Tensors[out].Storage
			if _, again := updated[s]; r.g.Storages[s].Role == graph.Parameter && !again {
				updated[s] = graph.OpID(i)
				parameters = append(parameters, s)
			}
		}
	}
	for _, s := range parameters {
		t.parameter(s, updated[s], rows)
	}
	t.rebuild()
}

// tiler is the state of the pass.
type tiler struct {
	*rewrite
	made    map[graph.Version]graph.OpID
	readers map[graph.Version][]graph.OpID
	of      []*tiling // per op: the parameter that it has a part in updating, or nil

	parts  map[graph.TensorID][]graph.TensorID // of tensors that are made in tiles
	stores map[graph.StorageID][]graph.StorageID
}

// tiling is a parameter that is updated in tiles.
type tiling struct {
	parameter graph.StorageID
	shape     graph.Shape
	rows      int
	ops       []graph.OpID // the update and what makes the gradient
}

func (x *tiling) tiles() int { return (x.shape[0] + x.rows - 1) / x.rows }

// span returns where the rows of a tile begin, and how many there are.
func (x *tiling) span(tile int) (begin, length int) {
	begin = tile * x.rows
	return begin, min(x.rows, x.shape[0]-begin)
}

// parameter decides on a parameter that is first written by an op.
func (t *tiler) parameter(s graph.StorageID, update graph.OpID, rows func(graph.Shape) int) {
	whole := slices.IndexFunc(t.g.Tensors, func(x graph.Tensor) bool {
		return x.Storage == s && x.Bytes() == t.g.Storages[s].Bytes && len(x.Shape) > 0
	})
	if whole < 0 {
		return
	}
	x := &tiling{parameter: s, shape: t.g.Tensors[whole].Shape}
	if x.rows = rows(x.shape); x.rows >= x.shape[0] {
		return
	}
	op := &t.g.Ops[update]
	if reason := t.update(x, op); reason != "" {
		t.refuse(op, "%s", reason)
		return
	}
	t.changed++
	for _, id := range x.ops {
		t.of[id] = x
	}
}

// update collects the ops that have a part in an update, or says why it cannot be made in tiles.
func (t *tiler) update(x *tiling, op *graph.Op) string {
	if !slices.Contains(updates, op.Kind) {
		return fmt.Sprintf("%s may not treat each element by itself", op.Kind)
	}
	x.ops = append(x.ops, op.ID)
	for i, in := range op.Inputs {
		if i == 1 {
			continue
		}
		before := t.g.Version(in)
		after := graph.Version{Storage: before.Storage, Number: before.Number + 1}
		s := &t.g.Storages[before.Storage]
		switch {
		case before.Number != 0 || len(t.readers[after]) > 0:
			return fmt.Sprintf("%s is used in this iteration before and after it is updated", s.Name)
		case !t.isWhole(in, x):
			return fmt.Sprintf("it updates a part of %s, or sees it in another shape", s.Name)
		case i == 0:
		case s.Role != graph.State:
			return fmt.Sprintf("what it keeps in %s is of role %s", s.Name, s.Role)
		case len(t.readers[before]) > 1:
			return fmt.Sprintf("%s is read by %s too", s.Name, t.otherReader(before, op.ID))
		case s.Init.Kind == graph.InitNormal || s.PartOf != "":
			return fmt.Sprintf("what %s begins with depends on its name", s.Name)
		}
	}
	return t.gradient(x, op.Inputs[1], op.ID)
}

// gradient collects the ops that make a gradient, which an op reads.
func (t *tiler) gradient(x *tiling, tensor graph.TensorID, reader graph.OpID) string {
	v := t.g.Version(tensor)
	s := &t.g.Storages[v.Storage]
	if s.Role.FromHost() || s.Role == graph.Output {
		return fmt.Sprintf("its gradient %s is of role %s", s.Name, s.Role)
	}
	op := &t.g.Ops[t.made[v]]
	if !t.isWhole(tensor, x) || len(op.Outputs) == 1 && !t.isWhole(op.Outputs[0], x) {
		return fmt.Sprintf("its gradient %s is seen in part or in another shape", s.Name)
	}
	if len(t.readers[v]) > 1 {
		return fmt.Sprintf("its gradient %s is read by %s too", s.Name, t.otherReader(v, reader))
	}
	switch {
	case slices.Contains(x.ops, op.ID): // both operands of a sum
	case slices.Contains(leaves, op.Kind) && op.Attrs.Length == 0:
		ofItself := func(in graph.TensorID) bool { return t.g.Tensors[in].Storage == x.parameter }
		if slices.ContainsFunc(op.Inputs, ofItself) {
			return fmt.Sprintf("%s makes its gradient of %s itself", op.Name, t.g.Storages[x.parameter].Name)
		}
		x.ops = append(x.ops, op.ID)
	case slices.Contains(sums, op.Kind):
		x.ops = append(x.ops, op.ID)
		for _, in := range op.Inputs {
			if reason := t.gradient(x, in, op.ID); reason != "" {
				return reason
			}
		}
	default:
		return fmt.Sprintf("%s makes its gradient %s, and %s makes no part alone", op.Name, s.Name, op.Kind)
	}
	return ""
}

// isWhole reports whether a tensor is all of its storage, in the shape of the parameter.
func (t *tiler) isWhole(tensor graph.TensorID, x *tiling) bool {
	of := t.g.Tensors[tensor]
	return slices.Equal(of.Shape, x.shape) && of.Bytes() == t.g.Storages[of.Storage].Bytes
}

// otherReader names a reader of a content beside one.
func (t *tiler) otherReader(v graph.Version, reader graph.OpID) string {
	i := slices.IndexFunc(t.readers[v], func(op graph.OpID) bool { return op != reader })
	return t.g.Ops[t.readers[v][i]].Name
}

// rebuild writes the list of ops again. Ops of one parameter and phase that stand together take turns: all of one tile,
// then all of the next.
func (t *tiler) rebuild() {
	old := t.g.Ops
	t.g.Ops = nil
	place := make([]graph.OpID, len(old))
	for from := 0; from < len(old); {
		x, to := t.of[from], from+1
		if x == nil {
			place[from] = t.emit(old[from])
			from = to
			continue
		}
		for to < len(old) && t.of[to] == x && old[to].Phase == old[from].Phase {
			to++
		}
		for tile := range x.tiles() {
			for _, op := range old[from:to] {
				place[op.ID] = t.emit(t.part(x, op, tile))
			}
		}
		from = to
	}
	for i := range t.g.Ops {
		if op := &t.g.Ops[i]; op.Forward != graph.NoOp {
			op.Forward = place[op.Forward]
		}
	}
}

func (t *tiler) emit(op graph.Op) graph.OpID {
	op.ID = graph.OpID(len(t.g.Ops))
	t.g.Ops = append(t.g.Ops, op)
	return op.ID
}

// part returns the op of a tile.
func (t *tiler) part(x *tiling, op graph.Op, tile int) graph.Op {
	op.Name = tileName(op.Name, tile)
	if slices.Contains(leaves, op.Kind) {
		op.Inputs = slices.Clone(op.Inputs)
		op.Attrs.Begin, op.Attrs.Length = x.span(tile)
	} else {
		op.Inputs = t.tensors(x, op.Inputs, tile, 0)
	}
	op.Outputs = t.tensors(x, op.Outputs, tile, 1)
	return op
}

// tensors returns the parts of tensors that belong to a tile. Of the parameter, which each tile makes a version of,
// that is the one before it, or after it: 0 or 1.
func (t *tiler) tensors(x *tiling, ids []graph.TensorID, tile, after int) []graph.TensorID {
	parts := make([]graph.TensorID, len(ids))
	for i, id := range ids {
		of := t.g.Tensors[id]
		begin, length := x.span(tile)
		if t.g.Storages[of.Storage].Role != graph.Parameter {
			parts[i] = t.tensor(x, id, tile)
			continue
		}
		of.Offset = of.Bytes() / graph.Bytes(x.shape[0]) * graph.Bytes(begin)
		of.Name, of.Version, of.Shape = tileName(of.Name, tile), tile+after, x.shapeOf(length)
		parts[i] = t.add(of)
	}
	return parts
}

// tensor returns the part of a gradient or state that belongs to a tile.
func (t *tiler) tensor(x *tiling, id graph.TensorID, tile int) graph.TensorID {
	if t.parts[id] == nil {
		of := t.g.Tensors[id]
		name := of.Name
		for i, s := range t.storages(x, of.Storage) {
			_, length := x.span(i)
			of.Name, of.Storage, of.Shape = tileName(name, i), s, x.shapeOf(length)
			t.parts[id] = append(t.parts[id], t.add(of))
		}
	}
	return t.parts[id][tile]
}

func (t *tiler) add(of graph.Tensor) graph.TensorID {
	of.ID = graph.TensorID(len(t.g.Tensors))
	t.g.Tensors = append(t.g.Tensors, of)
	return of.ID
}

// storages returns the storages that a gradient or state is divided into. They take the place of the whole, which no op
// names any more.
func (t *tiler) storages(x *tiling, of graph.StorageID) []graph.StorageID {
	if t.stores[of] != nil {
		return t.stores[of]
	}
	whole := t.g.Storages[of]
	row := whole.Bytes / graph.Bytes(x.shape[0])
	for i := range x.tiles() {
		begin, length := x.span(i)
		s := whole
		s.ID, s.Name, s.Bytes = graph.StorageID(len(t.g.Storages)), tileName(whole.Name, i), row*graph.Bytes(length)
		if whole.Role.Persistent() {
			s.PartOf, s.Begin = whole.Name, row*graph.Bytes(begin)
		}
		t.g.Storages = append(t.g.Storages, s)
		t.stores[of] = append(t.stores[of], s.ID)
	}
	t.removed[of] = true
	return t.stores[of]
}

func (x *tiling) shapeOf(rows int) graph.Shape {
	shape := slices.Clone(x.shape)
	shape[0] = rows
	return shape
}

// tileName is the name of what belongs to a tile.
func tileName(name string, tile int) string { return fmt.Sprintf("%s.tile%d", name, tile) }
