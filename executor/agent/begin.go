package agent

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"tensile/data/checkpoint"
	"tensile/data/rooted"
	"tensile/graph"
	"tensile/models/task"
	"tensile/wire"
)

// Checkpoints is where the checkpoints of an executor's jobs are, and what they are of.
type Checkpoints struct {
	checkpoint.Folder        // without a Dir there are none
	Host              string // that the folder is on
	FolderIdentity    string // "": it is not known
	Device            string // its identity
	NoData            bool   // that device has none: checkpoints have no tensors
	Access            Access
}

// Access is which files jobs may name.
type Access struct {
	// Of returns the files of a user's jobs; nil: all.
	Of func(user string) *rooted.Files
	// Forbids returns an error for a path at which no job may save; nil: they may anywhere. It is not asked for what
	// lies below a user's own folder.
	Forbids func(path string) error
}

// place returns the files that a job may name, and its spec with the paths that are meant.
func (a *Access) place(s wire.Spec) (*rooted.Files, wire.Spec) {
	if a.Of == nil || s.Owner == "" {
		return nil, s
	}
	files := a.Of(s.Owner)
	for _, path := range s.Paths() {
		*path = files.Path(*path)
	}
	return files, s
}

// forbids returns an error for a path at which no job may save.
func (a *Access) forbids(files *rooted.Files, path string) error {
	if a.Forbids == nil || files.Home(path) {
		return nil
	}
	return a.Forbids(path)
}

// lackingError is why a job cannot go on here: its newest checkpoint is elsewhere.
type lackingError struct{ error }

// damagedError is why a replica cannot begin: the checkpoint that it is to begin with is damaged.
type damagedError struct{ error }

var errNoFolder = errors.New("this executor has no folder for checkpoints: start it with --checkpoints")

// Start finds where a job begins: at the newest whole checkpoint of its own (or at an exact one), at that of its spec,
// or, as nil, with no iteration. Then its task begins with that content.
func (c *Checkpoints) Start(p *Prepare, t *task.Task) (begin *Begin, notes []string, err error) {
	s := &p.Spec
	switch {
	case c.Dir == "" && p.From > 0:
		return nil, nil, lackingError{errNoFolder}
	case c.Dir == "" && s.Checkpoint != wire.Interval{}:
		return nil, nil, errNoFolder
	}
	var found checkpoint.Found
	if c.Dir != "" {
		if err := c.Begin(s.Name, s.ID, p.Incarnation); err != nil {
			notes = append(notes, err.Error())
		}
		own := func(c *checkpoint.State) error { return p.owns(c, networkOf(s, t.Graph)) }
		switch {
		case !p.Exact:
			found, err = c.Newest(s.Name, s.ID, p.Incarnation, own)
		case p.From > 0:
			found, err = c.Exactly(s.Name, s.ID, p.Incarnation, p.From, own)
		}
		if err != nil {
			return nil, notes, err
		}
	}
	for _, passed := range found.Passed {
		notes = append(notes, fmt.Sprintf("checkpoint %s is passed over: %v", filepath.Join(c.Dir, passed.File),
			passed.Err))
	}
	state := found.State
	switch {
	case state != nil:
		begin = &Begin{File: filepath.Join(c.Dir, found.Is.File), Checkpoint: c.describe(state, found.Is)}
		if state.Iteration < p.From {
			notes = append(notes, fmt.Sprintf("the checkpoint after %d iterations is not here any more, the newest is "+
				"that after %d", p.From, state.Iteration))
		}
	case p.Exact && len(found.Passed) > 0:
		return nil, notes, damagedError{fmt.Errorf("its checkpoint after %d iterations in %s on %s is damaged", p.From,
			c.Dir, c.Host)}
	case p.From > 0 && len(found.Passed) == 0:
		return nil, notes, lackingError{fmt.Errorf("its checkpoint after %d iterations is not in %s on %s: start an "+
			"executor where it is, or let both use one folder (--checkpoints)", p.From, c.Dir, c.Host)}
	case s.From != "":
		_, placed := c.Access.place(*s)
		if state, err = checkpoint.Read(t.Files, placed.From); err != nil {
			return nil, notes, err
		}
		begin = &Begin{File: placed.From}
	default:
		if len(found.Passed) > 0 {
			notes = append(notes, "no checkpoint of it is whole: it begins again")
		}
		return nil, notes, nil
	}
	note, err := c.beginWith(s, t, state)
	if err != nil {
		return nil, notes, fmt.Errorf("checkpoint %s: %w", begin.File, err)
	}
	if note != "" {
		notes = append(notes, note)
	}
	if begin.Iteration = state.Iteration; !c.NoData {
		begin.Losses = state.Losses
	}
	return begin, notes, nil
}

