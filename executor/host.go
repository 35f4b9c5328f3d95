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
	Input      func(iteration int, s graph.StorageID, to []float32)
	Output     func(iteration int, s graph.StorageID, from []float32)
}

// Host trains jobs on one device. Add and Run are called by one goroutine; Change and Stop by any.
type Host struct {
	device   device.Device
	ledger   *ledger
	jobs     []*job
	observer func(*Report)

	mu     sync.Mutex
	wishes []wish
	wake   chan struct{}
}

// wish is what another goroutine wants for a job.
type wish struct {
	job     string
	program *program.Program // nil: stop
}

type job struct {
	name    string
	graph   *graph.Graph
	machine *Machine
	place   device.Job
	touched graph.Bytes
}

// NewHost returns a host for jobs on a device. The arenas of all jobs together stay within budget, 0 meaning no limit.
// observer, if not nil, is called with the report of every iteration, by the goroutine in Run.
func NewHost(d device.Device, budget graph.Bytes, observer func(*Report)) *Host {
	return &Host{device: d, ledger: newLedger(budget), observer: observer, wake: make(chan struct{}, 1)}
}

// Add opens a job on the device, fills its persistent storages and hands it its first program, which must have been
// checked. The job begins when Run does. After an error there is no such job.
func (h *Host) Add(s Spec, p *program.Program) error {
	if h.find(s.Name) != nil {
		return fmt.Errorf("add job %s: there is a job of that name", s.Name)
	}
	j := &job{name: s.Name, graph: s.Graph, machine: NewMachine(s.Name, s.Iterations)}
	if err := h.change(j, p); err != nil {
		return err
	}
	place, err := h.device.Open(s.Graph, device.JobOptions{Name: s.Name, Seed: s.Seed, Input: s.Input, Output: s.Output})
	if err != nil {
		h.ledger.end(s.Name)
		return err
	}
	for _, storage := range s.Graph.Storages {
		if to := place.Host(storage.ID); storage.Role.Persistent() && to != nil {
			s.Init(storage, to)
		}
	}
	j.place = place
	h.jobs = append(h.jobs, j)
	return nil
}

// Change gives a job a new program, to be applied at an iteration boundary when there is memory for it. Called from
// the observer it is heeded before the next event.
func (h *Host) Change(name string, p *program.Program) { h.wish(wish{name, p}) }

// Stop lets a job end after the iterations in flight.
func (h *Host) Stop(name string) { h.wish(wish{job: name}) }

func (h *Host) wish(w wish) {
	h.mu.Lock()
	h.wishes = append(h.wishes, w)
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run trains until every job has finished or ctx is done.
func (h *Host) Run(ctx context.Context) error {
	if err := h.grant(); err != nil {
		return err
	}
	for h.training() {
		events, err := h.device.Next(ctx, h.wake)
		if err != nil {
			return err
		}
		for i := range events {
			if err := h.step(h.owner(events[i].Job), Input{Event: &events[i]}); err != nil {
				return err
			}
			if err := h.heed(); err != nil {
				return err
			}
		}
		if err := h.heed(); err != nil {
			return err
		}
	}
	return nil
}

// training reports whether a job has not finished.
func (h *Host) training() bool {
	return slices.ContainsFunc(h.jobs, func(j *job) bool { return j.machine.State() != Finished })
}

// heed carries out the wishes of other goroutines.
func (h *Host) heed() error {
	h.mu.Lock()
	wishes := h.wishes
	h.wishes = nil
	h.mu.Unlock()
	for _, w := range wishes {
		j := h.find(w.job)
		if j == nil {
			return fmt.Errorf("there is no job %s", w.job)
		}
		if j.machine.State() == Finished {
			continue
		}
		if w.program != nil {
			if err := h.change(j, w.program); err != nil {
				return err
			}
		} else if err := h.step(j, Input{Stop: true}); err != nil {
			return err
		}
	}
	return h.grant()
}

// change puts a program that the device can execute in line for a job.
func (h *Host) change(j *job, p *program.Program) error {
	if err := h.runnable(j, p); err != nil {
		return err
	}
	return h.ledger.ask(j.name, p)
}

// runnable checks that the device can execute the steps of a program as the plan says.
func (h *Host) runnable(j *job, p *program.Program) error {
	for slot, step := range p.Plan.Steps {
		variant, ok := device.Find(h.device.Variants(j.graph, step.Op), step.Variant)
		if name := j.graph.Ops[step.Op].Name; !ok {
			return fmt.Errorf("job %s, step %d: the device has no variant %q of %s", j.name, slot, step.Variant, name)
		} else if step.Scratch < variant.Scratch {
			return fmt.Errorf("job %s, step %d: %s needs %s of scratch, the plan grants %s", j.name, slot, name, variant.Scratch, step.Scratch)
		}
	}
	return nil
}

// grant applies the programs for which there is memory, until none is left for which there is.
func (h *Host) grant() error {
	for granted := h.ledger.grant(); len(granted) > 0; granted = h.ledger.grant() {
		for _, r := range granted {
			if err := h.step(h.find(r.job), Input{Program: r.program}); err != nil {
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
		case out.Reserve != nil:
			if err := j.place.Reserve(*out.Reserve); err != nil {
				return err
			}
			h.ledger.reserved(j.name, *out.Reserve)
		case out.Issue != nil:
			j.place.Issue(out.Issue.Section, out.Issue.Iteration, out.Issue.Drain)
		case out.Report != nil:
			if h.observer != nil {
				h.observer(out.Report)
			}
		case out.Home:
			j.touched = max(j.touched, j.place.Touched())
			if err := j.place.Reserve(0); err != nil {
				return err
			}
			h.ledger.reserved(j.name, 0)
		case out.Finished:
			h.ledger.end(j.name)
		}
	}
	return nil
}

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

// Machine returns the machine of a job, to be asked about its state by the goroutine in Run or after it.
func (h *Host) Machine(name string) *Machine { return h.find(name).machine }

// Touched returns the end of the highest range of its arenas that a job's commands used. To be called after Run.
func (h *Host) Touched(name string) graph.Bytes { return h.find(name).touched }

// Weights returns a storage's content on the host, nil on a device without data. To be called after Run.
func (h *Host) Weights(name string, s graph.StorageID) []float32 { return h.find(name).place.Host(s) }

// Close gives back what the jobs have on the device, also in the middle of a run that was cut short.
func (h *Host) Close() error {
	var problems []error
	for _, j := range h.jobs {
		if err := j.place.Close(); err != nil {
			problems = append(problems, fmt.Errorf("close job %s: %w", j.name, err))
		}
	}
	return errors.Join(problems...)
}
