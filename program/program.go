package program

import (
	"fmt"

	"tensile/graph"
	"tensile/plan"
	"time"
)

// Lane is a sequence of commands that run one after the other.
type Lane uint8

const (
	Compute Lane = iota
	CopyOut      // device to host
	CopyIn       // host to device
	Host         // the loader's and the reader's side
	Lanes        // how many there are
)

func (l Lane) String() string {
	if l < Lanes {
		return [...]string{"compute", "out", "in", "host"}[l]
	}
	return fmt.Sprintf("lane %d", uint8(l))
}

// Region is a range of memory whose base the device binds.
type Region uint8

const (
	Arena      Region = iota // on the device
	HostMemory               // the job's slots on the host
	Regions
)

// Address is a place in a region.
type Address struct {
	Region Region
	Offset graph.Bytes
}

// Nowhere stands for an output that is not wanted.
var Nowhere = Address{Offset: -1}

// Point is reached when the first Count commands of a lane in this section have ended. A Count of zero or less lies in
// the previous run of the same section: -1 leaves out that run's last command. A point that names a run which never
// was is reached.
type Point struct {
	Lane  Lane
	Count int
}

func (p Point) String() string { return fmt.Sprintf("%s:%d", p.Lane, p.Count) }

// Kind says what a command does.
type Kind uint8

const (
	Kernel Kind = iota // compute lane: executes an op
	Out                // copies Bytes from Device to Host
	In                 // copies Bytes from Host to Device
	Load               // host lane: the loader writes an input's content of this iteration to Host
	Read               // host lane: the job takes an output's content from Host
	Poison             // compute lane: fills Bytes at Device with NaN; only on request
)

func (k Kind) String() string {
	return [...]string{"kernel", "out", "in", "load", "read", "poison"}[k]
}

// Command is one thing that a lane does.
type Command struct {
	Kind  Kind
	Lane  Lane
	Slot  int     // kernels: the step; others: the step they follow, -1 before slot 0
	Waits []Point // at most one per lane

	// Kernels.
	Op           graph.OpID
	Variant      string
	Inputs       []Address // of the op's input tensors
	Outputs      []Address // of its output tensors; Nowhere where not wanted
	Scratch      Address
	ScratchBytes graph.Bytes

	// Copies, loads, reads and poisoning.
	Storage graph.StorageID
	Version int // the content that is moved
	Device  Address
	Host    Address
	Bytes   graph.Bytes
	Hold    time.Duration // pause before a copy that nothing waits for yet, Plan.Length at most; a device may leave it out
}

// Section is a list of commands that is issued as a whole.
type Section struct {
	Commands []Command
	Counts   [Lanes]int // commands per lane
}

func (s *Section) append(c Command) Point {
	s.Commands = append(s.Commands, c)
	s.Counts[c.Lane]++
	return Point{c.Lane, s.Counts[c.Lane]}
}

// Mark names a group of steps, [From, To).
type Mark struct {
	Name     string
	From, To int
}

// Program is a plan made executable.
type Program struct {
	Plan     *plan.Plan
	Arena    graph.Bytes // bytes of the device that the commands use
	Align    graph.Bytes // storages and scratch on the device lie at multiples of it, and Arena is one
	Host     graph.Bytes // bytes of the host region
	Prologue Section
	Body     Section
	Epilogue Section
	Marks    []Mark // phases, in slot order
}

// HostSlots returns the offset of every storage in the host region and the region's size. It depends on the graph
// alone, so that persistent storages stay where they are when the plan changes: persistent storages, inputs and outputs
// come first; the slots of others are memory only if a plan copies them out.
func HostSlots(g *graph.Graph) (slots []graph.Bytes, size graph.Bytes) {
	const align = 4096
	slots = make([]graph.Bytes, len(g.Storages))
	for _, wanted := range [2]bool{true, false} {
		for i, s := range g.Storages {
			if (s.Role.FromHost() || s.Role == graph.Output) == wanted {
				slots[i] = size
				size += (s.Bytes + align - 1) / align * align
			}
		}
	}
	return slots, size
}
