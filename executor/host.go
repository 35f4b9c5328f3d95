package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tensile/device"
	"tensile/graph"
	"tensile/program"
)

// Spec is a job to be trained.
type Spec struct {
	Name       string
	Graph      *graph.Graph
	Seed       uint64
	Iterations int
	Init       func(s graph.Storage, to []float32) // fills a persistent storage's host slot
	Input      func(iteration int, s graph.StorageID, to device.Memory)
	Output     func(iteration int, s graph.StorageID, from []float32)
}

// Host trains jobs on one device. Run or Serve, and Add before it, are called by one goroutine; Submit, Change, Stop,
// Remove and Until by any.
type Host struct {
	device   device.Device
	ledger   *ledger
	jobs     []*job
	observer func(Event)
	serving  bool // trouble with one job ends that job alone
	until    *int // complete iterations after which jobs rest; nil: they do not

	mu       sync.Mutex
	commands []command
	wake     chan struct{}
}

// NewHost returns a host for jobs on a device. The arenas of all jobs together stay within budget, 0 meaning no limit.
// observer, if not nil, is called with the report of every iteration, by the goroutine in Run or Serve.
func NewHost(d device.Device, budget graph.Bytes, observer func(*Report)) *Host {
	return NewObserved(d, budget, func(e Event) {
		if observer != nil && e.Report != nil {
			observer(e.Report)
		}
	})
}

// NewObserved is NewHost with an observer that hears all that becomes of the jobs.
func NewObserved(d device.Device, budget graph.Bytes, observer func(Event)) *Host {
	return &Host{device: d, ledger: newLedger(budget), observer: observer, wake: make(chan struct{}, 1)}
}

// Add opens a job on the device, fills its persistent storages and hands it its first program. The job begins when Run
// does. After an error there is no such job.
func (h *Host) Add(s Spec, p program.Proven) error {
	if h.find(s.Name) != nil {
		return errTaken(s.Name)
	}
	j := &job{name: s.Name, graph: s.Graph, machine: NewMachine(s.Name, s.Iterations)}
	if h.until != nil {
		j.machine.Step(0, Input{Until: h.until}) // it has no program yet, so that nothing comes of it
	}
	if err := h.change(j, p); err != nil {
		return err
	}
	place, err := h.device.Open(s.Graph, device.JobOptions{Name: s.Name, Seed: s.Seed, Input: s.Input,
		Output: s.Output})
	if err != nil {
		h.ledger.end(s.Name)
		return err
	}
	for _, storage := range s.Graph.Storages {
		if !storage.Role.Persistent() {
			continue
		}
		if to := place.Host(storage.ID); to != nil {
			s.Init(storage, to)
		}
	}
	j.place = place
	h.jobs = append(h.jobs, j)
	return nil
}

// Run trains until every job has ended or ctx is done. Trouble with a job that was added before, or a command that
// cannot be carried out, ends the run.
func (h *Host) Run(ctx context.Context) error {
	for {
		if err := h.drain(); err != nil {
			return err
		}
		if !h.training() {
			return nil
		}
		if err := h.turn(ctx); err != nil {
			return err
		}
	}
}

// Serve trains what there is and what comes until ctx is done or the device fails. Trouble with a job ends that job,
// and a command that cannot be carried out is refused: the observer hears of both.
func (h *Host) Serve(ctx context.Context) error {
	h.serving = true
	for {
		if err := h.drain(); err != nil {
			return err
		}
		if err := h.turn(ctx); err != nil {
			return err
		}
	}
}

// turn waits for the device or a command, and takes what the device has to tell.
func (h *Host) turn(ctx context.Context) error {
	events, err := h.device.Next(ctx, h.wake)
	if err != nil {
		return err
	}
	for i := range events {
		if err := h.step(h.owner(events[i].Job), Input{Event: &events[i]}); err != nil {
			return err
		}
		if err := h.drain(); err != nil {
			return err
		}
	}
	return nil
}

// training reports whether a job has not finished.
func (h *Host) training() bool {
	return slices.ContainsFunc(h.jobs, func(j *job) bool { return j.machine.State() != Finished })
}

// change puts a program that the device can execute in line for a job.
func (h *Host) change(j *job, p program.Proven) error {
	if err := h.runnable(j, p); err != nil {
		return err
	}
	return h.ledger.ask(request{j.name, p, p.Program().Arena})
}

// grant applies the programs for which there is memory, until none is left for which there is.
func (h *Host) grant() error {
	for granted := h.ledger.grant(); len(granted) > 0; granted = h.ledger.grant() {
		for _, r := range granted {
			j := h.find(r.job)
			j.given = append(j.given, r.proven)
			if err := h.step(j, Input{Program: r.proven.Program()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// step steps a job's machine and does what it says.
func (h *Host) step(j *job, in Input) error {
	for _, out := range j.machine.Step(h.device.Now(), in) {
		switch {
		case out.Load != nil:
			if err := j.load(out.Load); err != nil {
				return h.fail(j, err)
			}
			h.ledger.reserved(j.name, out.Load.Arena)
			h.observer(Event{Job: j.name, Applied: &Applied{j.machine.Epoch(), out.Load.Arena}})
		case out.Issue != nil:
			j.place.Issue(out.Issue.Section, out.Issue.Iteration, out.Issue.Drain)
		case out.Report != nil:
			h.observer(Event{Job: j.name, Report: out.Report})
		case out.Home:
			j.touched = max(j.touched, j.place.Touched())
			if err := j.place.Reserve(0); err != nil {
				return h.fail(j, err)
			}
			h.ledger.reserved(j.name, 0)
			h.observer(Event{Job: j.name, Home: true})
		case out.Finished:
			return h.finish(j)
		}
	}
	return nil
}

// owner returns the job of a place. A place is closed in Home only, when all events of it have come.
func (h *Host) owner(place device.Job) *job {
	i := slices.IndexFunc(h.jobs, func(j *job) bool { return j.place == place })
	if i < 0 {
		panic("executor: an event of a job that the host does not have")
	}
	return h.jobs[i]
}

func (h *Host) find(name string) *job {
	if i := slices.IndexFunc(h.jobs, func(j *job) bool { return j.name == name }); i >= 0 {
		return h.jobs[i]
	}
	return nil
}

// mustFind returns a job that the caller has added.
func (h *Host) mustFind(name string) *job {
	j := h.find(name)
	if j == nil {
		panic(fmt.Sprintf("executor: asked about job %q, which the host does not have", name))
	}
	return j
}

// Machine returns the machine of a job, to be asked about its state by the goroutine in Run or after it. It panics if
// there is no such job, as Touched and Weights do.
func (h *Host) Machine(name string) *Machine { return h.mustFind(name).machine }

// Touched returns the end of the highest range of its arenas that a job's commands used. To be called after Run.
func (h *Host) Touched(name string) graph.Bytes { return h.mustFind(name).touched }

// Weights returns a storage's content on the host, nil on a device without data. To be called after Run.
func (h *Host) Weights(name string, s graph.StorageID) []float32 {
	return h.mustFind(name).place.Host(s)
}

// Close gives back what the jobs have on the device, also in the middle of a run that was cut short.
func (h *Host) Close() error {
	var problems []error
	for _, j := range h.jobs {
		problems = append(problems, j.close())
	}
	return errors.Join(problems...)
}
