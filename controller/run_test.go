package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/wire"
	"tensile/wire/bustest"
)

// office is a controller that runs on a bus within the test, on virtual time, and whose planner waits to be let on.
type office struct {
	t         *testing.T
	bus       *bustest.Bus
	config    Config
	planner   *plans.Worker
	plans     chan *plans.Request // that are being made
	let       chan struct{}       // lets a plan be made
	forgotten []string
	lines     strings.Builder // of the log
	recording bytes.Buffer
	end       func(why error)
	ended     chan error
	full      string // which store is
}

func newOffice(t *testing.T) *office {
	link := cost.Link{Rate: 100e6, Latency: time.Microsecond}
	c := Config{Device: "model", Align: 64, Out: link, In: link, Policy: "tensile", SettleReports: 1, Alpha: 1}
	f := &office{t: t, bus: bustest.New(), config: c, planner: plannerOf(c, profile),
		plans: make(chan *plans.Request, 1), let: make(chan struct{}),
		ended: make(chan error, 1)}
	f.begin(c)
	return f
}

// begin starts a controller on the bus.
func (f *office) begin(c Config) {
	ctx, cancel := context.WithCancelCause(f.t.Context())
	f.end = cancel
	ready := make(chan struct{})
	o := Options{Config: c, PlanDevice: f.planner.Device, Plan: f.plan, Ready: func() { close(ready) },
		Log:      slog.New(slog.NewTextHandler(&f.lines, nil)),
		Full:     func() string { return f.full },
		Launcher: Launcher{Forgotten: func(name string) { f.forgotten = append(f.forgotten, name) }},
		Record:   NewRecorder(&f.recording, func(err error) { f.t.Error(err) })}
	go func() { f.ended <- Run(ctx, f.bus, o) }()
	<-ready
}

// A store that is full is told, and what would make room is not refused.
func TestFullIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		defer f.close()
		f.full = "the store is full"
		answer := f.submit("a", 1)
		<-f.plans
		f.let <- struct{}{}
		<-answer
		if a := f.ask(wire.Request{Verb: wire.Jobs}); a.Trouble != f.full || a.Error != "" {
			t.Errorf("jobs says %q, %q", a.Trouble, a.Error)
		}
		if a := f.ask(wire.Request{Verb: wire.Stop, Job: "a"}); a.Error != "" {
			t.Errorf("stop says %q", a.Error)
		}
	})
}

// plan is a planner that waits until it is let on, or nobody wants its plan any more.
func (f *office) plan(ctx context.Context, p *plans.Request) *plans.Result {
	f.plans <- p
	select {
	case <-f.let:
		return f.planner.Plan(ctx, p)
	case <-ctx.Done():
		return nil
	}
}

// close ends the controller and the bus.
func (f *office) close() {
	f.t.Helper()
	f.stop()
	f.bus.Close()
}

// stop ends the controller.
func (f *office) stop() {
	f.t.Helper()
	why := errors.New("it is over")
	f.end(why)
	if err := <-f.ended; !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		f.t.Error(err)
	}
}

// beat has an executor say that it lives.
func (f *office) beat(name string, number int64, jobs ...wire.JobStatus) {
	s := wire.Status{Executor: name, Number: number, Life: "1", Device: "model", Jobs: jobs}
	if err := f.bus.Put(f.t.Context(), wire.StatusKey(name), wire.Encode(s)); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait() // else what comes next may be heard before
}

func (f *office) ask(q wire.Request) wire.Answer {
	data, err := f.bus.Ask(f.t.Context(), wire.ControlSubject, wire.Encode(q))
	if err != nil {
		f.t.Error(err)
	}
	a, err := wire.DecodeAs[wire.Answer](data)
	if err != nil {
		f.t.Error(err)
	}
	return a
}

