package cuda

import (
	"tensile/device"
	"tensile/program"
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
func AddressOf(j device.Job, a program.Address) Address { return j.(*job).at(a) }
func WordOf(j device.Job) Address                       { return j.(*job).word }

// Retarget is retarget.
var Retarget = retarget
