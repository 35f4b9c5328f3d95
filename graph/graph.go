package graph

import (
	"cmp"
	"slices"
)

// StorageID, TensorID and OpID are positions in the slices of a Graph.
type (
	StorageID int32
	TensorID  int32
	OpID      int32
)

// NoOp marks the absence of an op, for example of a forward op.
const NoOp OpID = -1

// Role says what a storage is for. It decides whether the storage outlives an iteration and where its first bytes
// come from.
type Role string

const (
	Input      Role = "input"      // the loader makes version 0 valid on the host in every iteration
	Parameter  Role = "parameter"  // persistent, trained
	State      Role = "state"      // persistent, not trained: optimizer moments, running statistics
	Activation Role = "activation" // made and forgotten within an iteration, forward
	Gradient   Role = "gradient"   // made and forgotten within an iteration, backward
	Output     Role = "output"     // made within an iteration; its last version must reach the host
)

// Persistent reports whether storages of this role keep their content from one iteration to the next.
func (r Role) Persistent() bool { return r == Parameter || r == State }

// FromHost reports whether version 0 of storages of this role exists before the first op of an iteration.
func (r Role) FromHost() bool { return r.Persistent() || r == Input }

// Phase is the part of an iteration that an op belongs to.
type Phase string

const (
	Forward  Phase = "forward"
	Backward Phase = "backward"
	Optimize Phase = "optimize"
)

// InitKind names how a persistent storage gets its first content.
type InitKind string

const (
	InitZero   InitKind = "zero"
	InitOne    InitKind = "one"
	InitNormal InitKind = "normal" // mean 0, standard deviation Init.Scale
	InitFile   InitKind = "file"   // the tensor of the storage's name in the job's file of weights
)

// Init says how a persistent storage is filled before the first iteration.
type Init struct {
	Kind  InitKind `json:"kind"`
	Scale float64  `json:"scale,omitempty"`
}

// Storage is a range of bytes with a life of its own: the unit that a plan keeps, moves or recomputes.
type Storage struct {
	ID    StorageID `json:"id"`
	Name  string    `json:"name"`
	Role  Role      `json:"role"`
	Bytes Bytes     `json:"bytes"`
	Init  *Init     `json:"init,omitempty"`  // persistent storages only
	Holds Holds     `json:"holds,omitempty"` // inputs only

	// Of a persistent storage that is a part of something larger, which files hold in one piece: its name, and
	// where the part begins in it. The parts of one name follow one another without gaps.
	PartOf string `json:"part_of,omitempty"`
	Begin  Bytes  `json:"begin,omitempty"`

	// Of an activation or gradient that something beside the ops holds after the last one that touches it: the op
	// before which it is let go, or the number of ops where that is the end of the iteration. Until then its last
	// content stays on the device or the host. 0: nothing needs it after its last op.
	Until OpID `json:"until,omitzero"`
}

// Tensor is one version of a storage, or a view of a part of it, seen with a shape. Elements are dense, in row-major
// order, and all tensors of a storage have the same type. Class labels are numbers of the type of the logits.
type Tensor struct {
	ID      TensorID  `json:"id"`
	Name    string    `json:"name"`
	Storage StorageID `json:"storage"`
	Version int       `json:"version"`
	Offset  Bytes     `json:"offset,omitempty"` // Offset from the start of the storage.
	Shape   Shape     `json:"shape"`
	DType   DType     `json:"dtype,omitempty"`
}

// Bytes is the size of the tensor's elements.
func (t Tensor) Bytes() Bytes { return Bytes(t.Shape.Elements()) * t.DType.Bytes() }

// Op is one operator of the iteration. Its rules (shapes, cost, which outputs are made in place) follow from Kind.
type Op struct {
	ID      OpID       `json:"id"`
	Name    string     `json:"name"`
	Kind    Kind       `json:"kind"`
	Inputs  []TensorID `json:"inputs"`
	Outputs []TensorID `json:"outputs"`
	Attrs   Attrs      `json:"attrs,omitzero"`
	Phase   Phase      `json:"phase"`
	Layer   string     `json:"layer,omitempty"`
	Forward OpID       `json:"forward"` // the forward op that a backward op belongs to, or NoOp
}

