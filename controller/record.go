package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/recording"
)

// Recorder writes what a machine starts from, its inputs and its outputs, so that [Replay] can have another machine go
// through the same. A graph is written once. Large parts of outputs are written as their digests.
type Recorder struct {
	to     *recording.Writer
	graphs map[graph.Digest]bool // graphs that were written
}

// NewRecorder returns a recorder. trouble is called once if it cannot go on.
func NewRecorder(out io.Writer, trouble func(error)) *Recorder {
	return &Recorder{recording.NewWriter(out, trouble), make(map[graph.Digest]bool)}
}

// machineName is the name of controllers in recordings.
const machineName = "controller"

// line is a line of a recording. The first names the machine. Then come the machine's beginning, which follows the
// graphs that it needs, the first outputs, and the steps.
type line struct {
	Machine string            `json:"machine,omitzero"`
	Graph   *graph.Graph      `json:"graph,omitzero"`
	Config  *Config           `json:"config,omitzero"`
	Stored  *stored           `json:"stored,omitzero"`
	Now     time.Duration     `json:"now_ns,omitzero"`
	In      *Input            `json:"in,omitzero"` // nil: the line is of Resume
	Out     []json.RawMessage `json:"out,omitzero"`
}

// stored is a Stored without its graphs.
type stored struct {
	Records  []wire.Record                     `json:"records"`
	Layouts  map[string][]*wire.Layout         `json:"layouts"`
	Orders   map[string]wire.Orders            `json:"orders"`
	Profiles map[graph.Digest]*planner.Profile `json:"profiles"`
	Learnt   *wire.Learnt                      `json:"learnt,omitempty"`
	Settings *wire.Settings                    `json:"settings,omitempty"`
	Devices  []wire.Device                     `json:"devices,omitempty"`
	Tenants  *wire.Tenants                     `json:"tenants,omitempty"`

	Placed map[string]map[graph.Digest]*planner.Profile `json:"placed,omitempty"`
	Hurt   map[string]string                            `json:"hurt,omitempty"`
}

// begin writes what a machine starts from.
func (r *Recorder) begin(c Config, s Stored) {
	if r == nil {
		return
	}
	r.to.Write(line{Machine: machineName})
	for _, record := range s.Records {
		if g := s.Graphs[record.Spec.Graph]; g != nil {
			r.graph(record.Spec.Graph, g)
		}
	}
	r.to.Write(line{Config: &c, Stored: &stored{s.Records, s.Layouts, s.Orders, s.Profiles, s.Learnt, s.Settings,
		s.Devices, s.Tenants, s.Placed, s.Hurt}})
}

// graph writes a graph unless it was written before.
func (r *Recorder) graph(digest graph.Digest, g *graph.Graph) {
	if !r.graphs[digest] {
		r.graphs[digest] = true
		r.to.Write(line{Graph: g})
	}
}

// resume writes what the machine wanted before the first step.
func (r *Recorder) resume(at time.Duration, outputs []Output) {
	if r != nil {
		r.to.Write(line{Now: at, Out: recording.Outputs(outputs)})
	}
}

// step writes a step.
func (r *Recorder) step(at time.Duration, in Input, outputs []Output) {
	if r == nil {
		return
	}
	for _, s := range in.Submit {
		r.graph(s.Spec.Graph, s.Graph)
	}
	if in.To != nil {
		r.graph(in.To.Spec.Graph, in.To.Graph)
	}
	r.to.Write(line{Now: at, In: &in, Out: recording.Outputs(outputs)})
}

// recentInputs are the inputs that a machine has taken last. They are always at hand and cost nothing. A recording that
// begins in the midst cannot be replayed, as the state of the machine at that point is stored nowhere.
type recentInputs struct {
	lines []line
	// oldest is the index of the oldest line, once there are maxRecentInputs.
	oldest int
}

// maxRecentInputs bounds the memory that recent inputs take.
const maxRecentInputs = 200

// add adds an input in place of the oldest.
func (n *recentInputs) add(at time.Duration, in Input) {
	if len(n.lines) < maxRecentInputs {
		n.lines = append(n.lines, line{})
	}
	n.lines[n.oldest] = line{Now: at, In: &in}
	n.oldest = (n.oldest + 1) % maxRecentInputs
}

