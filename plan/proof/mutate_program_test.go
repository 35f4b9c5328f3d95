package proof_test

import (
	"math"
	"slices"

	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// programMutations are mistakes in programs: Check must see them.
var programMutations = []mutation{
	{"missing wait", check, []error{proof.ErrRace}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		at := s.needsIn(i)
		if at < 0 {
			return false
		}
		cmd.Waits = slices.Delete(cmd.Waits, at, at+1)
		return true
	})},
	{"wait for one copy less", check, []error{proof.ErrRace}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		at := s.needsIn(i)
		if at < 0 {
			return false
		}
		cmd.Waits[at].Count--
		return true
	})},
	{"missing wait on the prologue", check, []error{proof.ErrRace}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		at := slices.IndexFunc(cmd.Waits, func(w program.Point) bool { return w.Stream == onEntry })
		if at < 0 {
			return false
		}
		cmd.Waits = slices.Delete(cmd.Waits, at, at+1)
		return true
	})},
	{"wait for one copy of the prologue less", check, []error{proof.ErrRace},
		eachCommand(func(s subject, i int) bool {
			cmd := &s.c.Body.Commands[i]
			at := slices.IndexFunc(cmd.Waits, func(w program.Point) bool { return w.Stream == onEntry })
			if at < 0 {
				return false
			}
			cmd.Waits[at].Count--
			return true
		})},
	{"wait for more than the prologue has", check, []error{proof.ErrWait},
		eachCommand(func(s subject, i int) bool {
			cmd := &s.c.Body.Commands[i]
			at := slices.IndexFunc(cmd.Waits, func(w program.Point) bool { return w.Stream == onEntry })
			if at < 0 {
				return false
			}
			cmd.Waits[at].Count = 1
			return true
		})},
	{"prologue in the order in which nothing is needed", check, []error{proof.ErrRace},
		func(s subject) (bad []subject) {
			b := s.withProgram()
			waits := slices.ContainsFunc(s.c.Body.Commands, func(cmd program.Command) bool {
				return slices.ContainsFunc(cmd.Waits, func(w program.Point) bool {
					return w.Stream == onEntry && w.Count < 0
				})
			})
			if slices.Reverse(b.c.Prologue.Commands); waits {
				bad = append(bad, b)
			}
			return bad
		}},
	{"trigger before the last use", check, []error{proof.ErrRace}, eachCommand(func(s subject, i int) bool {
		return s.c.Body.Commands[i].Kind == program.Out && s.triggerOfMaker(i)
	})},
	{"wait for a later command", check, []error{proof.ErrWait}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if len(cmd.Waits) == 0 {
			return false
		}
		w := &cmd.Waits[0]
		w.Count = s.c.Body.Counts[w.Stream] + 1
		return true
	})},
	{"wait for itself", check, []error{proof.ErrWait}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Waits = append(cmd.Waits, program.Point{Stream: cmd.Stream, Count: s.place(i)})
		return true
	})},
	{"wait on no lane", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Waits = append(cmd.Waits, program.Point{Stream: program.Stream(len(s.c.Streams)), Count: 1})
		return true
	})},
	{"swapped order in a copy lane", check, []error{proof.ErrRace, proof.ErrContent, proof.ErrWait}, swapCopies},
	{"swapped order in the compute lane", check, []error{proof.ErrContent}, swapKernels},
	{"repeated impure op, to the program", check, []error{proof.ErrContent}, eachCommand(func(s subject, i int) bool {
		cmd := s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || s.g.Pure(cmd.Op) {
			return false
		}
		s.insert(i+1, cmd)
		return true
	})},
	{"missing kernel", check, []error{proof.ErrContent, proof.ErrRace}, eachCommand(func(s subject, i int) bool {
		cmd := s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || s.g.Pure(cmd.Op) {
			return false
		}
		for _, w := range s.g.Writes(cmd.Op) {
			if s.g.Storages[w.Storage].Role.Persistent() {
				s.remove(i)
				return true
			}
		}
		return false
	})},
	{"missing Out of an output, to the program", check, []error{proof.ErrContent},
		eachCommand(func(s subject, i int) bool {
			cmd := s.c.Body.Commands[i]
			if cmd.Kind != program.Out || i+1 == len(s.c.Body.Commands) || s.c.Body.Commands[i+1].Kind != program.Read {
				return false
			}
			s.remove(i)
			return true
		})},
	{"output that nobody reads", check, []error{proof.ErrContent}, eachCommand(func(s subject, i int) bool {
		ok := s.c.Body.Commands[i].Kind == program.Read
		s.remove(i)
		return ok
	})},
	{"missing Load", check, []error{proof.ErrContent}, eachCommand(func(s subject, i int) bool {
		cmd := s.c.Body.Commands[i]
		in := slices.ContainsFunc(s.c.Body.Commands, func(c program.Command) bool {
			return c.Kind == program.In && c.Storage == cmd.Storage
		})
		if cmd.Kind != program.Load || !in {
			return false
		}
		s.remove(i)
		return true
	})},
	{"copy of another version", check, []error{proof.ErrContent}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Version++
		return cmd.Kind == program.Out || cmd.Kind == program.In || cmd.Kind == program.Read
	})},
	{"half a copy", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Bytes /= 2
		return cmd.Kind == program.Out || cmd.Kind == program.In
	})},
	{"copy of no storage", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Storage = graph.StorageID(len(s.g.Storages))
		return !cmd.Kind.Executes()
	})},
	{"kernel of no op", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Op = graph.OpID(len(s.g.Ops))
		return cmd.Kind.Executes()
	})},
	{"kernel without an operand", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || len(cmd.Inputs) == 0 {
			return false
		}
		cmd.Inputs = cmd.Inputs[1:]
		return true
	})},
	{"command on no lane", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		s.c.Body.Commands[i].Stream = program.Stream(len(s.c.Streams))
		return true
	})},
	{"wrong address of an input", check, []error{proof.ErrContent, proof.ErrRace, proof.ErrBounds,
		proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || len(cmd.Inputs) == 0 {
			return false
		}
		cmd.Inputs[0].Offset += align
		return true
	})},
	{"wrong address of a result", check, []error{proof.ErrContent, proof.ErrRace, proof.ErrBounds},
		eachCommand(func(s subject, i int) bool {
			cmd := &s.c.Body.Commands[i]
			if !cmd.Kind.Executes() || cmd.Outputs[0] == program.Nowhere || !s.readsFirst(i) {
				return false
			}
			cmd.Outputs[0].Offset -= align
			return true
		})},
	{"operand in the wrong region", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || len(cmd.Inputs) == 0 {
			return false
		}
		cmd.Inputs[0].Region = hostRegion
		return true
	})},
	{"copy from the wrong place on the device", check, []error{proof.ErrContent, proof.ErrRace, proof.ErrBounds},
		eachCommand(func(s subject, i int) bool {
			cmd := &s.c.Body.Commands[i]
			cmd.Device.Offset -= align
			return cmd.Kind == program.Out
		})},
	{"copy from another storage's host slot", check, []error{proof.ErrCommand},
		eachCommand(func(s subject, i int) bool {
			cmd := &s.c.Body.Commands[i]
			cmd.Host.Offset += 4096
			return !cmd.Kind.Executes() && cmd.Kind != program.Poison
		})},
	{"copy of what the plan does not copy out", check, []error{proof.ErrCommand},
		eachCommand(func(s subject, i int) bool {
			slots, _ := program.SlotsOf(s.g, s.p)
			cmd := &s.c.Body.Commands[i]
			other := slices.Index(slots, -1)
			if other < 0 || cmd.Kind != program.Out {
				return false
			}
			cmd.Storage, cmd.Bytes = graph.StorageID(other), s.g.Storages[other].Bytes
			cmd.Host.Offset = -1
			return true
		})},
	{"wrong counts", check, []error{proof.ErrCommand}, func(s subject) (bad []subject) {
		for l := range s.c.Streams {
			b := s.withProgram()
			b.c.Body.Counts[l]++
			c := s.withProgram()
			c.c.Prologue.Counts[l]--
			bad = append(bad, b, c)
		}
		return bad
	}},
	{"smaller arena", check, []error{proof.ErrBounds}, func(s subject) []subject {
		b := s.withProgram()
		b.c.Arena -= align
		return []subject{b}
	}},
	{"host region of another size", check, []error{proof.ErrBounds}, func(s subject) []subject {
		none, less, more := s.withProgram(), s.withProgram(), s.withProgram()
		none.c.Host, less.c.Host, more.c.Host = 0, s.c.Host-1, s.c.Host+1
		return []subject{none, less, more}
	}},
	{"prologue without a copy", check, []error{proof.ErrContent, proof.ErrRace}, func(s subject) (bad []subject) {
		for i, cmd := range s.c.Prologue.Commands {
			if b := s.withProgram(); s.usedAtFirst(cmd.Storage) {
				b.c.Prologue.Commands = slices.Delete(b.c.Prologue.Commands, i, i+1)
				b.c.Prologue.Counts[cmd.Stream]--
				bad = append(bad, b)
			}
		}
		return bad
	}},
	{"epilogue without a copy", check, []error{proof.ErrContent}, func(s subject) (bad []subject) {
		for i, cmd := range s.c.Epilogue.Commands {
			b := s.withProgram()
			b.c.Epilogue.Commands = slices.Delete(b.c.Epilogue.Commands, i, i+1)
			b.c.Epilogue.Counts[cmd.Stream]--
			bad = append(bad, b)
		}
		return bad
	}},
	{"load of what is no input", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if cmd.Kind != program.Out || s.g.Storages[cmd.Storage].Role == graph.Input {
			return false
		}
		cmd.Device, cmd.Version = program.Address{}, 0
		s.turn(i, program.Load, onHost)
		return true
	})},
	{"load of a later version", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Version = 1
		return cmd.Kind == program.Load
	})},
	{"read of what is no output", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := s.c.Body.Commands[i]
		if cmd.Kind != program.Out || s.g.Storages[cmd.Storage].Role == graph.Output {
			return false
		}
		wait := program.Point{Stream: onCopyOut, Count: s.place(i)}
		s.insert(i+1, program.Command{Kind: program.Read, Stream: onHost, Slot: cmd.Slot, Waits: []program.Point{wait},
			Storage: cmd.Storage, Version: cmd.Version, Host: cmd.Host, Bytes: cmd.Bytes})
		return true
	})},
	{"command on another lane", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := s.c.Body.Commands[i]
		s.turn(i, cmd.Kind, (cmd.Stream+1)%program.Stream(len(s.c.Streams)))
		return true
	})},
	{"command of another section", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := s.c.Body.Commands[i]
		cmd.Waits = nil
		section := &s.c.Prologue
		if cmd.Kind == program.In {
			section = &s.c.Epilogue
		}
		section.Commands = append(section.Commands, cmd)
		section.Counts[cmd.Stream]++
		return true
	})},
	{"stream on no unit", check, []error{proof.ErrCommand}, func(s subject) (bad []subject) {
		for l := range s.c.Streams {
			b := s.withProgram()
			b.c.Streams = slices.Clone(b.c.Streams)
			b.c.Streams[l] = program.Units
			bad = append(bad, b)
		}
		return bad
	}},
	{"streams on one another's units", check, []error{proof.ErrCommand}, func(s subject) []subject {
		b := s.withProgram()
		b.c.Streams = slices.Clone(b.c.Streams)
		slices.Reverse(b.c.Streams)
		return []subject{b}
	}},
	{"all-reduces in two streams", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		if s.c.Body.Commands[i].Kind != program.Reduce {
			return false
		}
		s.c.Streams = append(slices.Clone(s.c.Streams), program.Network)
		s.c.Body.Commands[i].Stream = onNetwork + 1
		return true
	})},
	{"an all-reduce as a kernel, or a kernel as one", check, []error{proof.ErrCommand},
		eachCommand(func(s subject, i int) bool {
			c := &s.c.Body.Commands[i]
			switch {
			case c.Kind == program.Reduce:
				c.Kind, c.Stream = program.Kernel, onCompute
			case c.Kind == program.Kernel && len(s.c.Streams) > int(onNetwork):
				c.Kind, c.Stream = program.Reduce, onNetwork
			default:
				return false
			}
			return true
		})},
	{"an all-reduce that does not wait for its gradient", check, []error{proof.ErrRace},
		eachCommand(func(s subject, i int) bool {
			c := &s.c.Body.Commands[i]
			waited := c.Kind == program.Reduce && len(c.Waits) > 0
			c.Waits = nil
			return waited
		})},
	{"an update that does not wait for the network", check, []error{proof.ErrRace},
		eachCommand(func(s subject, i int) bool {
			c := &s.c.Body.Commands[i]
			n := len(c.Waits)
			c.Waits = slices.DeleteFunc(c.Waits, func(w program.Point) bool { return w.Stream == onNetwork })
			return len(c.Waits) < n
		})},
	{"a stream too few", check, []error{proof.ErrCommand}, func(s subject) []subject {
		b := s.withProgram()
		b.c.Streams = b.c.Streams[:len(b.c.Streams)-1]
		return []subject{b}
	}},
	{"two regions of one memory, or none", check, []error{proof.ErrBounds}, func(s subject) (bad []subject) {
		for _, regions := range [][]program.Memory{nil, {program.Arena}, {program.Arena, program.Arena},
			{program.HostMemory, program.HostMemory},
			{program.Arena, program.HostMemory, program.Arena}, {program.Arena, program.Memories}} {
			b := s.withProgram()
			b.c.Regions = regions
			bad = append(bad, b)
		}
		return bad
	}},
	{"regions of one another's memory", check, []error{proof.ErrCommand}, func(s subject) []subject {
		b := s.withProgram()
		b.c.Regions = slices.Clone(b.c.Regions)
		b.c.Regions[0], b.c.Regions[1] = b.c.Regions[1], b.c.Regions[0]
		return []subject{b}
	}},
	{"another graph", check, []error{proof.ErrCommand, proof.ErrPlan, proof.ErrContent, proof.ErrBounds},
		func(s subject) (bad []subject) {
			for _, other := range []*graph.Graph{devicetest.Tiny(), devicetest.Rewritten()} {
				b := s.withProgram()
				b.g = other
				bad = append(bad, b)
			}
			return bad
		}},
	{"command of no kind", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		s.c.Body.Commands[i].Kind = program.Reduce + 1
		return true
	})},
	{"update in another place", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || s.g.Pure(cmd.Op) {
			return false
		}
		cmd.Outputs[0].Offset += align
		return true
	})},
	{"update that is not wanted", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || s.g.Pure(cmd.Op) {
			return false
		}
		cmd.Outputs[0] = program.Nowhere
		return true
	})},
	{"kernel that makes nothing", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || !s.g.Pure(cmd.Op) {
			return false
		}
		for k := range cmd.Outputs {
			cmd.Outputs[k] = program.Nowhere
		}
		return true
	})},
	{"kernel that makes less than its step", check, []error{proof.ErrPlan}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if !cmd.Kind.Executes() || !s.g.Pure(cmd.Op) || cmd.Outputs[0] == program.Nowhere {
			return false
		}
		cmd.Outputs[0] = program.Nowhere
		return slices.ContainsFunc(cmd.Outputs, func(a program.Address) bool { return a != program.Nowhere })
	})},
	{"less scratch", check, []error{proof.ErrPlan}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.ScratchBytes -= 4
		return cmd.Kind.Executes() && cmd.ScratchBytes > 0
	})},
	{"negative scratch", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.ScratchBytes = -4
		return cmd.Kind.Executes()
	})},
	{"scratch of no bytes somewhere", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Scratch = program.Address{Region: 2}
		return cmd.Kind.Executes() && cmd.ScratchBytes == 0
	})},
	{"scratch nowhere", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Scratch = program.Nowhere
		return cmd.Kind.Executes() && cmd.ScratchBytes > 0
	})},
	{"scratch without end", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Scratch, cmd.ScratchBytes = program.Address{Offset: align}, math.MaxInt64
		return cmd.Kind.Executes()
	})},
	{"another slot", check, []error{proof.ErrPlan}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Slot--
		return cmd.Kind.Executes() && cmd.Slot >= 0
	})},
	{"slot that is none", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if cmd.Slot = len(s.p.Steps); i%2 == 0 {
			cmd.Slot = -2
		}
		return true
	})},
	{"kernel before slot 0", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Slot = -1
		return cmd.Kind.Executes()
	})},
	{"another variant", check, []error{proof.ErrPlan}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Variant += "x"
		return cmd.Kind.Executes()
	})},
	{"another plan", check, []error{proof.ErrPlan}, func(s subject) (bad []subject) {
		none := s.withProgram()
		none.c.Plan = nil
		longer := s.withProgram()
		p := *s.p
		p.Steps = append(slices.Clone(p.Steps), p.Steps[0])
		longer.c.Plan = &p
		return []subject{none, longer}
	}},
	{"address that wraps", check, []error{proof.ErrBounds}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		const top = math.MaxInt64 / align * align
		switch cmd.Kind {
		case program.Kernel, program.Reduce:
			if len(cmd.Inputs) == 0 || !s.g.Pure(cmd.Op) {
				return false
			}
			cmd.Inputs[0].Offset = top + s.g.Tensors[s.g.Ops[cmd.Op].Inputs[0]].Offset
			return cmd.Inputs[0].Offset > 0
		case program.Out, program.In, program.Poison:
			cmd.Device.Offset = top
			return true
		}
		return false
	})},
	{"scratch that wraps", check, []error{proof.ErrBounds}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Scratch.Offset = math.MaxInt64 / align * align
		return cmd.ScratchBytes > 0
	})},
	{"arena without end", check, []error{proof.ErrBounds}, func(s subject) []subject {
		arena, host, none, negative := s.withProgram(), s.withProgram(), s.withProgram(), s.withProgram()
		arena.c.Arena, host.c.Host = graph.MaxTotal+align, graph.MaxTotal+1
		none.c.Arena, negative.c.Host = -align, -1
		return []subject{arena, host, none, negative}
	}},
	{"place that is not aligned", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		switch {
		case cmd.Kind == program.Out || cmd.Kind == program.In || cmd.Kind == program.Poison:
			cmd.Device.Offset += align / 2
		case cmd.Kind.Executes() && cmd.ScratchBytes > 0:
			cmd.Scratch.Offset += 4
		case cmd.Kind.Executes() && len(cmd.Inputs) > 0 && i%2 == 0:
			cmd.Inputs[0].Offset += 4
		case cmd.Kind.Executes():
			if cmd.Outputs[0] == program.Nowhere {
				return false
			}
			cmd.Outputs[0].Offset += 4
		default:
			return false
		}
		return true
	})},
	{"region that is not aligned", check, []error{proof.ErrBounds}, func(s subject) []subject {
		odd, none := s.withProgram(), s.withProgram()
		odd.c.Arena, none.c.Align = odd.c.Arena+4, 0
		return []subject{odd, none}
	}},
	{"hold of more than an iteration", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		cmd.Hold = s.p.Length() + 1
		return cmd.Kind == program.Out || cmd.Kind == program.In
	})},
	{"due of more than an iteration, or negative", check, []error{proof.ErrCommand}, func(s subject) (bad []subject) {
		for i := range s.c.Prologue.Commands {
			late, early := s.withProgram(), s.withProgram()
			late.c.Prologue.Commands[i].Due = s.p.Length() + 1
			early.c.Prologue.Commands[i].Due = -1
			bad = append(bad, late, early)
		}
		return bad
	}},
	{"due of what is not the prologue's", check, []error{proof.ErrCommand}, eachCommand(func(s subject, i int) bool {
		s.c.Body.Commands[i].Due = 1
		return s.p.Length() > 0
	})},
	{"hold of what is no copy, or negative", check, []error{proof.ErrCommand},
		eachCommand(func(s subject, i int) bool {
			cmd := &s.c.Body.Commands[i]
			if cmd.Hold = 1; cmd.Kind == program.Out || cmd.Kind == program.In {
				cmd.Hold = -1
			}
			return s.p.Length() > 0
		})},
	{"wait that wraps", check, []error{proof.ErrWait}, eachCommand(func(s subject, i int) bool {
		cmd := &s.c.Body.Commands[i]
		if len(cmd.Waits) == 0 {
			return false
		}
		cmd.Waits[0].Count = math.MaxInt
		return true
	})},
	{"copied in again, a little further", check, []error{proof.ErrContent}, eachCommand(func(s subject, i int) bool {
		cmd := s.c.Body.Commands[i]
		use := s.nextTouch(cmd.Storage, cmd.Slot)
		if cmd.Kind != program.In || cmd.Bytes <= align || use == len(s.p.Steps) || cmd.Device.Offset+align+
			cmd.Bytes > s.c.Arena {
			return false
		}
		for _, m := range s.p.Moves {
			if m.Storage == cmd.Storage && m.Kind != plan.Out && cmd.Slot < m.After && m.After < use {
				return false // nobody reads it here
			}
		}
		cmd.Waits = []program.Point{{Stream: onCopyIn, Count: s.place(i)}}
		cmd.Device.Offset += align
		s.insert(i+1, cmd)
		return true
	})},
	{"larger storage, to the program", check, []error{proof.ErrCommand, proof.ErrBounds},
		func(s subject) (bad []subject) {
			for i, b := range larger(s) {
				if s.nextTouch(graph.StorageID(i), -1) < len(s.p.Steps) {
					bad = append(bad, b)
				}
			}
			return bad
		}},
}