// submit submits a job, and returns where its answer comes.
func (f *office) submit(name string, seed uint64) <-chan wire.Answer {
	g := graphtest.New(rand.New(rand.NewPCG(seed, 1)), graphtest.Options{})
	text, err := json.Marshal(g)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.bus.Store(f.t.Context(), wire.Graphs, wire.GraphObject(g.Digest()), text); err != nil {
		f.t.Fatal(err)
	}
	answer := make(chan wire.Answer, 1)
	go func() {
		answer <- f.ask(wire.Request{Verb: wire.Submit,
			Specs: []wire.Spec{{Name: name, Model: "random", Graph: g.Digest(), Iterations: endless}}})
	}()
	return answer
}

// jobs asks for all jobs, and fails the test if that takes any time.
func (f *office) jobs() map[string]wire.Record {
	f.t.Helper()
	before := time.Now()
	records := make(map[string]wire.Record)
	for _, r := range f.ask(wire.Request{Verb: wire.Jobs}).Jobs {
		records[r.Spec.Name] = r
	}
	if took := time.Since(before); took > 0 {
		f.t.Errorf("a request took %v", took)
	}
	return records
}

// A budget that was set while a controller ran counts after its restart, and the log says so; one that is given at the
// start comes before it for good. What is damaged is passed over with a line.
func TestBudgetOutlives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		defer f.close()
		c := f.config
		f.ask(wire.Request{Verb: wire.SetBudget, Budget: 4 * graph.MiB})
		again := func(budget, want graph.Bytes, line string) {
			t.Helper()
			f.stop()
			c.Budget = budget
			f.lines.Reset()
			f.begin(c)
			if got := f.ask(wire.Request{Verb: wire.Jobs}).Budget; got != want {
				t.Errorf("after a restart with --budget %s the budget is %s, want %s", budget, got, want)
			}
			if text := f.lines.String(); !strings.Contains(text, line) || line == "" && text != "" {
				t.Errorf("after a restart with --budget %s the log has %q, want %q", budget, text, line)
			}
		}
		again(0, 4*graph.MiB, "the budget is 4MiB, as tensile device budget has set it")
		again(8*graph.MiB, 8*graph.MiB,
			"the budget is 8MiB, by --budget; that which tensile device budget had set, 4MiB")
		again(0, 0, "")
		object := wire.SettingsObject(c.Device)
		if err := f.bus.Store(t.Context(), wire.Administration, object, []byte("torn")); err != nil {
			t.Fatal(err)
		}
		again(0, 0, "what tensile device budget has set is passed over")
	})
}

// Who asks learns whether executors were started by hand: files may be on their machines.
func TestByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		defer f.close()
		if f.ask(wire.Request{Verb: wire.Jobs}).ByHand {
			t.Error("nobody has started an executor")
		}
		f.beat("lab", 1)
		synctest.Wait()
		if !f.ask(wire.Request{Verb: wire.Jobs}).ByHand {
			t.Error("lab was started by hand")
		}
		time.Sleep(time.Minute)
		if f.ask(wire.Request{Verb: wire.Jobs}).ByHand {
			t.Error("lab has gone")
		}
	})
}

// While a plan is made for longer than an executor may be silent, every heartbeat is heard and every request answered.
// An executor that beats is kept, one that does not is given up.
func TestPlanningHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		f.beat("lab", 1)
		f.beat("mute", 1)
		answer := f.submit("a", 1)
		<-f.plans
		const beats = 1000
		for i := range beats {
			time.Sleep(3 * 15 * time.Second / beats)
			f.beat("lab", int64(2+i))
			if synctest.Wait(); i%10 == 0 {
				if r := f.jobs()["a"]; r.State != wire.JobQueued || r.Reason != "is being planned for" {
					t.Fatalf("job a is %s: %s", r.State, r.Reason)
				}
			}
		}
		if a := <-answer; a.Error != "" || a.Jobs[0].State != wire.JobQueued {
			t.Errorf("the job was taken with %+v", a)
		}
		if fmt.Sprint(f.forgotten) != "[mute]" {
			t.Errorf("given up: %v, want the one that said nothing", f.forgotten)
		}
		f.let <- struct{}{}
		synctest.Wait()
		if r := f.jobs()["a"]; r.State != wire.JobStarting || r.Executor != "lab" || r.Granted != 1 {
			t.Errorf("with its plan job a is %s at %q: %s", r.State, r.Executor, r.Reason)
		}
		f.close()
		if n, err := Replay(&f.recording); err != nil || n < beats {
			t.Errorf("replayed %d steps: %v", n, err)
		}
	})
}

