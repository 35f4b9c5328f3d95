package agent

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/executor"
	"tensile/internal/long"
	"tensile/plan/proof"
	"tensile/wire"
)

// TestChaos has a machine live through orders that are lost, doubled and out of order, a bus that comes and goes,
// fetches that fail, and a host that takes its time and finishes, refuses and fails jobs as it likes. Nothing that is
// forbidden ever happens, and when all has come to rest it is as the last orders say.
func TestChaos(t *testing.T) {
	seeds := long.Rounds(400, 4000)
	var ran, finished, stopped, failed, refused, written int
	for seed := range seeds {
		w := newChaos(t, seed)
		w.run()
		for _, j := range w.rest() {
			switch {
			case j.State == wire.Finished:
				finished++
			case j.State == wire.Stopped:
				stopped++
			case j.State == wire.Failed:
				failed++
			case j.Error != "":
				refused++
			case j.State == wire.Running:
				ran++
			}
		}
		written += w.written
		if steps, err := Replay(&w.recording); err != nil || w.recorder != nil && steps == 0 {
			t.Fatalf("seed %d: replayed in %d steps: %v", seed, steps, err)
		}
	}
	if min(ran, finished, stopped, failed, refused, written) < int(seeds)/100 {
		t.Errorf("of %d seeds %d jobs ran in the end, %d had finished, %d were stopped, %d had failed, %d had a "+
			"layout refused, %d checkpoints: too few to show much",
			seeds, ran, finished, stopped, failed, refused, written)
	}
}

// chaos is a machine and the world around it.
type chaos struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	m    *Machine

	online  bool
	sent    []*wire.Orders // all that were ever ordered; the last holds
	seeds   uint64
	epoch   int64
	owners  map[int64]uint64     // of each epoch: the seed of its job
	fetches []Input              // on their way
	wishes  []Output             // of the host, in order
	hosted  map[string]*chaosJob // what the host has
	events  []*executor.Event    // on their way, in order
	busy    map[Ticket]bool      // something is being fetched
	keeping map[string]bool      // what is being read
	writing map[Ticket]string    // whose checkpoints
	written int
	status  wire.Status // the newest

	now       time.Duration
	recording bytes.Buffer
	recorder  *Recorder
}

// chaosJob is a job of the host.
type chaosJob struct {
	spec       wire.Spec
	epoch      int64
	iterations int
	over       bool
}

func newChaos(t *testing.T, seed uint64) *chaos {
	p := Process{Executor: "x1", Life: "life", Device: "device"}
	w := &chaos{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), m: NewMachine(p),
		hosted: map[string]*chaosJob{}, busy: map[Ticket]bool{}, owners: map[int64]uint64{}, keeping: map[string]bool{},
		writing: map[Ticket]string{},
		sent:    []*wire.Orders{{Executor: "x1"}}}
	if seed%20 == 0 {
		w.recorder = NewRecorder(&w.recording, func(err error) { t.Error(err) })
		w.recorder.begin(p)
	}
	return w
}

func (w *chaos) check(ok bool, format string, values ...any) {
	w.t.Helper()
	if !ok {
		w.t.Fatalf("seed %d: "+format, append([]any{w.seed}, values...)...)
	}
}

// run lets things happen.
func (w *chaos) run() {
	for range 20 + w.r.IntN(200) {
		switch n := w.r.IntN(100); {
		case n < 8:
			w.sent = append(w.sent, w.ordered())
			if w.r.IntN(3) > 0 {
				w.deliver(len(w.sent) - 1)
			}
		case n < 12:
			w.deliver(w.r.IntN(len(w.sent))) // late, or a second time
		case n < 15:
			w.connect(!w.online)
		case n < 20:
			w.step(Input{Tick: true})
		case n < 40:
			w.fetched()
		case n < 55:
			w.heed()
		case n < 80:
			w.hear()
		default:
			w.train()
		}
	}
}