// eachCommand returns a mutation that changes one command of the body at a time.
func eachCommand(change func(s subject, i int) bool) func(subject) []subject {
	return func(s subject) (bad []subject) {
		for i := range s.c.Body.Commands {
			if b := s.withProgram(); change(b, i) {
				bad = append(bad, b)
			}
		}
		return bad
	}
}

// turn makes a command of the body one of another kind or lane.
func (s subject) turn(i int, kind program.Kind, lane program.Stream) {
	cmd := &s.c.Body.Commands[i]
	s.c.Body.Counts[cmd.Stream]--
	s.c.Body.Counts[lane]++
	cmd.Kind, cmd.Stream = kind, lane
}

func (s subject) insert(i int, cmd program.Command) {
	s.c.Body.Commands = slices.Insert(s.c.Body.Commands, i, cmd)
	s.c.Body.Counts[cmd.Stream]++
}

// remove takes a command out of the body and lets every wait name the command that it named before, or the one before
// that if it is the removed one.
func (s subject) remove(i int) {
	body := &s.c.Body
	lane, at := body.Commands[i].Stream, s.place(i)
	for k := range body.Commands {
		for j := range body.Commands[k].Waits {
			w := &body.Commands[k].Waits[j]
			if w.Stream == lane && w.Count >= at {
				w.Count--
			} else if w.Stream == lane && w.Count <= 0 && w.Count+body.Counts[lane] < at {
				w.Count++
			}
		}
	}
	body.Counts[lane]--
	body.Commands = slices.Delete(body.Commands, i, i+1)
}

