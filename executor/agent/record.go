package agent

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/reduce"
	"tensile/graph"
	"tensile/models/task"
	"tensile/wire"
	"tensile/wire/recording"
)

// Recorder writes down all that a machine is told and answers, so that [Replay] can have another machine go through the
// same. Graphs, programs and weights, which a machine only passes on, are left out.
type Recorder struct{ to *recording.Writer }

// NewRecorder returns a recorder. trouble is told once if it can not go on.
func NewRecorder(out io.Writer, trouble func(error)) *Recorder {
	return &Recorder{recording.NewWriter(out, trouble)}
}

// recorded is the name of agents in recordings.
const recorded = "agent"

// record is a line of a recording: the first names the machine and its process.
type record struct {
	Machine string            `json:"machine,omitzero"`
	Process *Process          `json:"process,omitzero"`
	Now     time.Duration     `json:"now_ns,omitzero"`
	In      *recordedInput    `json:"in,omitzero"`
	Out     []json.RawMessage `json:"out,omitzero"`
}

// recordedInput is an Input without what a machine only passes on. Errors are their texts.
type recordedInput struct {
	Orders   *wire.Orders `json:"orders,omitzero"`
	Ticket   Ticket       `json:"ticket,omitzero"`
	Prepared bool         `json:"prepared,omitzero"`
	Met      bool         `json:"met,omitzero"`
	// Meeting is, with Met, where a replica listens.
	Meeting *wire.Meeting `json:"meeting,omitempty"`
	Fetched bool          `json:"fetched,omitzero"`
	Kept    bool          `json:"kept,omitzero"`
	Stored  bool          `json:"stored,omitzero"`
	Written bool          `json:"written,omitzero"`
	Epoch   int64         `json:"epoch,omitzero"`
	Peak    graph.Bytes   `json:"peak_bytes,omitzero"`
	Again   bool          `json:"again,omitzero"`
	// Lacks says that the error is of a checkpoint on another machine.
	Lacks bool `json:"lacks,omitzero"`
	// Damaged says that the error is of a damaged checkpoint.
	Damaged bool `json:"damaged,omitzero"`
	// Diverged says that the error is of a job that has diverged.
	Diverged bool `json:"diverged,omitzero"`
	// Free is, with an error of a device without room for an arena, what it has free.
	Free *graph.Bytes `json:"free_bytes,omitempty"`
	// Result has the losses, weights and file of what was kept.
	Result *wire.Result `json:"result,omitzero"`
	Begin  *begins      `json:"begin,omitzero"`
	// Graph is that of a script's task that was prepared.
	Graph graph.Digest `json:"graph,omitzero"`
	Notes []string     `json:"notes,omitzero"`
	// Saved is a checkpoint that was written, also in place of what was kept.
	Saved *wire.Checkpoint `json:"checkpoint,omitzero"`
	// Snapshot is the iteration of a snapshot.
	Snapshot *int `json:"snapshot,omitzero"`
	// Job is the job that the event is about.
	Job      string            `json:"job,omitzero"`
	Report   *executor.Report  `json:"report,omitzero"`
	Applied  *executor.Applied `json:"applied,omitzero"`
	Home     bool              `json:"home,omitzero"`
	Parked   int64             `json:"parked,omitzero"`
	Refused  bool              `json:"refused,omitzero"`
	Troubled bool              `json:"troubled,omitzero"`
	Removed  bool              `json:"removed,omitzero"`
	Begun    int               `json:"begun,omitzero"`
	Note     string            `json:"note,omitzero"`
	// Ended is without its error and weights.
	Ended *executor.Ended `json:"ended,omitzero"`
	// Lost is the replica to which the error says that the connection broke.
	Lost   *int                 `json:"lost_replica,omitzero"`
	Loss   *wire.Loss           `json:"loss,omitzero"`
	Online *bool                `json:"online,omitzero"`
	Tick   bool                 `json:"tick,omitzero"`
	Waits  map[lease.Job]string `json:"waits,omitempty"`
	Drain  bool                 `json:"drain,omitzero"`
	Quit   bool                 `json:"quit,omitzero"`
	Closed bool                 `json:"closed,omitzero"`
	Err    *string              `json:"err,omitzero"`
}