// ordered makes orders from the last ones: jobs come and go, are planned anew, are stopped, are replaced.
func (w *chaos) ordered() *wire.Orders {
	last := w.sent[len(w.sent)-1]
	o := &wire.Orders{Executor: "x1", Number: last.Number + 1}
	for _, name := range []string{"a", "b", "c"} {
		i := slices.IndexFunc(last.Jobs, func(j wire.Assignment) bool { return j.Spec.Name == name })
		w.seeds++ // no two jobs of a name are alike
		job := wire.Assignment{Spec: wire.Spec{Name: name, Iterations: 4, Seed: w.seeds}}
		job.Spec.Checkpoint.Iterations = int(w.seed % 3)
		switch n := w.r.IntN(10); {
		case i < 0 && n < 5, i >= 0 && n < 2:
			continue
		case i >= 0 && n > 2:
			job = last.Jobs[i]
			job.Stop = job.Stop || w.r.IntN(8) == 0
			job.Spec.Priority = w.r.IntN(3)
		}
		if w.r.IntN(3) > 0 {
			w.epoch++
			job.Epoch = w.epoch
			w.owners[w.epoch] = job.Spec.Seed
		}
		o.Jobs = append(o.Jobs, job)
	}
	return o
}

func (w *chaos) deliver(i int) { w.step(Input{Orders: w.sent[i]}) }

func (w *chaos) connect(online bool) {
	w.online = online
	w.step(Input{Online: &online})
}

// A layout and a graph are good or bad for good.
func badGraph(s wire.Spec) bool    { return s.Seed%11 == 3 }
func badLayout(epoch int64) bool   { return epoch%7 == 3 }
func hostRefuses(epoch int64) bool { return epoch%7 == 5 }
func hostFails(epoch int64) bool   { return epoch%17 == 9 }

// fetched lets a fetch come to its end: any of them.
func (w *chaos) fetched() {
	if len(w.fetches) == 0 {
		return
	}
	i := w.r.IntN(len(w.fetches))
	in := w.fetches[i]
	w.fetches = slices.Delete(w.fetches, i, i+1)
	again := w.r.IntN(5) == 0
	switch {
	case in.Prepared != nil:
		delete(w.busy, in.Prepared.Ticket)
		if again {
			in.Prepared = &Prepared{Ticket: in.Prepared.Ticket, Err: errScript, Again: true}
		}
	case in.Fetched != nil:
		delete(w.busy, in.Fetched.Ticket)
		if again {
			in.Fetched = &Fetched{Ticket: in.Fetched.Ticket, Epoch: in.Fetched.Epoch, Err: errScript, Again: true}
		}
	case in.Stored != nil && again:
		in.Stored = &Stored{in.Stored.Ticket, errScript}
	case in.Kept != nil:
		delete(w.keeping, in.Kept.Weights[0])
	case in.Written != nil:
		w.written++
		delete(w.writing, in.Written.Ticket)
	}
	w.step(in)
}

// heed has the host carry out one wish.
func (w *chaos) heed() {
	if len(w.wishes) == 0 {
		return
	}
	o := w.wishes[0]
	w.wishes = w.wishes[1:]
	switch {
	case o.Open != nil:
		name, epoch := o.Open.Spec.Name, o.Open.Proven.Program().Plan.Epoch
		w.check(w.hosted[name] == nil, "job %s is opened twice", name)
		if hostFails(epoch) {
			w.tell(executor.Event{Job: name, Ended: &executor.Ended{Err: errScript}})
			return
		}
		w.hosted[name] = &chaosJob{spec: o.Open.Spec}
		w.apply(name, epoch)
	case o.Change != nil:
		name, epoch := o.Change.Job, o.Change.Proven.Program().Plan.Epoch
		j := w.hosted[name]
		switch {
		case j == nil || hostRefuses(epoch):
			w.tell(executor.Event{Job: name, Refused: errScript})
		case j.over:
		default:
			w.tell(executor.Event{Job: name, Home: true})
			if hostFails(epoch) {
				delete(w.hosted, name)
				w.tell(executor.Event{Job: name, Ended: &executor.Ended{Err: errScript, Iterations: j.iterations}})
				return
			}
			w.apply(name, epoch)
		}
	case o.Take != nil:
		s := &executor.Snapshot{Err: errScript}
		if j := w.hosted[o.Take.Job]; j != nil && !j.over {
			s = &executor.Snapshot{Iteration: j.iterations}
		}
		w.tell(executor.Event{Job: o.Take.Job, Snapshot: s})
	case o.Stop != "":
		if j := w.hosted[o.Stop]; j == nil {
			w.tell(executor.Event{Job: o.Stop, Refused: errScript})
		} else if !j.over {
			w.end(o.Stop, j)
		}
	case o.Remove != "":
		w.check(!w.keeping[o.Remove], "job %s is removed while it is read", o.Remove)
		if j := w.hosted[o.Remove]; j != nil && !j.over {
			w.end(o.Remove, j)
		}
		delete(w.hosted, o.Remove)
		w.tell(executor.Event{Job: o.Remove, Removed: true})
	}
}