// A plan that only may be better is given up when a job comes; the plan for that has the others too.
func TestArrivalCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		f.beat("lab", 1)
		synctest.Wait()
		answer := f.submit("a", 1)
		p := <-f.plans
		f.let <- struct{}{}
		if a := <-answer; a.Error != "" || a.Jobs[0].State != wire.JobStarting {
			t.Fatalf("the job was taken with %+v", a)
		}
		time.Sleep(10 * time.Second) // after plans were made, none are made for drift for a while
		f.beat("lab", 2, wire.JobStatus{Name: "a", ID: 1, Incarnation: 1, State: wire.Running, Epoch: 1})
		synctest.Wait()
		data, err := f.bus.Load(t.Context(), wire.Bucket("lab"), wire.LayoutObject("a", 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		l, err := wire.DecodeAs[wire.Layout](data)
		if err != nil {
			t.Fatal(err)
		}
		report := wire.Report{Executor: "lab", Job: "a", Incarnation: 1, Epoch: 1, Iteration: 3, Wall: time.Second}
		predicted, _ := profile(p.Jobs[0].Graph)
		for _, s := range l.Plan.Steps {
			report.Steps = append(report.Steps, 9*predicted.Latency[s.Op])
		}
		if err := f.bus.Publish(wire.ReportSubject("lab", "a"), wire.Encode(report)); err != nil {
			t.Fatal(err)
		}
		better := <-f.plans
		if better.Admitted != 1 || len(better.Jobs) != 1 {
			t.Fatalf("after a drift a plan is made for %d of %d jobs", better.Admitted, len(better.Jobs))
		}
		answer = f.submit("b", 2)
		both := <-f.plans
		if both.Admitted != 1 || len(both.Jobs) != 2 || both.Ticket <= better.Ticket {
			t.Errorf("after an arrival plan %d is made for %d of %d jobs", both.Ticket, both.Admitted, len(both.Jobs))
		}
		synctest.Wait() // the planner that was given up has ended
		f.let <- struct{}{}
		if a := <-answer; a.Error != "" || a.Jobs[0].State != wire.JobStarting {
			t.Errorf("the job was taken with %+v", a)
		}
		f.close()
	})
}

// A controller that ends while a plan is made does not wait for it, and stores nothing of it.
func TestEndWhilePlanning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		f.submit("a", 1)
		<-f.plans
		f.close()
		if _, err := f.bus.Get(t.Context(), wire.RecordKey("a")); !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("the job that was not taken is stored: %v", err)
		}
	})
}

// A machine that answers otherwise than was recorded is found, with the line.
func TestReplayDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		f.beat("lab", 1)
		synctest.Wait() // it is heard before the job comes
		answer := f.submit("a", 1)
		<-f.plans
		f.let <- struct{}{}
		<-answer
		f.close()
		text := f.recording.String()
		if n, err := Replay(strings.NewReader(text)); err != nil || n < 4 {
			t.Fatalf("replayed %d steps: %v", n, err)
		}
		for _, test := range []struct{ from, to, want string }{
			{`"granted_epoch":1`, `"granted_epoch":2`, "was "},
			{`"machine":"controller"`, `"machine":"agent"`,
				"line 1: it is a recording of an agent, not of a controller"},
			{`"in":{`, `"inn":{`, `unknown field "inn"`},
		} {
			if !strings.Contains(text, test.from) {
				t.Errorf("the recording has no %s", test.from)
			}
			_, err := Replay(strings.NewReader(strings.Replace(text, test.from, test.to, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("with %s: %v", test.to, err)
			}
		}
		// Its end was cut off.
		if n, err := Replay(strings.NewReader(text[:len(text)-10])); err != nil || n < 3 {
			t.Errorf("replayed %d steps: %v", n, err)
		}
	})
}