// recordedError is an error with the text that was recorded of it.
type recordedError struct {
	error
	text string
}

func (e recordedError) Error() string { return e.text }
func (e recordedError) Unwrap() error { return e.error }

// begins is where a job begins, without losses.
type begins struct {
	Iteration  int              `json:"iteration"`
	File       string           `json:"file"`
	Checkpoint *wire.Checkpoint `json:"checkpoint,omitzero"`
}

func (r *Recorder) begin(p Process) {
	if r != nil {
		r.to.Write(record{Machine: recorded, Process: &p})
	}
}

func (r *Recorder) step(at time.Duration, in Input, outputs []Output) {
	if r != nil {
		r.to.Write(record{Now: at, In: newRecordedInput(in), Out: recording.Outputs(encodeOutput(outputs))})
	}
}

// newRecordedInput returns an input as it is recorded.
func newRecordedInput(in Input) *recordedInput {
	t := &recordedInput{Orders: in.Orders, Loss: in.Loss, Online: in.Online, Tick: in.Tick,
		Waits: in.Waits, Drain: in.Drain != nil,
		Quit: in.Quit != nil, Closed: in.Closed}
	switch {
	case in.Prepared != nil:
		p := in.Prepared
		t.Prepared, t.Ticket, t.Notes, t.Again, t.Err = true, p.Ticket, p.Notes, p.Again, textOfErr(p.Err)
		t.Graph = p.Graph
		_, t.Lacks = errors.AsType[lackingError](p.Err)
		_, t.Damaged = errors.AsType[damagedError](p.Err)
		if b := p.Begin; b != nil {
			t.Begin = &begins{b.Iteration, b.File, b.Checkpoint}
		}
	case in.Met != nil:
		t.Met, t.Ticket, t.Meeting, t.Err = true, in.Met.Ticket, in.Met.Meeting, textOfErr(in.Met.Err)
	case in.Fetched != nil:
		f := in.Fetched
		t.Fetched, t.Ticket, t.Epoch, t.Peak, t.Again, t.Err = true, f.Ticket, f.Epoch, f.Peak, f.Again,
			textOfErr(f.Err)
	case in.Kept != nil:
		k := in.Kept
		t.Kept, t.Ticket, t.Err, t.Again, t.Saved = true, k.Ticket, textOfErr(k.Err), k.Again, k.Checkpoint
		_, t.Diverged = errors.AsType[*task.DivergedError](k.Err)
		t.Result = &wire.Result{Losses: k.Losses, Weights: k.Weights, Saved: k.Saved}
	case in.Stored != nil:
		t.Stored, t.Ticket, t.Err = true, in.Stored.Ticket, textOfErr(in.Stored.Err)
	case in.Written != nil:
		t.Written, t.Ticket, t.Err = true, in.Written.Ticket, textOfErr(in.Written.Err)
		t.Saved = in.Written.Checkpoint
	case in.Event != nil:
		e := in.Event
		t.Job, t.Report, t.Applied, t.Home, t.Parked, t.Removed = e.Job, e.Report, e.Applied, e.Home, e.Parked,
			e.Removed
		t.Begun, t.Note = e.Begun, e.Note
		t.Refused, t.Err = e.Refused != nil, textOfErr(e.Refused)
		if e.Troubled != nil {
			t.Troubled, t.Err = true, textOfErr(e.Troubled)
		}
		if e.Ended != nil {
			ended := *e.Ended
			if full, ok := errors.AsType[*device.OutOfMemoryError](ended.Err); ok {
				t.Free = &full.Free
			}
			if lost, ok := errors.AsType[*reduce.LostError](ended.Err); ok {
				t.Lost = &lost.Replica
			}
			_, t.Diverged = errors.AsType[*task.DivergedError](ended.Err)
			t.Err, ended.Err, ended.Weights = textOfErr(ended.Err), nil, nil
			t.Ended = &ended
		}
		if s := e.Snapshot; s != nil {
			t.Snapshot, t.Err = &s.Iteration, textOfErr(s.Err)
		}
	case in.Drain != nil:
		t.Err = textOfErr(in.Drain)
	case in.Quit != nil:
		t.Err = textOfErr(in.Quit)
	}
	return t
}