func (w *chaos) apply(name string, epoch int64) {
	j := w.hosted[name]
	w.check(epoch > j.epoch, "job %s goes from epoch %d to %d", name, j.epoch, epoch)
	w.check(!badLayout(epoch), "job %s trains with a layout that was not proven", name)
	j.epoch = epoch
	w.tell(executor.Event{Job: name, Applied: &executor.Applied{Epoch: epoch, Arena: 100}})
}

func (w *chaos) end(name string, j *chaosJob) {
	j.over = true
	w.tell(executor.Event{Job: name, Home: true})
	w.tell(executor.Event{Job: name, Ended: &executor.Ended{Iterations: j.iterations}})
}

// train has a job train for an iteration.
func (w *chaos) train() {
	name := []string{"a", "b", "c"}[w.r.IntN(3)]
	if j := w.hosted[name]; j != nil && !j.over {
		w.tell(executor.Event{Job: name, Report: &executor.Report{Job: name, Epoch: j.epoch, Iteration: j.iterations}})
		if j.iterations++; j.iterations == j.spec.Iterations {
			w.end(name, j)
		}
	}
}

func (w *chaos) tell(e executor.Event) { w.events = append(w.events, &e) }

// hear tells the machine of what the host observed first.
func (w *chaos) hear() {
	if len(w.events) > 0 {
		e := w.events[0]
		w.events = w.events[1:]
		w.step(Input{Event: e})
	}
}

func (w *chaos) step(in Input) {
	w.now += time.Second / 4
	outputs := w.m.Step(w.now, in)
	w.recorder.step(w.now, in, outputs)
	for _, o := range outputs {
		switch {
		case o.Prepare != nil:
			w.fetch(o.Prepare.Ticket)
			p := &Prepared{Ticket: o.Prepare.Ticket}
			if badGraph(o.Prepare.Spec) {
				p.Err = errScript
			}
			w.fetches = append(w.fetches, Input{Prepared: p})
		case o.Fetch != nil:
			w.fetch(o.Fetch.Ticket)
			f := &Fetched{Ticket: o.Fetch.Ticket, Epoch: o.Fetch.Epoch, Proven: provenOf(o.Fetch.Epoch)}
			if badLayout(f.Epoch) {
				f.Proven, f.Err = proof.Proven{}, errScript
			}
			w.fetches = append(w.fetches, Input{Fetched: f})
		case o.Keep != nil:
			j := w.hosted[o.Keep.Spec.Name]
			w.check(j != nil && j.over && isSameJob(j.spec, o.Keep.Spec), "job %s is to be read, the host has %+v",
				o.Keep.Spec.Name, j)
			w.keeping[o.Keep.Spec.Name] = true
			w.fetches = append(w.fetches,
				Input{Kept: &Kept{Ticket: o.Keep.Ticket, Weights: map[int32]string{0: o.Keep.Spec.Name}}})
		case o.Write != nil:
			w.check(w.writing[o.Write.Ticket] == "" && o.Write.Snapshot.Iteration > 0, "job %s is written after %d",
				o.Write.Spec.Name, o.Write.Snapshot.Iteration)
			w.writing[o.Write.Ticket] = o.Write.Spec.Name
			c := &wire.Checkpoint{Iteration: o.Write.Snapshot.Iteration}
			w.fetches = append(w.fetches, Input{Written: &Written{Ticket: o.Write.Ticket, Checkpoint: c}})
		case o.Discard != nil:
			for _, job := range w.writing {
				w.check(job != o.Discard.Job, "checkpoints of %s go while one is written", job)
			}
		case o.Store != nil:
			w.check(w.online, "a result is stored nowhere")
			w.fetches = append(w.fetches, Input{Stored: &Stored{Ticket: o.Store.Ticket}})
		case o.Status != nil:
			w.check(w.online && o.Status.Number == w.status.Number+1 && o.Status.Orders >= w.status.Orders,
				"status %d of orders %d follows status %d of orders %d; online: %t", o.Status.Number, o.Status.Orders,
				w.status.Number, w.status.Orders, w.online)
			w.status = *o.Status
			w.same()
		case o.Report != nil:
			w.check(w.online, "a report is sent to nobody")
		case o.Leave:
			w.check(w.m.leaveOrdered && len(w.hosted) == 0, "the executor leaves %d jobs behind", len(w.hosted))
		case o.Event == nil:
			w.wishes = append(w.wishes, o)
		}
	}
}