// Graph is one iteration of a job: ops in an order in which they can be executed, the tensors between them, and the
// storages behind those.
type Graph struct {
	Name     string    `json:"name"`
	Storages []Storage `json:"storages"`
	Tensors  []Tensor  `json:"tensors"`
	Ops      []Op      `json:"ops"`
	Passes   []string  `json:"passes,omitempty"` // rewrites that it has been through, by name, in order
	// digest of the graph before those passes; "" without passes, and of graphs from files that do not say it
	Plain Digest `json:"plain,omitempty"`
}

// Network identifies what the graph was before its passes, which change neither what it learns nor what files hold of
// it.
func (g *Graph) Network() Digest {
	if g.Plain != "" {
		return g.Plain
	}
	return g.Digest()
}

// Version is one content of a storage within an iteration.
type Version struct {
	Storage StorageID
	Number  int
}

// Version returns the content that tensor t shows.
func (g *Graph) Version(t TensorID) Version {
	return Version{g.Tensors[t].Storage, g.Tensors[t].Version}
}

// Fresh reports whether the op's output i is a storage's first content, made by this op: a new allocation rather than
// an update in place.
func (g *Graph) Fresh(op OpID, i int) bool {
	v := g.Version(g.Ops[op].Outputs[i])
	return v.Number == 0 && !g.Storages[v.Storage].Role.FromHost()
}

// Updated returns the input that output i of an op updates in place, or -1 if the output is fresh.
func (g *Graph) Updated(op OpID, i int) int {
	o := &g.Ops[op]
	if k := kinds[o.Kind]; k.outputs != nil {
		return k.updated(o.Attrs, i)
	}
	out := g.Tensors[o.Outputs[i]]
	return slices.IndexFunc(o.Inputs, func(t TensorID) bool {
		in := g.Tensors[t]
		return in.Storage == out.Storage && in.Version == out.Version-1 && in.Offset == out.Offset &&
			slices.Equal(in.Shape, out.Shape)
	})
}

// Pure reports whether the op makes only fresh storages and may be executed again wherever its inputs are.
func (g *Graph) Pure(op OpID) bool {
	if g.Ops[op].Attrs.Once {
		return false
	}
	for i := range g.Ops[op].Outputs {
		if !g.Fresh(op, i) {
			return false
		}
	}
	return true
}

// Repeatable reports whether the op may be executed more than once in an iteration: it is pure, or updates in place
// only activations and gradients. An update needs the version before it, which is gone after the first time: such a
// storage is made again from version 0, by repeating the ops that wrote it in their order. Persistent storages are
// updated once, and so are outputs. An AllReduce is executed once, since the other replicas execute it once.
func (g *Graph) Repeatable(op OpID) bool {
	if g.Ops[op].Attrs.Once || g.Ops[op].Kind == AllReduce {
		return false
	}
	for i, t := range g.Ops[op].Outputs {
		role := g.Storages[g.Tensors[t].Storage].Role
		if !g.Fresh(op, i) && role != Activation && role != Gradient {
			return false
		}
	}
	return true
}

// Reads returns the contents that must be on the device when the op starts, each once and in operand order: its
// inputs, and the previous version of every storage it updates in place.
func (g *Graph) Reads(op OpID) []Version {
	var reads []Version
	add := func(v Version) {
		if !slices.Contains(reads, v) {
			reads = append(reads, v)
		}
	}
	for _, t := range g.Ops[op].Inputs {
		add(g.Version(t))
	}
	for i, t := range g.Ops[op].Outputs {
		if !g.Fresh(op, i) {
			v := g.Version(t)
			add(Version{v.Storage, v.Number - 1})
		}
	}
	return reads
}

// Writes returns the contents that the op makes, in output order.
func (g *Graph) Writes(op OpID) []Version {
	writes := make([]Version, len(g.Ops[op].Outputs))
	for i, t := range g.Ops[op].Outputs {
		writes[i] = g.Version(t)
	}
	return writes
}

// Touches returns the storages that the op reads or writes, each once: together they are its working set.
func (g *Graph) Touches(op OpID) []StorageID {
	var touched []StorageID
	for _, ids := range [2][]TensorID{g.Ops[op].Inputs, g.Ops[op].Outputs} {
		for _, t := range ids {
			if s := g.Tensors[t].Storage; !slices.Contains(touched, s) {
				touched = append(touched, s)
			}
		}
	}
	return touched
}

