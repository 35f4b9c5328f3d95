package compile

import (
	"tensile/graph"
	"tensile/plan/program"
)

// NoStorage stands for scratch, and for bytes that are filled with NaN.
const NoStorage graph.StorageID = -1

// arenaUse is one access of a command to the arena: to a whole storage, or to scratch.
type arenaUse struct {
	storage      graph.StorageID // NoStorage: scratch, or bytes that are filled with NaN
	offset, size graph.Bytes
	write        bool
}

// eachUse calls do for every access to the arena that a command of a proven program makes, reads first. Accesses to no
// bytes are left out. The proof of groups has a walk of its own, so that a mistake in either shows.
func eachUse(g *graph.Graph, cmd *program.Command, do func(arenaUse)) {
	use := func(storage graph.StorageID, offset, size graph.Bytes, write bool) {
		if size > 0 {
			do(arenaUse{storage, offset, size, write})
		}
	}
	operand := func(t graph.TensorID, a program.Address, write bool) {
		tensor := &g.Tensors[t]
		use(tensor.Storage, a.Offset-tensor.Offset, g.Storages[tensor.Storage].Bytes, write)
	}
	switch cmd.Kind {
	case program.Kernel, program.Reduce:
		op := &g.Ops[cmd.Op]
		for i, t := range op.Inputs {
			operand(t, cmd.Inputs[i], false)
		}
		for i, t := range op.Outputs {
			if cmd.Outputs[i] != program.Nowhere {
				operand(t, cmd.Outputs[i], true)
			}
		}
		use(NoStorage, cmd.Scratch.Offset, cmd.ScratchBytes, true)
	case program.Out, program.Save:
		use(cmd.Storage, cmd.Device.Offset, cmd.Bytes, false)
	case program.In:
		use(cmd.Storage, cmd.Device.Offset, cmd.Bytes, true)
	case program.Poison:
		use(NoStorage, cmd.Device.Offset, cmd.Bytes, true)
	}
}