// same checks that the status of a job that its orders name is not about another.
func (w *chaos) same() {
	for _, ordered := range w.sent[w.status.Orders].Jobs {
		for _, j := range w.status.Jobs {
			if j.Name == ordered.Spec.Name && j.Epoch > 0 {
				w.check(w.owners[j.Epoch] == ordered.Spec.Seed, "the status of %s, ordered with seed %d, is %+v, of "+
					"another job", j.Name, ordered.Spec.Seed, j)
			}
		}
	}
}

func (w *chaos) fetch(t Ticket) {
	w.check(!w.busy[t], "two things are fetched for one job at a time")
	w.busy[t] = true
}

// rest delivers the last orders, lets everything come to its end, and returns where the jobs are then. At last they go.
func (w *chaos) rest() []wire.JobStatus {
	last := w.sent[len(w.sent)-1]
	w.deliver(len(w.sent) - 1)
	w.connect(true)
	for round := 0; len(w.fetches)+len(w.wishes)+len(w.events) > 0 || slices.ContainsFunc(w.m.jobs, func(j *job) bool {
		return j.retryDue
	}); round++ {
		w.check(round < 1000, "it never comes to rest")
		w.fetched()
		w.heed()
		w.hear()
		if round%10 == 0 {
			w.step(Input{Tick: true})
		}
	}
	w.step(Input{Tick: true})
	w.check(w.status.Orders == last.Number && len(w.status.Jobs) == len(last.Jobs),
		"orders %d of %d jobs, the status is of %d of %d",
		last.Number, len(last.Jobs), w.status.Orders, len(w.status.Jobs))
	running := 0
	for _, want := range last.Jobs {
		i := slices.IndexFunc(w.status.Jobs, func(j wire.JobStatus) bool { return j.Name == want.Spec.Name })
		w.check(i >= 0, "job %s is not in the status", want.Spec.Name)
		if w.settled(want, w.status.Jobs[i]) {
			running++
		}
	}
	w.check(len(w.hosted) == running, "the host has %d jobs, %d train", len(w.hosted), running)
	jobs := w.status.Jobs
	w.sent = append(w.sent, &wire.Orders{Executor: "x1", Number: last.Number + 1, Leave: true})
	w.deliver(len(w.sent) - 1)
	for !w.m.hasLeft {
		w.check(len(w.wishes)+len(w.events)+len(w.fetches) > 0, "the executor does not leave")
		w.fetched()
		w.heed()
		w.hear()
	}
	w.check(len(w.status.Jobs) == 0, "the executor leaves with %d jobs in its status", len(w.status.Jobs))
	return jobs
}

// settled checks a job that came to rest against what was ordered, and reports whether the host has it.
func (w *chaos) settled(want wire.Assignment, got wire.JobStatus) bool {
	what := fmt.Sprintf("%+v is %+v", want, got)
	j := w.hosted[want.Spec.Name]
	switch got.State {
	case wire.Finished:
		w.check(got.Iteration == want.Spec.Iterations && got.Result != nil && !badGraph(want.Spec), "%s", what)
	case wire.Stopped:
		w.check(want.Stop && (got.Result != nil) == (got.Epoch > 0) && got.Iteration < want.Spec.Iterations, "%s", what)
	case wire.Failed:
		w.check(got.Error != "", "%s", what)
	case wire.Waiting:
		w.check(!want.Stop && got.Epoch == 0 && !badGraph(want.Spec) && (want.Epoch == 0 || badLayout(want.Epoch) &&
			got.Error != ""), "%s", what)
	case wire.Running:
		w.check(!want.Stop && j != nil && isSameJob(j.spec, want.Spec) && j.epoch == got.Epoch &&
			j.iterations == got.Iteration && got.Arena == 100, "%s, the host has %+v", what, j)
		bad := badLayout(want.Epoch) || hostRefuses(want.Epoch)
		w.check(got.Epoch == want.Epoch && got.Error == "" || bad && got.Epoch < want.Epoch && got.Error != "", "%s",
			what)
	}
	w.check(got.State == wire.Running || j == nil && got.Arena == 0, "%s, the host has %+v", what, j)
	return got.State == wire.Running
}
