package swapexec

import (
	"fmt"

	"tensile/graph"
	"tensile/plan/program"
)

// Machine follows the copy lanes of one job. The zero value is ready for use.
type Machine struct {
	queues [program.Units]Queue
}

// Queue is the state of the copies in one direction.
type Queue struct {
	Copies int // issued and not ended; the first is in the Execution Buffer or about to enter it
	Bytes  graph.Bytes
}

// Issued records that the copies among some commands were handed to the device.
func (m *Machine) Issued(commands []program.Command) {
	for i := range commands {
		if c := &commands[i]; isCopy(c) {
			m.queues[c.Kind.Unit()].Copies++
			m.queues[c.Kind.Unit()].Bytes += c.Bytes
		}
	}
}

// Ended records that a command has ended; others than copies are ignored.
func (m *Machine) Ended(c *program.Command) {
	if !isCopy(c) {
		return
	}
	q := &m.queues[c.Kind.Unit()]
	if q.Copies == 0 || q.Bytes < c.Bytes {
		panic(fmt.Sprintf("swapexec: a copy of %d bytes ended on unit %s, which holds %d of %d bytes",
			c.Bytes, c.Kind.Unit(), q.Copies, q.Bytes))
	}
	q.Copies--
	q.Bytes -= c.Bytes
}

// Queue returns the state of a unit's copies.
func (m *Machine) Queue(u program.Unit) Queue { return m.queues[u] }

func isCopy(c *program.Command) bool {
	return c.Kind == program.Out || c.Kind == program.In || c.Kind == program.Save
}
