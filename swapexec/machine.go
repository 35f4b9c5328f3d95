package swapexec

import (
	"fmt"

	"tensile/graph"
	"tensile/program"
)

// Machine follows the copy lanes of one job. The zero value is ready for use.
type Machine struct {
	lanes [program.Lanes]Queue
}

// Queue is the state of a copy lane.
type Queue struct {
	Copies int // issued and not ended; the first is in the Execution Buffer or about to enter it
	Bytes  graph.Bytes
}

// Issued records that the copies of a section were handed to the device.
func (m *Machine) Issued(s *program.Section) {
	for i := range s.Commands {
		if c := &s.Commands[i]; isCopy(c) {
			m.lanes[c.Lane].Copies++
			m.lanes[c.Lane].Bytes += c.Bytes
		}
	}
}

// Ended records that a command has ended; others than copies are ignored.
func (m *Machine) Ended(c *program.Command) {
	if !isCopy(c) {
		return
	}
	q := &m.lanes[c.Lane]
	if q.Copies == 0 || q.Bytes < c.Bytes {
		panic(fmt.Sprintf("swapexec: a copy of %d bytes ended on lane %s, which holds %d of %d bytes", c.Bytes, c.Lane, q.Copies, q.Bytes))
	}
	q.Copies--
	q.Bytes -= c.Bytes
}

// Queue returns the state of a lane.
func (m *Machine) Queue(l program.Lane) Queue { return m.lanes[l] }

func isCopy(c *program.Command) bool { return c.Kind == program.Out || c.Kind == program.In }