// write writes the inputs to a file, the newest last.
func (n *recentInputs) write(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := recording.NewWriter(file, func(trouble error) { err = trouble })
	for i := range n.lines {
		w.Write(n.lines[(n.oldest+i)%len(n.lines)])
	}
	return errors.Join(err, file.Close())
}

// reportPanic is called when a step ends. If that is by a panic, it writes the recent inputs to a file and adds the
// file's name to the text of the panic.
func (r *runner) reportPanic() {
	bug := recover()
	if bug == nil {
		return
	}
	text := fmt.Sprint(bug)
	if path := r.options.Last; path != "" {
		if err := r.recent.write(path); err != nil {
			text += fmt.Sprintf("; what the controller was told last could not be written down: %v", err)
		} else {
			text += fmt.Sprintf("; %s has what the controller was told last: report this with these lines and that "+
				"file", path)
		}
	}
	panic(text)
}

// Replay has a machine go through a recording, and returns how many steps it took. The error names the line at which
// the machine answers otherwise than was recorded, to the byte, or which is no line of a recording.
func Replay(in io.Reader) (steps int, err error) {
	r := recording.NewReader(in)
	graphs := make(map[graph.Digest]*graph.Graph)
	var m *Machine
	for {
		var l line
		if err := r.Read(&l); errors.Is(err, io.EOF) {
			return steps, nil
		} else if err != nil {
			return steps, err
		}
		var outputs []Output
		switch {
		case l.Machine != "":
			if l.Machine != machineName {
				return steps, r.Errorf("it is a recording of an %s, not of a controller", l.Machine)
			}
			continue
		case l.Graph != nil:
			graphs[l.Graph.Digest()] = l.Graph
			continue
		case l.Config != nil && l.Stored != nil:
			m = Restore(*l.Config, Stored{Records: l.Stored.Records, Graphs: graphs, Layouts: l.Stored.Layouts,
				Orders: l.Stored.Orders, Profiles: l.Stored.Profiles, Settings: l.Stored.Settings,
				Tenants: l.Stored.Tenants, Learnt: l.Stored.Learnt, Devices: l.Stored.Devices,
				Hurt: l.Stored.Hurt, Placed: l.Stored.Placed})
			continue
		case m == nil:
			return steps, r.Errorf("a step before the beginning")
		case l.In == nil:
			outputs = m.Resume(l.Now)
		default:
			if err := l.In.complete(graphs); err != nil {
				return steps, r.Errorf("%w", err)
			}
			if outputs, err = recording.Do(func() []Output { return m.Step(l.Now, *l.In) }); err != nil {
				return steps, r.Errorf("%w", err)
			}
		}
		if err := r.Same(l.Out, recording.Outputs(outputs)); err != nil {
			return steps, err
		}
		steps++
	}
}

// complete gives an input of a recording its graphs.
func (in *Input) complete(graphs map[graph.Digest]*graph.Graph) error {
	for i, s := range in.Submit {
		if in.Submit[i].Graph = graphs[s.Spec.Graph]; in.Submit[i].Graph == nil {
			return fmt.Errorf("the graph of job %s was not recorded", s.Spec.Name)
		}
	}
	if in.To != nil {
		in.To.Graph = graphs[in.To.Spec.Graph]
	}
	return nil
}

// MarshalJSON writes the digest of what is delivered.
func (d *Delivery) MarshalJSON() ([]byte, error) {
	form := struct {
		Executor string       `json:"executor"`
		Job      string       `json:"job"`
		ID       int64        `json:"id"`
		Graph    graph.Digest `json:"graph,omitzero"`
		Epoch    int64        `json:"epoch,omitzero"`
		Layout   string       `json:"layout,omitzero"`
	}{Executor: d.Executor, Job: d.Job, ID: d.ID}
	if d.Graph != nil {
		form.Graph = d.Graph.Digest()
	} else {
		form.Epoch, form.Layout = d.Layout.Plan.Epoch, recording.Digest(d.Layout)
	}
	return json.Marshal(form)
}
