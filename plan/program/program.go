package program

import (
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// Unit is a part of a machine that carries out commands.
type Unit uint8

const (
	Compute Unit = iota
	CopyOut      // device to host
	CopyIn       // host to device
	Host         // the loader's and the reader's side
	Network      // the other replicas of the job
	Units        // how many there are
)

func (u Unit) String() string {
	if u < Units {
		return [...]string{"compute", "out", "in", "host", "network"}[u]
	}
	return fmt.Sprintf("unit %d", uint8(u))
}

// Stream is the number of a sequence of commands that run one after the other. Program.Streams says on which unit.
type Stream int

// Region is the number of a range of memory. Program.Regions says which one.
type Region int

// Memory is a range of memory that every job has one of.
type Memory uint8

const (
	Arena          Memory = iota // on the device
	HostMemory                   // the job's slots on the host
	SnapshotMemory               // what a snapshot is copied to, on the host
	Memories                     // how many there are
)

func (m Memory) String() string {
	if m < Memories {
		return [...]string{"arena", "host", "snapshot"}[m]
	}
	return fmt.Sprintf("memory %d", uint8(m))
}

// Address is a place in a region.
type Address struct {
	Region Region
	Offset graph.Bytes
}

// Nowhere stands for an output that is not wanted.
var Nowhere = Address{Offset: -1}

// Point is reached when the first Count commands of a stream in this section have ended. A Count of zero or less lies
// before the section, in what was issued to the stream until then: -1 leaves out the last command of that. A point
// before everything that was issued is reached.
type Point struct {
	Stream Stream
	Count  int
}

func (p Point) String() string { return fmt.Sprintf("stream %d:%d", p.Stream, p.Count) }

// Kind says what a command does.
type Kind uint8

const (
	Kernel Kind = iota // executes an op
	Out                // copies Bytes from Device to Host
	In                 // copies Bytes from Host to Device
	Load               // the loader writes an input's content of this iteration to Host
	Read               // the job takes an output's content from Host
	Poison             // fills Bytes at Device with NaN; only on request
	Save               // copies Bytes from Device to Snapshot
	Keep               // copies Bytes from Host to Snapshot
	Reduce             // executes an op of kind graph.AllReduce
	Kinds              // how many there are
)

func (k Kind) String() string {
	return [...]string{"kernel", "out", "in", "load", "read", "poison", "save", "keep", "reduce"}[k]
}

// Unit is the unit that carries out commands of a kind.
func (k Kind) Unit() Unit { return unitOf[k] }

var unitOf = [Kinds]Unit{Kernel: Compute, Out: CopyOut, In: CopyIn, Load: Host, Read: Host, Poison: Compute,
	Save: CopyOut, Keep: Host, Reduce: Network}

// KindOf returns the kind of the commands that execute an op.
func KindOf(op *graph.Op) Kind {
	if op.Kind == graph.AllReduce {
		return Reduce
	}
	return Kernel
}

// Executes reports whether commands of the kind execute an op: each is a step of the plan.
func (k Kind) Executes() bool { return k == Kernel || k == Reduce }

// Command is one thing that a stream does.
type Command struct {
	Kind   Kind
	Stream Stream
	Slot   int     // what executes an op: the step; others: the step they follow, -1 before slot 0
	Waits  []Point // the compiler writes at most one per stream

	// What executes an op.
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
	// of saves and keeps
	Snapshot Address
	// pause before a copy that nothing waits for yet, Plan.Length at most; a device may leave it out
	Hold time.Duration
	// of a copy of the prologue: when the iteration first uses the storage, after its begin and by the latencies that
	// the plan was made for
	Due time.Duration
}

// Section is a list of commands that is issued as a whole.
type Section struct {
	Commands []Command
	Counts   []int // commands per stream
}

// Program is a plan made executable. IDs are those of its graph.
//
// Streams and regions are numbers. A device that loads a program for a job binds them: a stream to a lane of the job on
// the stream's unit, a region to the job's memory of the region's kind.
type Program struct {
	Graph    *graph.Graph
	Plan     *plan.Plan
	Streams  []Unit      // per stream
	Regions  []Memory    // per region; each memory once, SnapshotMemory only with a Snapshot
	Arena    graph.Bytes // bytes of the device that the commands use
	Align    graph.Bytes // storages and scratch on the device lie at multiples of it, and Arena is one
	Host     graph.Bytes // bytes of the host region
	Saved    graph.Bytes // bytes of the snapshot region; 0: there is none
	Prologue Section
	Body     Section
	Epilogue Section

	// In the place of a body: an iteration that also copies the content that the persistent storages have when it
	// begins to the snapshot region. Without commands: the program was made without (compile.Options). It is issued
	// when the prologue has ended; between two of them there is a body, or all that was issued has ended.
	Snapshot Section
}

// Sections returns all four, the snapshot last.
func (p *Program) Sections() [4]*Section {
	return [4]*Section{&p.Prologue, &p.Body, &p.Epilogue, &p.Snapshot}
}

// Has reports whether a section is one of the program's.
func (p *Program) Has(s *Section) bool {
	all := p.Sections()
	return slices.Contains(all[:], s)
}

// Ranges calls yield with each range [from, to) of the arena that a command uses.
func (p *Program) Ranges(c *Command, yield func(from, to graph.Bytes)) {
	use := func(a Address, size graph.Bytes) {
		if p.Regions[a.Region] == Arena && a != Nowhere {
			yield(a.Offset, a.Offset+size)
		}
	}
	switch c.Kind {
	case Kernel, Reduce:
		op := &p.Graph.Ops[c.Op]
		for i, t := range op.Inputs {
			use(c.Inputs[i], p.Graph.Tensors[t].Bytes())
		}
		for i, t := range op.Outputs {
			use(c.Outputs[i], p.Graph.Tensors[t].Bytes())
		}
		if c.ScratchBytes > 0 {
			use(c.Scratch, c.ScratchBytes)
		}
	case Out, In, Poison, Save:
		use(c.Device, c.Bytes)
	}
}

// Reach returns the end of the highest range of the arena that a command uses.
func (p *Program) Reach(c *Command) graph.Bytes {
	var end graph.Bytes
	p.Ranges(c, func(_, to graph.Bytes) { end = max(end, to) })
	return end
}

// Within reports whether all that a command uses of the arena lies in pages of a size.
func (p *Program) Within(c *Command, pages Pages, page graph.Bytes) bool {
	within := true
	p.Ranges(c, func(from, to graph.Bytes) {
		within = within && (from == to || pages.Contains(Pages{{int(from / page), int((to + page - 1) / page)}}))
	})
	return within
}

// touches reports whether a command uses some of the bytes of pages of a size.
func (p *Program) touches(c *Command, pages Pages, page graph.Bytes) bool {
	touches := false
	p.Ranges(c, func(from, to graph.Bytes) {
		for _, r := range pages {
			touches = touches || from < graph.Bytes(r.To)*page && graph.Bytes(r.From)*page < to
		}
	})
	return touches
}

// Rename returns the same program for a job of another name, in another epoch.
func (p *Program) Rename(job string, epoch int64) *Program {
	renamed, of := *p, *p.Plan
	of.Job, of.Epoch = job, epoch
	renamed.Plan = &of
	return &renamed
}

// StreamName is what people call a stream: by its unit, and those of one unit from the second on with a number.
func (p *Program) StreamName(s Stream) string {
	nth := 1
	for _, u := range p.Streams[:s] {
		if u == p.Streams[s] {
			nth++
		}
	}
	if nth == 1 {
		return p.Streams[s].String()
	}
	return fmt.Sprintf("%s%d", p.Streams[s], nth)
}

// Text prints a program for people, a command per line with its waits.
func (p *Program) Text() string {
	var b []byte
	for i, s := range p.Sections() {
		if s == &p.Snapshot && len(s.Commands) == 0 {
			continue
		}
		b = fmt.Appendf(b, "%s\n", [...]string{"prologue", "body", "epilogue", "snapshot"}[i])
		for _, c := range s.Commands {
			what := ""
			switch c.Kind {
			case Kernel, Reduce:
				what = p.Graph.Ops[c.Op].Name
			default:
				what = p.Graph.Storages[c.Storage].Name
			}
			b = fmt.Appendf(b, "  %-7s %-6s %s", p.StreamName(c.Stream), c.Kind, what)
			for _, w := range c.Waits {
				b = fmt.Appendf(b, " %s:%d", p.StreamName(w.Stream), w.Count)
			}
			b = append(b, '\n')
		}
	}
	return string(b)
}
