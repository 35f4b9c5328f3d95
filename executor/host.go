package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tensile/data"
	"tensile/device"
	"tensile/device/lease"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// Spec is a job to be trained: its options for the device, and what the host does with it.
type Spec struct {
	device.JobOptions
	// Graph is the graph to be trained.
	Graph *graph.Graph
	// Begin is how many iterations are complete when the job begins. Init fills in what they came to.
	Begin int
	// Iterations is how many are complete when the job ends.
	Iterations int
	// Init fills the host slot of a persistent storage.
	Init func(s graph.Storage, to []float32)
	// Weight is the job's share of the device against others, under a lease; 0: 1.
	Weight int
	// Every is the number of iterations after each multiple of which the job waits for a Checkpoint, which takes its
	// state just there; 0: it never waits.
	Every int

	// Fault returns why Input could not fill an input, why Mean has no mean, or why the loss is no finite number; nil:
	// there is no such reason. The job ends with that error. Any goroutine may call it. A nil Fault never has a reason.
	Fault func() error
	// Trouble returns an error that Input survives, each time another, or nil. Any goroutine may call it. A nil Trouble
	// never has one.
	Trouble func() error
}

// SpecOf is a task as a host trains it, as long as its loss is a finite number. loss takes that of each iteration, on
// the job's host lane: what it writes may be read once that iteration was reported. A device without data never calls
// it.
func SpecOf(t task.Task, iterations int, loss func(iteration int, loss float32)) Spec {
	var f fault
	options := device.JobOptions{Name: t.Name, Seed: t.Masks(), Input: t.Feeder(f.set)}
	options.Output = t.Reader(func(iteration int, value float32) {
		if err := task.CheckLoss(iteration, value); err != nil {
			f.set(err)
		}
		loss(iteration, value)
	})
	if t.Mean != nil {
		options.Mean = func(ctx context.Context, iteration int, name string, gradient []float32) {
			if err := t.Mean(ctx, iteration, name, gradient); err != nil {
				f.set(err)
			}
		}
	}
	return Spec{JobOptions: options, Graph: t.Graph, Iterations: iterations, Init: t.Init, Fault: f.get,
		Trouble: f.firstError}
}

// fault is the first error of a loader or of a mean, which are called on lanes of the device.
type fault struct {
	// mu guards the other fields.
	mu sync.Mutex
	// err is the first error after which the job ends; nil: there is none.
	err error
	// told are the texts of the errors that the job survives.
	told map[string]bool
	// news are those of them that were not fetched yet; nil: none.
	news error
}

func (f *fault) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, over := errors.AsType[*data.PassedOverError](err); !over {
		f.err = cmp.Or(f.err, err)
		return
	}
	if f.told == nil {
		f.told = make(map[string]bool)
	}
	if text := err.Error(); !f.told[text] {
		f.told[text], f.news = true, errors.Join(f.news, err)
	}
}

func (f *fault) firstError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := f.news
	f.news = nil
	return news
}

func (f *fault) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Host trains jobs on one device. Serve or Poll are called by one goroutine; Submit, Change, Park, Resume, Checkpoint,
// Stop, Remove and Until by any. It takes any program that it is given: the controller sees to it that the arenas of
// all jobs fit together.
type Host struct {
	// device is what the jobs train on.
	device device.Device
	// jobs are the jobs that were not dropped.
	jobs []*job
	// wanted are the programs that jobs are to change to, in the order in which they were asked for.
	wanted []wanted
	// observer is told all that becomes of jobs.
	observer func(Event)
	// until is the number of complete iterations after which jobs rest; nil: they do not.
	until *int
	// sharing is how the jobs share memory with others.
	sharing Sharing
	// answers are those of the lease that are still to be carried out.
	answers []lease.Output
	// dropped are the places that were closed since the device was asked for events last. Events of theirs are passed
	// over.
	dropped []device.Job

	// mu guards commands.
	mu sync.Mutex
	// commands are those of other goroutines that are still to be carried out.
	commands []command
	// wake has a value if commands has.
	wake chan struct{}
}

// wanted is a program that a job is to train with.
type wanted struct {
	// job is the job that is to change.
	job *job
	// proven is the program to change to.
	proven proof.Proven
	// groups are its groups; nil without a lease.
	groups *program.Groups
}

// NewHost returns a host for jobs on a device. The goroutine in Serve or Poll tells observer all that becomes of them.
func NewHost(d device.Device, observer func(Event)) *Host {
	return &Host{device: d, observer: observer, wake: make(chan struct{}, 1)}
}