// What a controller has learnt lies on the bus under the device's identity, and the next one takes it up. One that
// cannot be read, or is of another device, is passed over with a line, and replaced.
func TestLearntOnTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := bustest.New()
		defer bus.Close()
		object := wire.LearntObject("model")
		known := wire.Learnt{Device: "model", Ops: []wire.LearntOp{{Signature: graph.Signature(strings.Repeat("ab",
			16)),
			Latency: 7, Reports: 2}}}
		store := func(data []byte) {
			if err := bus.Store(t.Context(), wire.Lessons, object, data); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct {
			what   string
			stored []byte
			line   string
			want   int
		}{
			{"nothing", nil, "", 0},
			{"all of it", wire.Encode(known), "", 1},
			{"half of it", wire.Encode(known)[:80], "err=\"decode message: ", 0},
			{"another message", wire.Encode(wire.Request{Verb: wire.Jobs}),
				"err=\"decode message: it is of kind", 0},
			{"of another device", wire.Encode(wire.Learnt{Device: "other"}),
				"err=\"it is of device other\"", 0},
		} {
			if test.stored != nil {
				store(test.stored)
			}
			var lines strings.Builder
			r := &runner{ctx: t.Context(), bus: bus, options: Options{Config: Config{Device: "model"},
				Log: slog.New(slog.NewTextHandler(&lines, nil))}}
			if err := r.restore(); err != nil {
				t.Errorf("%s: %v", test.what, err)
				continue
			}
			if got := len(r.machine.ownDomain.learnt.AllLatencies()); got != test.want {
				t.Errorf("%s: the machine knows %d signatures, want %d", test.what, got, test.want)
			}
			if said := lines.String(); (said == "") != (test.line == "") || !strings.Contains(said,
				test.line) {
				t.Errorf("%s: the controller says %q, want %q", test.what, said, test.line)
			}
			r.machine.beginStep(0)
			r.machine.emit(Output{Learnt: &Learnt{r.machine.ownDomain.learnt.Stored("model")}})
			if err := r.carryOut(r.machine.outputs); err != nil {
				t.Fatal(err)
			}
			data, err := bus.Load(t.Context(), wire.Lessons, object)
			if err != nil {
				t.Fatal(err)
			}
			if l, err := wire.DecodeAs[wire.Learnt](data); err != nil || l.Device != "model" ||
				len(l.Ops) != test.want {
				t.Errorf("%s: then %+v is stored: %v", test.what, l, err)
			}
		}
	})
}

// A graph of a request that is refused is not kept, nor is one that would be too much: requests alone fill no store.
func TestGraphsOfRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		defer f.close()
		g := graphtest.Script(rand.New(rand.NewPCG(1, 1)))
		packed, err := wire.Pack(g, make([]time.Duration, len(g.Ops)))
		must(t, err)
		spec := wire.Spec{Name: "a", Model: "script", Graph: g.Digest(), Device: "nowhere"}
		for _, q := range []wire.Request{
			{Verb: wire.Submit, Specs: []wire.Spec{spec}, Graphs: []wire.Packed{packed}},
			{Verb: wire.SetGraph, Job: "nobody", Graph: g.Digest(), Graphs: []wire.Packed{packed}},
		} {
			if a := f.ask(q); a.Error == "" {
				t.Errorf("%s is not refused", q.Verb)
			}
			for _, object := range []string{wire.GraphObject(g.Digest()), wire.RecordedObject(g.Digest())} {
				if _, err := f.bus.Load(t.Context(), wire.Graphs, object); !errors.Is(err, wire.ErrNotFound) {
					t.Errorf("after a %s that was refused %s is stored: %v", q.Verb, object, err)
				}
			}
		}
		packed.Graph = packed.Graph[:len(packed.Graph)/2]
		if a := f.ask(wire.Request{Verb: wire.Submit, Specs: []wire.Spec{spec},
			Graphs: []wire.Packed{packed}}); !strings.Contains(a.Error, "unpack a graph") {
			t.Errorf("half a graph: %q", a.Error)
		}
	})
	r := &runner{machine: NewMachine(Config{}), sizes: map[graph.Digest]int{"a": maxGraphsOne, "b": maxGraphsOne}}
	r.machine.jobs = []*job{{record: wire.Record{Spec: wire.Spec{Owner: "ada", Graph: "a"}}}}
	more := map[graph.Digest][]byte{"c": make([]byte, 100)}
	for user, want := range map[string]string{"ada": "the jobs of ada would take more than 1GiB", "bob": ""} {
		if got := r.checkGraphQuota(user, more); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
	r.sizes["d"] = maxGraphs - 2*maxGraphsOne
	if got := r.checkGraphQuota("", more); !strings.Contains(got, "all jobs would take more than 3GiB") {
		t.Errorf("for all: %q", got)
	}
}

