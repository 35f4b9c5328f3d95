package agent

import (
	"fmt"

	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/peak"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/wire"
)

// Prove answers with the program of a layout that was fetched for a device, or with why it is refused.
func (f *Fetch) Prove(l *wire.Layout, d Device) *Fetched {
	facts := d.Facts()
	proven, err := Prove(f.Task.Graph, f.Job, f.Epoch, l, d.Align(), compile.Options{Poison: invariants.Enabled,
		Snapshot: f.Checkpoints, Durations: program.Durations{Out: facts.Out, In: facts.In, Host: facts.Host}})
	if err != nil {
		return &Fetched{Ticket: f.Ticket, Epoch: f.Epoch, Err: err}
	}
	return &Fetched{Ticket: f.Ticket, Epoch: f.Epoch, Proven: proven, Peak: peak.Of(f.Task.Graph, l.Plan).Peak}
}

// Prove proves the layout of a job's epoch, which is not trusted in anything. Offsets are multiples of align.
func Prove(g *graph.Graph, job string, epoch int64, l *wire.Layout, align graph.Bytes,
	o compile.Options) (proof.Proven, error) {
	switch p := l.Plan; {
	case p == nil:
		return proof.Proven{}, fmt.Errorf("the layout has no plan")
	case p.Job != job || p.Epoch != epoch:
		return proof.Proven{}, fmt.Errorf("the layout is that of job %s, epoch %d", p.Job, p.Epoch)
	}
	layout := program.Placement{Offsets: l.Offsets, Scratch: l.Scratch, Arena: l.Arena, Align: align}
	return compile.Prove(g, l.Plan, &layout, o)
}