func textOfErr(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}

// input returns the input that was recorded.
func (t *recordedInput) input() Input {
	var err error
	if t.Err != nil {
		if err = errors.New(*t.Err); t.Diverged {
			err = &task.DivergedError{What: *t.Err}
		}
	}
	in := Input{Orders: t.Orders, Loss: t.Loss, Online: t.Online, Tick: t.Tick, Waits: t.Waits, Closed: t.Closed}
	switch {
	case t.Prepared:
		switch {
		case t.Lacks:
			err = lackingError{err}
		case t.Damaged:
			err = damagedError{err}
		}
		in.Prepared = &Prepared{Ticket: t.Ticket, Graph: t.Graph, Notes: t.Notes, Err: err, Again: t.Again}
		if b := t.Begin; b != nil {
			in.Prepared.Begin = &Begin{Iteration: b.Iteration, File: b.File, Checkpoint: b.Checkpoint}
		}
	case t.Met:
		in.Met = &Met{Ticket: t.Ticket, Meeting: t.Meeting, Err: err}
	case t.Fetched:
		in.Fetched = &Fetched{Ticket: t.Ticket, Epoch: t.Epoch, Peak: t.Peak, Err: err, Again: t.Again}
	case t.Kept && t.Result != nil:
		in.Kept = &Kept{Ticket: t.Ticket, Losses: t.Result.Losses, Weights: t.Result.Weights, Saved: t.Result.Saved,
			Err: err, Checkpoint: t.Saved, Again: t.Again}
	case t.Stored:
		in.Stored = &Stored{Ticket: t.Ticket, Err: err}
	case t.Written:
		in.Written = &Written{Ticket: t.Ticket, Checkpoint: t.Saved, Err: err}
	case t.Job != "":
		in.Event = &executor.Event{Job: t.Job, Report: t.Report, Applied: t.Applied, Home: t.Home, Parked: t.Parked,
			Removed: t.Removed, Ended: t.Ended, Begun: t.Begun, Note: t.Note}
		if t.Ended != nil {
			if t.Ended.Err = err; t.Free != nil {
				t.Ended.Err = recordedError{&device.OutOfMemoryError{Free: *t.Free}, *t.Err}
			} else if t.Lost != nil {
				t.Ended.Err = recordedError{&reduce.LostError{Replica: *t.Lost, Err: err}, *t.Err}
			}
		} else if t.Snapshot != nil {
			in.Event.Snapshot = &executor.Snapshot{Iteration: *t.Snapshot, Err: err}
		} else if t.Refused {
			in.Event.Refused = err
		} else if t.Troubled {
			in.Event.Troubled = err
		}
	case t.Drain:
		in.Drain = err
	case t.Quit:
		in.Quit = err
	}
	return in
}

// said is an Output as it is recorded: what is asked for is told by job and epoch.
type said struct {
	Do     string       `json:"do,omitzero"`
	Ticket Ticket       `json:"ticket,omitzero"`
	Job    string       `json:"job,omitzero"`
	Epoch  int64        `json:"epoch,omitzero"`
	Number int64        `json:"number,omitzero"`
	At     int          `json:"at,omitzero"`
	Status *wire.Status `json:"status,omitzero"`
	Report *wire.Report `json:"report,omitzero"`
	Event  *Event       `json:"event,omitzero"`
	Link   *wire.Rates  `json:"link,omitzero"`
	Text   string       `json:"text,omitzero"`
}