// place returns the count of a command in its lane.
func (s subject) place(i int) int {
	n := 0
	for _, c := range s.c.Body.Commands[:i+1] {
		if c.Stream == s.c.Body.Commands[i].Stream {
			n++
		}
	}
	return n
}

// nth returns the index of the n-th command of a lane of the body, or -1.
func (s subject) nth(l program.Stream, n int) int {
	for i, c := range s.c.Body.Commands {
		if c.Stream == l {
			if n--; n == 0 {
				return i
			}
		}
	}
	return -1
}

// needsIn returns which wait of a kernel is for the copy in of one of its inputs, or -1.
func (s subject) needsIn(i int) int {
	cmd := s.c.Body.Commands[i]
	for at, w := range cmd.Waits {
		if n := s.nth(w.Stream, w.Count); cmd.Kind.Executes() && w.Stream == onCopyIn && n >= 0 {
			for _, r := range s.g.Reads(cmd.Op) {
				if r.Storage == s.c.Body.Commands[n].Storage {
					return at
				}
			}
		}
	}
	return -1
}

// triggerOfMaker lowers the wait of a copy out for the kernel that makes its storage, if it has one.
func (s subject) triggerOfMaker(i int) bool {
	cmd := &s.c.Body.Commands[i]
	for at, w := range cmd.Waits {
		if n := s.nth(w.Stream, w.Count); w.Stream == onCompute && n >= 0 &&
			s.c.Body.Commands[n].Kind.Executes() {
			if s.writes(s.c.Body.Commands[n].Slot, cmd.Storage) {
				cmd.Waits[at].Count--
				return true
			}
		}
	}
	return false
}

