package cuda

import (
	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// LaunchesOf returns the launches of a section, per command.
func LaunchesOf(j device.Job, s *program.Section) [][]Launch {
	all, err := j.(*job).prepare(s)
	if err != nil {
		panic(err)
	}
	launches := make([][]Launch, len(all))
	for i, p := range all {
		launches[i] = p
	}
	return launches
}

// AddressOf returns the address of a place in the arena, and WordOf that of the iteration.
func AddressOf(j device.Job, a program.Address) Address { return j.(*job).addressOf(a) }
func WordOf(j device.Job) Address                       { return j.(*job).word }

// Retarget is retarget.
var Retarget = retarget

// Pinned is what is in use of the memory of the host that is pinned.
func (d *Device) Pinned() graph.Bytes {
	used := d.memory.total
	for _, m := range d.memory.idle {
		used -= m.size()
	}
	return used
}
