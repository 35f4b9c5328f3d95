package cpu

import (
	"net/url"
	"slices"
	"strconv"

	"tensile/graph"
	"tensile/plan/pool/trace"
	"tensile/plan/program"
)

// recorder makes a trace of a job's sections (Options.Trace). Commands are recorded when they are issued and in that
// order, in which they could be executed one by one; lanes make them overlap, not in the same way each time.
//
// Commands do not say when a storage leaves the arena, so that is derived: its block is there from the command that
// brings or makes the content to the last one that uses it before the content is brought or made again. At a section's
// end a block stays whose storage the section began by using, or has brought and not used: the next section will.
type recorder struct {
	g       *graph.Graph
	tell    func(trace.Event)
	names   []string // per storage
	scratch string
	there   []bool // per storage
}

func newRecorder(job string, g *graph.Graph, tell func(trace.Event)) *recorder {
	job = url.QueryEscape(job) // an id has no spaces
	r := &recorder{g: g, tell: tell, names: make([]string, len(g.Storages)), scratch: job + "/scratch",
		there: make([]bool, len(g.Storages))}
	for s := range r.names {
		r.names[s] = job + "/s" + strconv.Itoa(s)
	}
	return r
}

// touch is what a command does to a storage's block in the arena.
type touch struct {
	storage     graph.StorageID
	read, write bool
	fresh       bool // the content is brought or made: what was there is of no use
	ends        bool // the block is not needed afterwards
}

// touches lists the storages that a command touches in the arena, each once.
func (r *recorder) touches(c *program.Command) []touch {
	switch c.Kind {
	case program.In:
		return []touch{{storage: c.Storage, fresh: true, write: true}}
	case program.Out, program.Save:
		return []touch{{storage: c.Storage, read: true}}
	case program.Kernel, program.Reduce:
		return r.operands(c)
	}
	return nil
}

func (r *recorder) operands(c *program.Command) []touch {
	var touched []touch
	of := func(t graph.TensorID) *touch {
		s := r.g.Tensors[t].Storage
		i := slices.IndexFunc(touched, func(t touch) bool { return t.storage == s })
		if i < 0 {
			i = len(touched)
			touched = append(touched, touch{storage: s})
		}
		return &touched[i]
	}
	op := &r.g.Ops[c.Op]
	for _, t := range op.Inputs {
		of(t).read = true
	}
	for i, t := range op.Outputs {
		if c.Outputs[i] != program.Nowhere {
			out := of(t)
			out.write = true
			out.fresh = out.fresh || r.g.Fresh(op.ID, i)
		}
	}
	return touched
}

// section records a section that is issued.
func (r *recorder) section(s *program.Section) {
	touched := make([][]touch, len(s.Commands))
	last := make([]*touch, len(r.names)) // the last touch of each storage so far
	used := make([]bool, len(r.names))   // its first touch used what was there
	for i := range s.Commands {
		touched[i] = r.touches(&s.Commands[i])
		for k := range touched[i] {
			t := &touched[i][k]
			if before := last[t.storage]; before != nil {
				before.ends = t.fresh
			} else {
				used[t.storage] = !t.fresh
			}
			last[t.storage] = t
			t.ends = !used[t.storage] && !(t.fresh && s.Commands[i].Kind == program.In) // unless another touch follows
		}
	}
	for i := range s.Commands {
		r.command(&s.Commands[i], touched[i])
	}
}

// command records one command: what is new, the accesses, what ends.
func (r *recorder) command(c *program.Command, touched []touch) {
	for _, t := range touched {
		if t.fresh {
			r.free(t.storage)
		}
		if !r.there[t.storage] {
			r.there[t.storage] = true
			r.tell(trace.Event{Kind: trace.Malloc, Block: r.names[t.storage],
				Bytes: int64(r.g.Storages[t.storage].Bytes)})
		}
	}
	if c.ScratchBytes > 0 {
		r.tell(trace.Event{Kind: trace.Malloc, Block: r.scratch, Bytes: int64(c.ScratchBytes)})
	}
	for _, t := range touched {
		if t.read {
			r.tell(trace.Event{Kind: trace.Read, Block: r.names[t.storage]})
		}
	}
	for _, t := range touched {
		if t.write {
			r.tell(trace.Event{Kind: trace.Write, Block: r.names[t.storage]})
		}
	}
	if c.ScratchBytes > 0 {
		r.tell(trace.Event{Kind: trace.Write, Block: r.scratch})
		r.tell(trace.Event{Kind: trace.Free, Block: r.scratch})
	}
	for _, t := range touched {
		if t.ends {
			r.free(t.storage)
		}
	}
}

// free ends a storage's block if it is there.
func (r *recorder) free(s graph.StorageID) {
	if r.there[s] {
		r.there[s] = false
		r.tell(trace.Event{Kind: trace.Free, Block: r.names[s]})
	}
}

// home ends all blocks: the arena is given back.
func (r *recorder) home() {
	for s := range r.there {
		r.free(graph.StorageID(s))
	}
}
