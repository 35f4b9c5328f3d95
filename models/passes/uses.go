package passes

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// uses says who reads and makes what in a graph that is being rewritten.
type uses struct {
	g       *graph.Graph
	tensors [][]graph.TensorID // per storage
	readers [][]graph.OpID     // per tensor, ascending
	makers  []graph.OpID       // per tensor: the op that it is an output of, or NoOp
	last    []int              // per storage: its last version
}

func usesOf(g *graph.Graph) *uses {
	u := &uses{g: g, tensors: make([][]graph.TensorID, len(g.Storages)), readers: make([][]graph.OpID, len(g.Tensors)),
		makers: slices.Repeat([]graph.OpID{graph.NoOp}, len(g.Tensors)), last: g.LastVersions()}
	for _, t := range g.Tensors {
		u.tensors[t.Storage] = append(u.tensors[t.Storage], t.ID)
	}
	for _, op := range g.Ops {
		for _, t := range op.Inputs {
			u.readers[t] = append(u.readers[t], op.ID)
		}
		for _, t := range op.Outputs {
			u.makers[t] = op.ID
		}
	}
	return u
}

// maker returns the op that makes the content that a tensor shows, or NoOp.
func (u *uses) maker(t graph.TensorID) graph.OpID {
	v := u.g.Version(t)
	for _, of := range u.tensors[v.Storage] {
		if u.g.Tensors[of].Version == v.Number && u.makers[of] != graph.NoOp {
			return u.makers[of]
		}
	}
	return graph.NoOp
}

// lastReader returns the last op that reads the content that a tensor shows, or NoOp.
func (u *uses) lastReader(t graph.TensorID) graph.OpID {
	v, last := u.g.Version(t), graph.NoOp
	for _, of := range u.tensors[v.Storage] {
		if n := len(u.readers[of]); n > 0 && u.g.Tensors[of].Version == v.Number {
			last = max(last, u.readers[of][n-1])
		}
	}
	return last
}

// keepsOperand says why the first output of an op, fresh so far, may not be made in place of an operand; "" if it
// may.
func (u *uses) keepsOperand(op *graph.Op, operand int) string {
	g := u.g
	x, y := g.Tensors[op.Inputs[operand]], g.Tensors[op.Outputs[0]]
	of, into := &g.Storages[x.Storage], &g.Storages[y.Storage]
	switch last := u.lastReader(x.ID); {
	case !forgotten(of.Role):
		return fmt.Sprintf("%s is of role %s", x.Name, of.Role)
	case into.Role != of.Role: // activations are made again, and gradients are not to be among their versions
		return fmt.Sprintf("%s is of role %s, %s of role %s", x.Name, of.Role, y.Name, into.Role)
	case x.Bytes() != of.Bytes:
		return fmt.Sprintf("%s is a part of %s", x.Name, of.Name)
	case x.Version != u.last[of.ID]:
		return fmt.Sprintf("%s is updated by another op", x.Name)
	case last != op.ID:
		return fmt.Sprintf("%s reads %s later", g.Ops[last].Name, x.Name)
	}
	for i, other := range op.Inputs {
		if i != operand && g.Tensors[other].Storage == of.ID {
			return fmt.Sprintf("it reads %s twice", of.Name)
		}
	}
	return ""
}

// forgotten reports whether storages of a role are gone after an iteration, and nobody outside of it sees them.
func forgotten(role graph.Role) bool { return role == graph.Activation || role == graph.Gradient }

// overwrite makes the first output of an op in place of an operand: all versions of its storage become the next ones
// of the operand's.
func (u *uses) overwrite(op *graph.Op, operand int) {
	x, y := u.g.Tensors[op.Inputs[operand]], u.g.Tensors[op.Outputs[0]]
	for _, t := range u.tensors[y.Storage] {
		of := &u.g.Tensors[t]
		of.Storage, of.Version = x.Storage, of.Version+x.Version+1
	}
	u.last[x.Storage] += u.last[y.Storage] + 1
	u.tensors[x.Storage] = append(u.tensors[x.Storage], u.tensors[y.Storage]...)
	u.tensors[y.Storage] = nil
	op.Attrs.InPlace = 1 + operand
}