// add opens a job on the device, fills its persistent storages and gives it its first program. After an error there is
// no such job.
func (h *Host) add(s Spec, p proof.Proven) error {
	j := &job{name: s.Name, graph: s.Graph, machine: NewMachine(s.Name, s.Begin, s.Iterations), fault: s.Fault,
		trouble: s.Trouble, reduces: s.Mean != nil}
	j.machine.weight, j.machine.snapshotEvery = s.Weight, s.Every
	if h.until != nil {
		j.machine.Step(0, Input{Until: h.until}) // it has no program yet, so that nothing comes of it
	}
	if err := h.change(j, p); err != nil {
		return err
	}
	place, err := h.device.Open(s.Graph, s.JobOptions)
	if err != nil {
		h.forget(j)
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
	if h.pages() {
		if err := h.backPages(j, nil); err != nil {
			return errors.Join(err, h.drop(j))
		}
	}
	h.jobs = append(h.jobs, j)
	return nil
}

// Serve trains what there is and what comes until ctx is done or the device fails. Trouble with a job ends that job
// alone, and a command that cannot be carried out is refused: the observer hears of both.
func (h *Host) Serve(ctx context.Context) error {
	for {
		if err := h.drain(); err != nil {
			return err
		}
		if err := h.waitOnce(ctx); err != nil {
			return err
		}
	}
}

// Poll is one turn of Serve: it carries out commands, and waits for the device once if a job has something in flight.
// It reports whether one had. It is for callers that interleave a host with something else on one goroutine.
func (h *Host) Poll(ctx context.Context) (bool, error) {
	if err := h.drain(); err != nil {
		return false, err
	}
	for _, j := range h.jobs {
		if j.machine.inFlight() {
			return true, h.waitOnce(ctx)
		}
	}
	return false, nil
}

// waitOnce waits for the device or a command, and takes what the device has to tell.
func (h *Host) waitOnce(ctx context.Context) error {
	events, err := h.waitEvents(ctx)
	if err != nil {
		return err
	}
	h.dropped = h.dropped[:0]
	for i := range events {
		if slices.Contains(h.dropped, events[i].Job) {
			continue
		}
		if err := h.step(h.ownerOf(events[i].Job), Input{Event: &events[i]}); err != nil {
			return err
		}
		if err := h.drain(); err != nil {
			return err
		}
	}
	return h.wakeLease()
}

// change has a job train with a program that the device can execute, once all commands are carried out. It takes the
// place of one that was wanted before.
func (h *Host) change(j *job, p proof.Proven) error {
	if err := h.checkRunnable(j, p); err != nil {
		return err
	}
	groups, err := h.divide(p)
	if err != nil {
		return fmt.Errorf("job %s: %w", j.name, err)
	}
	h.forget(j)
	h.wanted = append(h.wanted, wanted{j, p, groups})
	return nil
}

// forget drops a program that a job was to train with.
func (h *Host) forget(j *job) {
	h.wanted = slices.DeleteFunc(h.wanted, func(w wanted) bool { return w.job == j })
}

// applyPrograms gives jobs the programs that are wanted for them: those that which names.
func (h *Host) applyPrograms(which func(wanted) bool) error {
	for at := slices.IndexFunc(h.wanted, which); at >= 0; at = slices.IndexFunc(h.wanted, which) {
		w := h.wanted[at]
		h.wanted = slices.Delete(h.wanted, at, at+1)
		w.job.given = append(w.job.given, w.proven)
		if err := h.step(w.job, Input{Program: w.proven.Program(), Groups: w.groups,
			Tell: h.sharing.Method != ""}); err != nil {
			return err
		}
	}
	return nil
}

// step steps a job's machine, does what it says, and what follows from that by the lease.
func (h *Host) step(j *job, in Input) error {
	if err := h.carryOut(j, in); err != nil {
		return err
	}
	return h.carryOutGrants()
}

// carryOut steps a job's machine and does what it says.
func (h *Host) carryOut(j *job, in Input) error {
	for _, out := range j.machine.Step(h.device.Now(), in) {
		switch {
		case out.Load != nil:
			if err := j.load(out.Load); err != nil {
				h.fail(j, err)
				return nil
			}
			h.observer(Event{Job: j.name, Applied: &Applied{j.machine.Epoch(), out.Load.Arena}})
		case out.Issue != nil:
			i := out.Issue
			j.place.Issue(i.Section, i.From, i.To, i.Iteration, i.Drain)
		case out.Hold != nil:
			if err := h.backPages(j, out.Hold.Pages); err != nil {
				h.fail(j, err)
				return nil
			}
		case out.Lease != nil:
			h.stepLease(*out.Lease)
		case out.Report != nil:
			// such as: the iteration was trained with zeros
			if err := j.failureAfter(out.Report.Iteration); err != nil {
				h.fail(j, err)
				return nil
			}
			if j.trouble != nil {
				if err := j.trouble(); err != nil {
					h.observer(Event{Job: j.name, Troubled: err})
				}
			}
			out.Report.Touched = j.place.Touched()
			h.observer(Event{Job: j.name, Report: out.Report})
		case out.Trace != nil:
			h.observer(Event{Job: j.name, Trace: out.Trace})
		case out.Home:
			j.touched = max(j.touched, j.place.Touched())
			if err := j.place.Reserve(0); err != nil {
				h.fail(j, err)
				return nil
			}
			h.observer(Event{Job: j.name, Home: true})
		case out.Snapshot != nil:
			err := j.failureAfter(out.Snapshot.Iteration)
			if _, useless := errors.AsType[*task.DivergedError](err); useless {
				h.fail(j, err)
				return nil
			}
			h.observer(Event{Job: j.name, Snapshot: j.takeState(out.Snapshot)})
		case out.Parked != 0:
			h.observer(Event{Job: j.name, Parked: out.Parked})
		case out.Finished:
			return h.finish(j)
		}
	}
	return nil
}

// backPages has the device back these pages of a job's arena, and no others.
func (h *Host) backPages(j *job, pages program.Pages) error {
	if !h.pages() {
		return nil
	}
	return j.place.(device.PagedJob).Hold(pages)
}

// ownerOf returns the job of a place that was not dropped.
func (h *Host) ownerOf(place device.Job) *job {
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

// Close gives back what the jobs have on the device, also in the middle of a run that was cut short.
func (h *Host) Close() error {
	var problems []error
	for _, j := range h.jobs {
		problems = append(problems, j.close())
		if j.taking != nil {
			j.taking.Release()
		}
	}
	return errors.Join(problems...)
}
