package proof_test

import (
	"slices"

	"tensile/graph"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// snapshotMutations are mistakes in snapshot sections: Check must see them.
var snapshotMutations = []mutation{
	{"overwritten before it is saved", check, []error{proof.ErrRace}, eachOfSnapshot(func(s subject, i int) bool {
		return s.unawaited(i, program.Save)
	})},
	{"slot overwritten before it is kept", check, []error{proof.ErrRace}, eachOfSnapshot(func(s subject, i int) bool {
		return s.unawaited(i, program.Keep)
	})},
	{"saved before it is made", check, []error{proof.ErrRace}, eachOfSnapshot(func(s subject, i int) bool {
		cmd := &s.c.Snapshot.Commands[i]
		if cmd.Kind != program.Save || len(cmd.Waits) == 0 {
			return false
		}
		cmd.Waits = nil
		return true
	})},
	{"kept before it is there", check, []error{proof.ErrRace}, eachOfSnapshot(func(s subject, i int) bool {
		cmd := &s.c.Snapshot.Commands[i]
		if cmd.Kind != program.Keep || len(cmd.Waits) == 0 {
			return false
		}
		cmd.Waits = nil
		return true
	})},
	{"save after the update", check, []error{proof.ErrContent, proof.ErrWait}, moveOfSnapshot(program.Save)},
	{"keep after the copy out", check, []error{proof.ErrContent, proof.ErrWait}, moveOfSnapshot(program.Keep)},
	{"a storage that is left out of the snapshot", check, []error{proof.ErrContent, proof.ErrRace},
		eachOfSnapshot(func(s subject, i int) bool {
			cmd := s.c.Snapshot.Commands[i]
			if cmd.Kind != program.Save && cmd.Kind != program.Keep {
				return false
			}
			s.c.Snapshot.Commands = slices.Delete(s.c.Snapshot.Commands, i, i+1)
			s.c.Snapshot.Counts[cmd.Stream]--
			s.waitForLess(cmd.Stream)
			return true
		})},
	{"snapshot of another version", check, []error{proof.ErrCommand}, eachOfSnapshot(func(s subject, i int) bool {
		s.c.Snapshot.Commands[i].Version++
		return s.copiesState(i)
	})},
	{"snapshot to another storage's place", check, []error{proof.ErrCommand},
		eachOfSnapshot(func(s subject, i int) bool {
			s.c.Snapshot.Commands[i].Snapshot.Offset += 256
			return s.copiesState(i)
		})},
	{"snapshot to the host slots", check, []error{proof.ErrCommand}, eachOfSnapshot(func(s subject, i int) bool {
		s.c.Snapshot.Commands[i].Snapshot.Region = hostRegion
		return s.copiesState(i)
	})},
	{"kept from another storage's slot", check, []error{proof.ErrCommand}, eachOfSnapshot(func(s subject,
		i int) bool {
		s.c.Snapshot.Commands[i].Host.Offset += 4096
		return s.c.Snapshot.Commands[i].Kind == program.Keep
	})},
	{"saved from another place", check, []error{proof.ErrContent, proof.ErrRace, proof.ErrBounds},
		eachOfSnapshot(func(s subject, i int) bool {
			s.c.Snapshot.Commands[i].Device.Offset += align
			return s.c.Snapshot.Commands[i].Kind == program.Save
		})},
	{"kept from a stale slot", check, []error{proof.ErrContent, proof.ErrRace}, eachOfSnapshot(func(s subject,
		i int) bool {
		cmd := &s.c.Snapshot.Commands[i]
		if cmd.Kind != program.Save || s.g.LastVersions()[cmd.Storage] == 0 {
			return false
		}
		hosts, _ := program.HostSlots(s.g)
		s.c.Snapshot.Counts[onCopyOut]--
		s.c.Snapshot.Counts[onHost]++
		cmd.Kind, cmd.Stream, cmd.Waits, cmd.Device = program.Keep, onHost, nil, program.Address{}
		cmd.Host = program.Address{Region: hostRegion, Offset: hosts[cmd.Storage]}
		s.waitForLess(onCopyOut)
		return true
	})},
	{"half a save", check, []error{proof.ErrCommand}, eachOfSnapshot(func(s subject, i int) bool {
		s.c.Snapshot.Commands[i].Bytes /= 2
		return s.copiesState(i)
	})},
	{"snapshot of what does not persist", check, []error{proof.ErrCommand}, eachOfSnapshot(func(s subject,
		i int) bool {
		cmd := &s.c.Snapshot.Commands[i]
		if cmd.Kind != program.Load {
			return false
		}
		s.c.Snapshot.Commands[i].Kind = program.Keep
		return true
	})},
	{"held save", check, []error{proof.ErrCommand}, eachOfSnapshot(func(s subject, i int) bool {
		s.c.Snapshot.Commands[i].Hold = 1
		return s.copiesState(i)
	})},
	{"save in a body", check, []error{proof.ErrCommand, proof.ErrContent}, func(s subject) (bad []subject) {
		for _, cmd := range s.c.Snapshot.Commands {
			if cmd.Kind == program.Save || cmd.Kind == program.Keep {
				b := s.withProgram()
				cmd.Waits = nil
				b.c.Body.Commands = slices.Insert(b.c.Body.Commands, 0, cmd)
				b.c.Body.Counts[cmd.Stream]++
				bad = append(bad, b)
			}
		}
		return bad
	}},
	{"snapshot region of another size", check, []error{proof.ErrBounds}, func(s subject) []subject {
		if s.c.Saved == 0 {
			return nil
		}
		less, none, more, large := s.withProgram(), s.withProgram(), s.withProgram(), s.withProgram()
		less.c.Saved, more.c.Saved = s.c.Saved-256, s.c.Saved+1
		none.c.Saved, large.c.Saved = -1, graph.MaxTotal+1
		return []subject{less, none, more, large}
	}},
	{"no snapshot region", check, []error{proof.ErrBounds}, func(s subject) []subject {
		b, c := s.withProgram(), s.withProgram()
		if s.c.Saved == 0 {
			b.c.Regions = append(slices.Clone(b.c.Regions), program.SnapshotMemory)
			return []subject{b}
		}
		b.c.Regions = b.c.Regions[:2]
		c.c.Regions = []program.Memory{program.Arena, program.HostMemory, program.HostMemory}
		return []subject{b, c}
	}},
	{"snapshot that leaves out a kernel", check, []error{proof.ErrPlan}, func(s subject) (bad []subject) {
		if n := len(s.c.Snapshot.Commands); n > 0 {
			b := s.withProgram()
			last := n - 1
			for !b.c.Snapshot.Commands[last].Kind.Executes() {
				last--
			}
			b.c.Snapshot.Commands = slices.Delete(b.c.Snapshot.Commands, last, last+1)
			b.c.Snapshot.Counts[onCompute]--
			bad = append(bad, b)
		}
		return bad
	}},
	{"snapshot without a read", check, []error{proof.ErrContent}, eachOfSnapshot(func(s subject, i int) bool {
		cmd := s.c.Snapshot.Commands[i]
		if cmd.Kind != program.Read {
			return false
		}
		s.c.Snapshot.Commands = slices.Delete(s.c.Snapshot.Commands, i, i+1)
		s.c.Snapshot.Counts[onHost]--
		return true
	})},
	{"snapshot without a last copy out", check, []error{proof.ErrContent}, eachOfSnapshot(func(s subject,
		i int) bool {
		cmd := &s.c.Snapshot.Commands[i]
		last := s.g.LastVersions()
		if cmd.Kind != program.Out || !s.g.Storages[cmd.Storage].Role.Persistent() || last[cmd.Storage] == 0 ||
			cmd.Version != last[cmd.Storage] {
			return false
		}
		for _, later := range s.c.Snapshot.Commands[i+1:] {
			if later.Kind == program.Out && later.Storage == cmd.Storage {
				return false
			}
		}
		cmd.Version-- // it is still a copy, for the counts and waits; what it copies is not what it says
		return true
	})},
}

// eachOfSnapshot returns a mutation that changes one command of the snapshot section at a time.
func eachOfSnapshot(change func(s subject, i int) bool) func(subject) []subject {
	return func(s subject) (bad []subject) {
		for i := range s.c.Snapshot.Commands {
			if b := s.withProgram(); change(b, i) {
				bad = append(bad, b)
			}
		}
		return bad
	}
}

// moveOfSnapshot returns a mutation that carries out a copy of the state at the end of the section, and lets everything
// wait as it did.
func moveOfSnapshot(kind program.Kind) func(subject) []subject {
	return eachOfSnapshot(func(s subject, i int) bool {
		cmd := s.c.Snapshot.Commands[i]
		if cmd.Kind != kind || !s.overwritten(i) {
			return false
		}
		s.c.Snapshot.Commands = append(slices.Delete(s.c.Snapshot.Commands, i, i+1), cmd)
		return true
	})
}

// copiesState reports whether a command of the snapshot section is one that makes it a snapshot.
func (s subject) copiesState(i int) bool {
	k := s.c.Snapshot.Commands[i].Kind
	return k == program.Save || k == program.Keep
}

// overwritten reports whether a later command of the snapshot section overwrites what one copies.
func (s subject) overwritten(i int) bool {
	from := s.c.Snapshot.Commands[i]
	for _, c := range s.c.Snapshot.Commands[i+1:] {
		if from.Kind == program.Keep && c.Kind == program.Out && c.Storage == from.Storage {
			return true
		}
		if from.Kind != program.Save || c.Kind != program.Kernel {
			continue
		}
		for k, w := range s.g.Writes(c.Op) {
			if w.Storage == from.Storage && c.Outputs[k] != program.Nowhere {
				return true
			}
		}
	}
	return false
}

// unawaited lets nothing in the snapshot section wait for a copy of the state or a later command of its stream, and
// reports whether it was one of that kind whose storage is overwritten.
func (s subject) unawaited(i int, kind program.Kind) bool {
	cmd := s.c.Snapshot.Commands[i]
	if cmd.Kind != kind || !s.overwritten(i) {
		return false
	}
	before := 0
	for _, c := range s.c.Snapshot.Commands[:i] {
		if c.Stream == cmd.Stream {
			before++
		}
	}
	for k := range s.c.Snapshot.Commands {
		for j := range s.c.Snapshot.Commands[k].Waits {
			if w := &s.c.Snapshot.Commands[k].Waits[j]; w.Stream == cmd.Stream {
				w.Count = min(w.Count, before)
			}
		}
	}
	return true
}

// waitForLess lets what waits for a stream in the snapshot section wait for one command less.
func (s subject) waitForLess(l program.Stream) {
	for k := range s.c.Snapshot.Commands {
		for j := range s.c.Snapshot.Commands[k].Waits {
			if w := &s.c.Snapshot.Commands[k].Waits[j]; w.Stream == l && w.Count > 0 {
				w.Count--
			}
		}
	}
}
