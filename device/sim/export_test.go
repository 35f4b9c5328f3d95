package sim

import (
	"tensile/device"
	_ "tensile/internal/long" // the flag -long
	"tensile/plan/program"
)

// Bind binds a program that nobody has proven, for tests of what the device does with commands that no proof lets pass.
func Bind(j device.Job, p *program.Program) { j.(*job).bind(p) }

// Issue issues a section that is of no program.
func Issue(j device.Job, s *program.Section, iteration int, drain bool) {
	j.(*job).lanes.Issue(s, 0, len(s.Commands), iteration, drain)
}
