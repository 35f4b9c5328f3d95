package graph

import (
	"fmt"
	"slices"
)

// Builder appends ops to a graph and works out the tensors they make. The first error stays and is returned by Graph;
// after it, further calls do nothing of use.
type Builder struct {
	g   Graph
	err error

	phase   Phase
	layer   string
	forward OpID
}

// NewBuilder starts an empty graph in the forward phase.
func NewBuilder(name string) *Builder {
	return &Builder{g: Graph{Name: name}, phase: Forward, forward: NoOp}
}

// Graph returns the graph built so far, or the first error. It does not validate.
func (b *Builder) Graph() (*Graph, error) {
	if b.err != nil {
		return nil, fmt.Errorf("build %s: %w", b.g.Name, b.err)
	}
	b.g.Ops, b.g.Tensors, b.g.Storages = trimmed(b.g.Ops), trimmed(b.g.Tensors), trimmed(b.g.Storages)
	return &b.g, nil
}

// Peek returns the graph as it stands, for code that appends to it by what is already there. It is read only.
func (b *Builder) Peek() *Graph { return &b.g }

// Err returns the first error.
func (b *Builder) Err() error { return b.err }

// Fail records an error unless there is one.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// SetPhase, SetLayer and SetForward mark the ops appended from here on.
func (b *Builder) SetPhase(p Phase)       { b.phase = p }
func (b *Builder) SetLayer(l string)      { b.layer = l }
func (b *Builder) SetForward(op OpID)     { b.forward = op }
func (b *Builder) Shape(t TensorID) Shape { return b.g.Tensors[t].Shape }

// Input adds a storage that the loader fills in every iteration, and returns its only version.
func (b *Builder) Input(name string, holds Holds, dtype DType, shape Shape) TensorID {
	s := b.storage(name, Input, Bytes(shape.Elements())*dtype.Bytes())
	b.g.Storages[s].Holds = holds
	return b.tensor(name, s, 0, 0, shape, dtype)
}

// Persistent adds a storage that keeps its content between iterations, and returns its version 0. Elements are float32.
func (b *Builder) Persistent(name string, role Role, shape Shape, init Init) TensorID {
	if !role.Persistent() {
		b.Fail(fmt.Errorf("storage %s: role %s is not persistent", name, role))
	}
	s := b.storage(name, role, shape.Bytes())
	b.g.Storages[s].Init = &init
	return b.tensor(name, s, 0, 0, shape, Float32)
}

// View adds a tensor that shows t's content with another shape, starting offset bytes into t.
func (b *Builder) View(name string, t TensorID, offset Bytes, shape Shape) TensorID {
	of := b.g.Tensors[t]
	if size := Bytes(shape.Elements()) * of.DType.Bytes(); offset < 0 || offset+size > of.Bytes() {
		b.Fail(fmt.Errorf("view %s: bytes %d to %d are outside of %s (%d bytes)", name, offset, offset+size, of.Name,
			of.Bytes()))
	}
	return b.tensor(name, of.Storage, of.Version, of.Offset+offset, shape, of.DType)
}

// Op appends an op and returns its outputs. Fresh outputs become new storages named after the op, gradients in the
// backward phase and activations elsewhere; outputs in place become the next version of the input's storage.
func (b *Builder) Op(name string, kind Kind, attrs Attrs, inputs ...TensorID) []TensorID {
	var types []DType
	shapes, err := Infer(kind, attrs, b.g.Shapes(inputs))
	if err == nil {
		types, err = inferTypes(kind, b.g.dtypes(inputs))
	}
	if err != nil {
		b.Fail(fmt.Errorf("op %s: %w", name, err))
		return b.placeholders(kind)
	}
	k := kinds[kind]
	op := Op{ID: OpID(len(b.g.Ops)), Name: name, Kind: kind, Inputs: inputs, Attrs: attrs,
		Phase: b.phase, Layer: b.layer, Forward: b.forward}
	role := Activation
	if b.phase == Backward {
		role = Gradient
	}
	for i, shape := range shapes {
		label := name
		if len(shapes) > 1 {
			label = fmt.Sprintf("%s.%d", name, i)
		}
		if in := k.updated(attrs, i); in != fresh {
			of := b.g.Tensors[inputs[in]]
			op.Outputs = append(op.Outputs, b.tensor(of.Name, of.Storage, of.Version+1, of.Offset, shape, of.DType))
			continue
		}
		op.Outputs = append(op.Outputs,
			b.tensor(label, b.storage(label, role, StorageBytes(shape, types[i])), 0, 0, shape, types[i]))
	}
	b.g.Ops = append(doubled(b.g.Ops), op)
	return op.Outputs
}

// Output declares that the storage behind t must reach the host in every iteration.
func (b *Builder) Output(t TensorID) {
	b.g.Storages[b.g.Tensors[t].Storage].Role = Output
}

func (b *Builder) storage(name string, role Role, size Bytes) StorageID {
	id := StorageID(len(b.g.Storages))
	b.g.Storages = append(doubled(b.g.Storages), Storage{ID: id, Name: name, Role: role, Bytes: size})
	return id
}

func (b *Builder) tensor(name string, s StorageID, version int, offset Bytes, shape Shape, dtype DType) TensorID {
	id := TensorID(len(b.g.Tensors))
	b.g.Tensors = append(doubled(b.g.Tensors), Tensor{ID: id, Name: name, Storage: s, Version: version, Offset: offset,
		Shape: shape, DType: dtype})
	return id
}

// doubled makes room for as many elements again when there is none left: append alone copies a graph of many ops four
// times as often.
func doubled[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	return slices.Grow(s, len(s))
}

// trimmed gives room back that nothing is in.
func trimmed[T any](s []T) []T {
	if spare := cap(s) - len(s); spare > len(s)/8 {
		return slices.Clone(s)
	}
	return s
}

// placeholders keeps callers going after an error: tensors of one element that belong to nothing.
func (b *Builder) placeholders(kind Kind) []TensorID {
	n := 1
	if k := kinds[kind]; k != nil {
		n = len(k.outputs)
	}
	ids := make([]TensorID, n)
	for i := range ids {
		ids[i] = b.tensor("invalid", b.storage("invalid", Activation, ElementBytes), 0, 0, Shape{1}, Float32)
	}
	return ids
}