func encodeOutput(outputs []Output) []said {
	list := make([]said, len(outputs))
	for i, o := range outputs {
		s := &list[i]
		switch {
		case o.Prepare != nil:
			*s = said{Do: "prepare", Ticket: o.Prepare.Ticket, Job: o.Prepare.Spec.Name}
		case o.Fetch != nil:
			*s = said{Do: "fetch", Ticket: o.Fetch.Ticket, Job: o.Fetch.Job, Epoch: o.Fetch.Epoch}
		case o.Open != nil:
			*s = said{Do: "open", Ticket: o.Open.Ticket, Job: o.Open.Spec.Name}
		case o.Change != nil:
			*s = said{Do: "change", Job: o.Change.Job}
		case o.Stop != "":
			*s = said{Do: "stop", Job: o.Stop}
		case o.Park != nil:
			*s = said{Do: "park", Job: o.Park.Job, Number: o.Park.Number, At: o.Park.At}
		case o.Trace != nil:
			*s = said{Do: "trace", Job: o.Trace.Job, Number: int64(o.Trace.Iterations)}
		case o.Unplanned != nil:
			*s = said{Do: "unplanned", Job: o.Unplanned.Job, Text: o.Unplanned.Reason}
		case o.Resume != "":
			*s = said{Do: "resume", Job: o.Resume}
		case o.Take != nil:
			*s = said{Do: "take", Job: o.Take.Job, At: o.Take.At}
		case o.Meet != nil:
			*s = said{Do: "meet", Ticket: o.Meet.Ticket, Job: o.Meet.Spec.Name}
		case o.Join != nil:
			*s = said{Do: "join", Job: o.Join.Job, Text: o.Join.Meeting.Address}
		case o.Part != "":
			*s = said{Do: "part", Job: o.Part}
		case o.Write != nil:
			*s = said{Do: "write", Ticket: o.Write.Ticket, Job: o.Write.Spec.Name}
		case o.Discard != nil:
			*s = said{Do: "discard", Job: o.Discard.Job}
		case o.Remove != "":
			*s = said{Do: "remove", Job: o.Remove}
		case o.Keep != nil:
			*s = said{Do: "keep", Ticket: o.Keep.Ticket, Job: o.Keep.Spec.Name}
		case o.Store != nil:
			*s = said{Do: "store", Ticket: o.Store.Ticket, Text: o.Store.Key}
		case o.Event != nil:
			*s = said{Event: o.Event}
		case o.Refused != "":
			*s = said{Do: "refused", Text: o.Refused}
		case o.Leave:
			s.Do = "leave"
		default:
			*s = said{Status: o.Status, Report: o.Report, Link: o.Link}
		}
	}
	return list
}

// Replay has a machine go through a recording, and returns in how many steps. The error names the line at which it
// answers otherwise than was recorded, to the byte, or which is no line of a recording.
func Replay(in io.Reader) (steps int, err error) {
	r := recording.NewReader(in)
	var m *Machine
	for {
		var l record
		if err := r.Read(&l); errors.Is(err, io.EOF) {
			return steps, nil
		} else if err != nil {
			return steps, err
		}
		switch {
		case l.Machine != "" && l.Machine != recorded:
			return steps, r.Errorf("it is a recording of a %s, not of an agent", l.Machine)
		case l.Process != nil:
			m = NewMachine(*l.Process)
			continue
		case m == nil || l.In == nil:
			return steps, r.Errorf("a step that says nothing, or before the beginning")
		}
		outputs, err := recording.Do(func() []Output { return m.Step(l.Now, l.In.input()) })
		if err != nil {
			return steps, r.Errorf("%w", err)
		}
		if err := r.Same(l.Out, recording.Outputs(encodeOutput(outputs))); err != nil {
			return steps, err
		}
		steps++
	}
}