// networkOf is what checkpoints say of the graph that a job trains: its digest before passes, so that they fit the job
// with other passes.
func networkOf(s *wire.Spec, g *graph.Graph) graph.Digest {
	if len(g.Passes) == 0 {
		return s.Graph
	}
	return g.Network()
}

// owns returns an error unless a checkpoint was taken of the job, which trains this network: one of another controller
// may be called the same.
func (p *Prepare) owns(c *checkpoint.State, network graph.Digest) error {
	s := &p.Spec
	if c.Graph != network || c.Seed != s.Seed || c.Iteration > s.Iterations || c.Data != s.Data ||
		c.Weights != s.Weights || c.From != s.From {
		return errors.New("it is of another job that was called the same")
	}
	return nil
}

// beginWith has a task begin with a checkpoint, and returns what the owner is to know of that, or the error why the job
// cannot go on from there.
func (c *Checkpoints) beginWith(s *wire.Spec, t *task.Task, state *checkpoint.State) (note string, err error) {
	switch {
	case state.Graph != networkOf(s, t.Graph):
		return "", otherGraphError(s, t, state)
	case state.Seed != s.Seed:
		return "", fmt.Errorf("its seed is %d, that of the job is %d: give --seed %[1]d", state.Seed,
			s.Seed)
	case state.Iteration > s.Iterations:
		return "", fmt.Errorf("it has %d iterations, the job is to have %d in all: give more --iterations",
			state.Iteration, s.Iterations)
	case state.Device != c.Device && !s.AnyDevice:
		return "", fmt.Errorf("it is of device %s, this is %s, where other bits come out: give --any-device "+
			"to go on all the same", state.Device, c.Device)
	case state.Device != c.Device:
		note = fmt.Sprintf("its checkpoint is of device %s, this is %s: bits may differ from here on", state.Device,
			c.Device)
	}
	if c.NoData {
		return note, nil
	}
	return note, t.Restore(state.Tensors)
}

// otherGraphError is the error for a job of another graph than a checkpoint, which names what is not the same.
func otherGraphError(s *wire.Spec, t *task.Task, state *checkpoint.State) error {
	const remedy = ": make both the same, or take its tensors alone by --weights"
	had, has := task.OtherSettings(state.Settings, task.SettingsOf(t.Graph))
	switch {
	case state.Model != s.Model:
		return fmt.Errorf("it is of model %s, and the job is of %s%s", state.Model, s.Model, remedy)
	case had != has:
		return fmt.Errorf("it was taken with %s, and the job has %s%s", had, has, remedy)
	}
	return fmt.Errorf("it is of another graph that is called %s, too, made from another file or by another release%s",
		state.Model, remedy)
}

// Write writes a checkpoint, and releases its snapshot. losses are those of its iterations; none without data.
func (c *Checkpoints) Write(w *Write, losses []float32) *Written {
	defer w.Snapshot.Release()
	if c.Dir == "" {
		return &Written{Ticket: w.Ticket, Err: errNoFolder}
	}
	if err := w.Task.Check(w.Snapshot.Iteration, w.Snapshot.Contents); err != nil {
		return &Written{Ticket: w.Ticket, Err: fmt.Errorf("no checkpoint was taken: %w", err)}
	}
	file := w.Task.File(w.Snapshot.Iteration, w.Snapshot.Contents)
	s := &checkpoint.State{Job: w.Spec.Name, ID: w.Spec.ID, Incarnation: w.Incarnation, Iteration: w.Snapshot.Iteration,
		Seed: w.Spec.Seed, Graph: networkOf(&w.Spec, w.Task.Graph), Device: c.Device, Model: w.Spec.Model,
		Optimizer: file.Metadata["optimizer"], Settings: task.SettingsOf(w.Task.Graph), Losses: losses,
		Tensors: file.Tensors, Data: w.Spec.Data, Weights: w.Spec.Weights, From: w.Spec.From}
	const keep = 2
	is, err := c.Folder.Write(s, cmp.Or(w.Spec.Keep, keep), w.Keep)
	if err != nil {
		return &Written{Ticket: w.Ticket, Err: err}
	}
	return &Written{Ticket: w.Ticket, Checkpoint: c.describe(s, is)}
}

// describe returns what other processes are told of a checkpoint.
func (c *Checkpoints) describe(s *checkpoint.State, is checkpoint.Written) *wire.Checkpoint {
	return &wire.Checkpoint{Iteration: s.Iteration, File: filepath.Join(c.Dir, is.File), Host: c.Host,
		Folder: c.FolderIdentity, Bytes: is.Bytes}
}

// Discard removes the checkpoints of a job that is over.
func (c *Checkpoints) Discard(d *Discard) error { return c.Remove(d.Job, d.ID, d.Incarnation) }