// readsFirst reports whether a kernel is the first execution of its op, and the next step that touches its first output
// reads it where the kernel left it.
func (s subject) readsFirst(i int) bool {
	cmd := s.c.Body.Commands[i]
	for _, c := range s.c.Body.Commands[:i] {
		if c.Kind.Executes() && c.Op == cmd.Op {
			return false
		}
	}
	next := s.nextTouch(s.g.Tensors[s.g.Ops[cmd.Op].Outputs[0]].Storage, cmd.Slot)
	return slices.ContainsFunc(s.c.Body.Commands, func(c program.Command) bool {
		return c.Kind.Executes() && c.Slot == next && slices.Contains(c.Inputs, cmd.Outputs[0])
	})
}

// usedAtFirst reports whether a storage of Entry is read before it is dropped.
func (s subject) usedAtFirst(storage graph.StorageID) bool {
	use := s.nextTouch(storage, -1)
	for _, m := range s.p.Moves {
		if m.Storage == storage && m.After < use {
			return m.Kind == plan.Out
		}
	}
	return use < len(s.p.Steps)
}

// swapCopies swaps a copy in that a kernel waits for with the next one.
func swapCopies(s subject) (bad []subject) {
	for i := range s.c.Body.Commands {
		at := s.needsIn(i)
		if at < 0 {
			continue
		}
		n := s.c.Body.Commands[i].Waits[at].Count
		a, b := s.nth(onCopyIn, n), s.nth(onCopyIn, n+1)
		if m := s.withProgram(); b >= 0 {
			m.c.Body.Commands[a], m.c.Body.Commands[b] = m.c.Body.Commands[b], m.c.Body.Commands[a]
			bad = append(bad, m)
		}
	}
	return bad
}

// swapKernels swaps neighbours of which the second reads what the first makes.
func swapKernels(s subject) (bad []subject) {
	for i, cmd := range s.c.Body.Commands[1:] {
		before := s.c.Body.Commands[i]
		if before.Kind != program.Kernel || cmd.Kind != program.Kernel {
			continue
		}
		for _, r := range s.g.Reads(cmd.Op) {
			if b := s.withProgram(); s.writes(before.Slot, r.Storage) {
				b.c.Body.Commands[i], b.c.Body.Commands[i+1] = cmd, before
				bad = append(bad, b)
				break
			}
		}
	}
	return bad
}