// Lines in logs of jobs that an executor was never given are removed, and not shown meanwhile; those that it was given
// stay, unless it writes many strange ones.
func TestLogsOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		defer f.close()
		f.beat("lab", 1)
		answer := f.submit("a", 1)
		<-f.plans
		f.let <- struct{}{}
		if a := <-answer; a.Error != "" {
			t.Fatal(a.Error)
		}
		synctest.Wait()
		var seen []string
		stop, err := wire.FollowLog(t.Context(), f.bus, "a", func(line []byte) { seen = append(seen, string(line)) })
		must(t, err)
		defer stop()
		right := wire.LogSubject(f.jobs()["a"].Executor, "a")
		write := func(log, line string) { must(t, f.bus.Append(t.Context(), log, []byte(line))) }
		want := func(when string, want ...string) {
			t.Helper()
			time.Sleep(3 * beat)
			synctest.Wait()
			logs, err := f.bus.Logs(t.Context())
			must(t, err)
			if got := slices.Sorted(maps.Keys(logs)); !slices.Equal(got, want) {
				t.Errorf("%s there are the logs %q, want %q", when, got, want)
			}
		}
		write(right, "right")
		for _, log := range []string{wire.LogSubject("other", "a"), wire.LogSubject("lab", "b"), "log.lab.$"} {
			write(log, "strange")
		}
		write(right, "right")
		want("after strange lines", right)
		if !slices.Equal(seen, []string{"right", "right"}) {
			t.Errorf("the log says %q", seen)
		}
		for i := range maxStrayLogs + 1 {
			write(wire.LogSubject("lab", fmt.Sprint("b", i)), "strange")
		}
		want("after many")
	})
}

// Results of jobs that an executor was never given are removed, those that it was given stay until they are taken.
func TestResultsOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		defer f.close()
		f.beat("lab", 1)
		answer := f.submit("a", 1)
		<-f.plans
		f.let <- struct{}{}
		if a := <-answer; a.Error != "" {
			t.Fatal(a.Error)
		}
		synctest.Wait()
		r := f.jobs()["a"]
		right := wire.ResultKey(r.Executor, r.Spec.ID, r.Incarnation)
		for i := range int64(20) {
			for _, key := range []string{wire.ResultKey("lab", 100+i, 1), wire.ResultKey("other", r.Spec.ID, 1),
				right} {
				must(t, f.bus.Put(t.Context(), key, wire.Encode(wire.Result{Losses: wire.Losses{1}})))
			}
		}
		synctest.Wait()
		var left []string
		stop, err := f.bus.Watch(t.Context(), wire.ResultKeys("*"), func(key string, _ []byte) {
			left = append(left, key)
		})
		must(t, err)
		if stop(); len(left) != 1 || left[0] != right {
			t.Errorf("there are the results %v, want %s", left, right)
		}
		f.beat("lab", 2, wire.JobStatus{Name: "a", ID: r.Spec.ID, Incarnation: r.Incarnation, State: wire.Finished,
			Result: &wire.Result{Stored: right}})
		synctest.Wait()
		if stored := f.jobs()["a"].Result; stored == nil || stored.Stored == "" {
			t.Errorf("the job has the result %+v", stored)
		}
	})
}