// WorkingSet is the sum of bytes of the storages that the op touches, scratch left out.
func (g *Graph) WorkingSet(op OpID) Bytes {
	var sum Bytes
	for _, s := range g.Touches(op) {
		sum += g.Storages[s].Bytes
	}
	return sum
}

// LastVersions returns the number of the last version of every storage. For persistent storages it becomes version 0
// of the next iteration.
func (g *Graph) LastVersions() []int {
	last := make([]int, len(g.Storages))
	for _, t := range g.Tensors {
		last[t.Storage] = max(last[t.Storage], t.Version)
	}
	return last
}

// LastTouches returns per storage the last op that touches it.
func (g *Graph) LastTouches() []OpID {
	last := slices.Repeat([]OpID{NoOp}, len(g.Storages))
	for i := range g.Ops {
		for _, ids := range [2][]TensorID{g.Ops[i].Inputs, g.Ops[i].Outputs} {
			for _, t := range ids {
				last[g.Tensors[t].Storage] = OpID(i)
			}
		}
	}
	return last
}

// Shapes returns the shapes of the tensors.
func (g *Graph) Shapes(ids []TensorID) []Shape {
	shapes := make([]Shape, len(ids))
	for i, t := range ids {
		shapes[i] = g.Tensors[t].Shape
	}
	return shapes
}

// dtypes returns the types of the tensors.
func (g *Graph) dtypes(ids []TensorID) []DType {
	types := make([]DType, len(ids))
	for i, t := range ids {
		types[i] = g.Tensors[t].DType
	}
	return types
}

// sizes returns the bytes of the tensors.
func (g *Graph) sizes(ids []TensorID) []Bytes {
	sizes := make([]Bytes, len(ids))
	for i, t := range ids {
		sizes[i] = g.Tensors[t].Bytes()
	}
	return sizes
}

// Cost returns the op's arithmetic and memory traffic by the rule of its kind.
func (g *Graph) Cost(op OpID) Cost {
	o := &g.Ops[op]
	k := kinds[o.Kind]
	shapes := g.Shapes(o.Inputs)
	c := Cost{
		FLOPs: k.flops(o.Attrs, shapes, g.Shapes(o.Outputs)),
		Bytes: k.moves(o.Attrs, shapes, g.sizes(o.Inputs), g.sizes(o.Outputs)),
	}
	if o.Kind == AllReduce {
		c.Network, c.Hops = g.Tensors[o.Inputs[0]].Bytes(), 2*(o.Attrs.Replicas-1)
	}
	return c
}

// DTypes returns the types of the elements of all storages.
func (g *Graph) DTypes() []DType {
	types := make([]DType, len(g.Storages))
	for _, t := range g.Tensors {
		types[t.Storage] = t.DType
	}
	return types
}

// Parameters is the number of trained elements.
func (g *Graph) Parameters() int64 {
	var n int64
	types := g.DTypes()
	for _, s := range g.Storages {
		if s.Role == Parameter {
			n += int64(s.Bytes / types[s.ID].Bytes())
		}
	}
	return n
}

// Parts returns, of each thing that persistent storages are parts of, those in the order in which they lie in it; the
// things in the order of their first parts.
func (g *Graph) Parts() [][]StorageID {
	var all [][]StorageID
	places := make(map[string]int)
	for i := range g.Storages {
		s := &g.Storages[i]
		if s.PartOf == "" {
			continue
		}
		place, ok := places[s.PartOf]
		if !ok {
			place = len(all)
			places[s.PartOf], all = place, append(all, nil)
		}
		all[place] = append(all[place], s.ID)
	}
	for _, parts := range all {
		slices.SortStableFunc(parts, func(a, b StorageID) int {
			return cmp.Compare(g.Storages[a].Begin, g.Storages[b].Begin)
		})
	}
	return all
}

// OutputStorage returns the first storage whose role is output, or -1.
func (g *Graph) OutputStorage() StorageID {
	return StorageID(slices.IndexFunc(g.Storages, func(s Storage) bool { return s.Role == Output }))
}
