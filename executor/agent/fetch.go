package agent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"tensile/data/rooted"
	"tensile/data/weights"
	"tensile/graph"
	"tensile/models/task"
	"tensile/wire"
)

// prepare fetches the graph of a job, opens its data and finds where it begins.
func (r *runner) prepare(p *Prepare) *Prepared {
	text, err := r.load(wire.GraphObject(p.Spec.Graph))
	if err != nil {
		return &Prepared{Ticket: p.Ticket, Err: fmt.Errorf("fetch the graph: %w", err), Again: true}
	}
	files, s := r.Access.place(p.Spec)
	t, err := openTask(text, files, s)
	var begin *Begin
	var notes []string
	if p.Spec.Script { // which begins by itself, and saves what it wants
		return &Prepared{Ticket: p.Ticket, Graph: p.Spec.Graph, Task: t, Err: err}
	}
	if err == nil {
		begin, notes, err = r.checkpoints.Start(p, &t)
	}
	if err == nil && begin == nil && !isSimulated(r.Device) {
		t.Source = s.Source
		err = t.Begin(s.Weights)
	}
	if err == nil && p.Spec.Save != "" { // before an iteration is trained for nothing
		if isSimulated(r.Device) {
			err = errNoData
		} else {
			err = r.checkpoints.checkSavable(&s, &t)
		}
	}
	return &Prepared{Ticket: p.Ticket, Task: t, Begin: begin, Notes: append(notes, t.Notes...), Err: err}
}

// checkSavable finds out whether a job can be saved where its spec says.
func (c *Checkpoints) checkSavable(s *wire.Spec, t *task.Task) error {
	if err := c.Access.forbids(t.Files, s.Save); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	began := cmp.Or(s.Source, s.Weights)
	if err := task.Savable(s.Save, began); err != nil {
		return err
	}
	err := weights.Writable(t.Files, s.Save)
	if err == nil {
		err = weights.Room(t.Files, s.Save, t.SavedBytes(s.Save, began))
	}
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// openTask reads the graph of a job and opens its data.
func openTask(text []byte, files *rooted.Files, s wire.Spec) (task.Task, error) {
	g, err := graph.Read(bytes.NewReader(text))
	if err != nil {
		return task.Task{}, err
	}
	if d := g.Digest(); d != s.Graph {
		return task.Task{}, fmt.Errorf("the graph that was fetched is %.12s, not %.12s", d, s.Graph)
	}
	t, err := task.Open(files, g, s.Seed, s.Data)
	t.Name, t.Model, t.Replica = s.Name, s.Model, s.Replica.Number
	if n := g.Replicas(); err == nil && s.Replica.Number >= n {
		err = fmt.Errorf("it is replica %d, and its graph is of %d", s.Replica.Number, n)
	} else if err == nil && s.Replica.Of != 0 && s.Replica.Of != n {
		err = fmt.Errorf("it is one of %d replicas, and its graph is of %d", s.Replica.Of, n)
	}
	return t, err
}

// fetch fetches a layout and proves it.
func (r *runner) fetch(f *Fetch) *Fetched {
	text, err := r.load(wire.LayoutObject(f.Job, f.ID, f.Epoch))
	if err != nil {
		return &Fetched{Ticket: f.Ticket, Epoch: f.Epoch, Err: err, Again: true}
	}
	l, err := wire.DecodeAs[wire.Layout](text)
	if err != nil {
		return &Fetched{Ticket: f.Ticket, Epoch: f.Epoch, Err: err}
	}
	return f.Prove(&l, r.Device)
}

// store puts a result where the controller finds it.
func (r *runner) store(s *Store) *Stored {
	ctx, cancel := context.WithTimeout(r.ctx, busTimeout)
	defer cancel()
	return &Stored{s.Ticket, r.Bus.Put(ctx, s.Key, wire.Encode(*s.Result))}
}

func (r *runner) load(name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(r.ctx, busTimeout)
	defer cancel()
	return r.Bus.Load(ctx, wire.Bucket(r.Executor), name)
}
