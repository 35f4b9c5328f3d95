package controller

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/external"
	"tensile/models/graphtest"
	"tensile/models/nettest"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// TestScripts plays the scripts in testdata to a machine, by datadriven. Each command takes a second of the machine's
// time and is answered by what the machine wants done. The commands, with what stands in their input:
//
//	new [budget=BYTES] [host=BYTES] [context=BYTES] [share] [keep=N] [no-replan] [preempt]    a machine without jobs
//	                                         with none=X a controller without a device of its own
//	                                         with replicas=N the graph of all jobs is that of one of so many
//	restart [budget=BYTES] [host=BYTES] [context=BYTES]    another, from what the one before had stored
//	  [torn=JOB]                             but for the record of a job, at which it was killed
//	submit [by=USER]                         a line "JOB [priority=N] [iterations=N] [restarts=N] [checkpoints]
//	                                         [owner=WHO] [device=NAME]" for each job; 10 iterations if it does not
//	                                         say, and WHO is what the message says; with every=D checkpoints by time
//	                                         with claim=BYTES it is a script's, and with replicas=N it is N jobs
//	recorded job=J                           a script is to be planned for by what it has recorded, and holds 64 bytes
//	need                                     answered by what that takes without a plan
//	stop job=J [by=USER]
//	ask verb=V [by=USER] [job=J] [place=P] [priority=N] [budget=BYTES] [executor=X] [device=NAME] [undo]
//	                                         another request
//	status executor=X number=N [life=L] [device=D] [orders=N] [dead=L] [host=TEXT] [brings=NAME [of=BYTES]
//	                                         [context=BYTES] [memory=BYTES] [link=RATE]]
//	                                         a line "JOB id=N [incarnation=N] state=S [epoch=N] [arena=BYTES]
//	                                         [iteration=N] [checkpoint=N [since=N]] [error=TEXT] [lacks] [free=BYTES]
//	                                         [reserve=BYTES [touched=BYTES]] [begun=N] [alone] [meets]" per job;
//	                                         incarnation 1 if it does not say which
//	report job=J executor=X epoch=N iteration=N [to=N] times=F
//	                                         its ops took F times as long as their profile says, in this iteration and
//	                                         in those up to another
//	ended executor=X why=TEXT                the process that was launched as an executor
//	planned ticket=N [again] [why=TEXT] [need=BYTES of=BYTES [host | contexts=N]]
//	                                         a line "JOB arena=BYTES [host=BYTES] [gain=D transition=D] [never=TEXT]
//	                                         [slow=F [alone=D]]"
//	                                         for each job
//	tick [after=D] [deaf | asleep]           so much time has passed, with a tick each second; or with one at its end
//	jobs                                     answered by the records
//	devices                                  answered by what is known of each
//
// With killed=N the controller is killed when it has stored so many records of what a command wants done. An underscore
// in a TEXT is a blank.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{graph: graphtest.New(rand.New(rand.NewPCG(1, 1)), graphtest.Options{Ops: 3})}
		datadriven.RunTest(t, path, s.command)
	})
}

// script is a machine and what a bus stores for it.
type script struct {
	graph   *graph.Graph // of all jobs
	config  Config
	m       *Machine
	now     time.Duration
	asked   *plans.Request // the newest
	plans   map[int64]*plans.Request
	devices map[string]wire.Device
	records map[string]wire.Record
	layouts map[string][]*wire.Layout
	orders  map[string]wire.Orders
	set     *wire.Settings
	scripts map[graph.Digest]*graph.Graph // that are stored
	hurt    map[string]string             // of what is stored
	through func([]Output) []Output       // what of a step's outputs is done; nil: all
	out     strings.Builder
}

// command tells the machine what a command says and returns its answer.
func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	s.now += time.Second
	switch d.Cmd {
	case "new":
		s.replicate(t, d)
		s.config = Config{Device: "gpu", Align: 64, Out: cost.Link{Rate: 1e6}, In: cost.Link{Rate: 1e6},
			Policy: "none-live", OneExecutor: d.HasArg("share"), NoReplan: d.HasArg("no-replan"),
			Preempt: d.HasArg("preempt"), Watched: true, SettleReports: 1, Alpha: 1, NoDevice: d.HasArg("none"),
			Name: "own"}
		d.MaybeScanArgs(t, "keep", &s.config.KeepJobs)
		s.budget(t, d)
		s.m = NewMachine(s.config)
		s.records, s.layouts, s.orders = map[string]wire.Record{}, map[string][]*wire.Layout{}, map[string]wire.Orders{}
		s.set, s.scripts = nil, map[graph.Digest]*graph.Graph{}
		s.plans, s.devices = map[int64]*plans.Request{}, map[string]wire.Device{}
	case "need":
		fmt.Fprintln(&s.out, external.Need(graphtest.Script(rand.New(rand.NewPCG(1, 1)))))
	case "devices":
		for _, x := range s.m.Devices() {
			fmt.Fprintf(&s.out, "%s %s on %q: %s of %s, %d jobs, %d executors", x.Name, x.Identity, x.Host, x.Used,
				x.Budget, x.Jobs, x.Executors)
			if x.Silent > 0 {
				fmt.Fprintf(&s.out, ", %d silent", x.Silent)
			}
			if x.Drained {
				s.out.WriteString(", drained")
			}
			fmt.Fprintln(&s.out)
		}
	case "restart":
		s.budget(t, d)
		delete(s.records, word(t, d, "torn"))
		s.now -= duration(t, d, "behind")
		s.restart(t)
	case "jobs":
		if c := s.m.Contexts(); c.Sum() > 0 {
			fmt.Fprintln(&s.out, c)
		}
		if trouble := s.m.Trouble(); trouble != "" && s.config.Context > 0 {
			fmt.Fprintln(&s.out, trouble)
		}
		for _, r := range s.m.Records() {
			fmt.Fprintf(&s.out, "%s %s, claim %s, epochs %d %d %d at %q: %s\n", r.Spec.Name, r.State, r.Claim, r.Epoch,
				r.Granted, r.Applied,
				r.Executor, r.Reason)
			if r.On != "" {
				fmt.Fprintf(&s.out, "  on %s\n", r.On)
			}
			if s.config.HostMemory > 0 {
				fmt.Fprintf(&s.out, "  %s on the host\n", r.Host)
			}
			for _, h := range r.Held {
				fmt.Fprintf(&s.out, "  %s may have %s\n", h.Executor, h.Bytes)
			}
			if r.Preempted {
				fmt.Fprintf(&s.out, "  %s gave way\n", r.Spec.Name)
			}
			if r.Spec.Owner != "" {
				fmt.Fprintf(&s.out, "  %s belongs to %s\n", r.Spec.Name, r.Spec.Owner)
			}
		}
	case "tick":
		s.ticks(t, d)
	case "report":
		s.reports(t, d)
	default:
		outputs, records := s.m.Step(s.now, s.input(t, d)), 0
		if d.MaybeScanArgs(t, "killed", &records) {
			outputs = firstRecords(outputs, records)
		}
		s.do(outputs)
	}
	return s.out.String()
}

// firstRecords are what is done of a step by a controller that is killed when it has stored so many records.
func firstRecords(outputs []Output, records int) []Output {
	for i, o := range outputs {
		if o.Record == nil {
			continue
		}
		if records == 0 {
			return outputs[:i]
		}
		records--
	}
	return outputs
}

func (s *script) budget(t *testing.T, d *datadriven.TestData) {
	var budget int64
	if d.MaybeScanArgs(t, "budget", &budget) {
		s.config.Budget = graph.Bytes(budget)
	}
	var host int64
	if d.MaybeScanArgs(t, "host", &host) {
		s.config.HostMemory = graph.Bytes(host)
	}
	var context int64
	if d.MaybeScanArgs(t, "context", &context) {
		s.config.Context = graph.Bytes(context)
	}
}

// restart begins another machine with what is stored.
func (s *script) restart(t *testing.T) {
	stored := Stored{Graphs: map[graph.Digest]*graph.Graph{s.graph.Digest(): s.graph}, Layouts: s.layouts,
		Orders: s.orders, Settings: s.set, Hurt: s.hurt,
		Profiles: map[graph.Digest]*planner.Profile{s.graph.Digest(): s.profile()}}
	for _, r := range s.records {
		stored.Records = append(stored.Records, r)
		if r.Spec.Script {
			g := s.scripts[r.Spec.Graph]
			stored.Graphs[r.Spec.Graph] = g
			stored.Profiles[r.Spec.Graph] = recordedProfile(slices.Repeat([]time.Duration{time.Millisecond},
				len(g.Ops)))
		}
	}
	stored.Placed = map[string]map[graph.Digest]*planner.Profile{}
	for _, name := range slices.Sorted(maps.Keys(s.devices)) {
		stored.Devices = append(stored.Devices, s.devices[name])
		stored.Placed[name] = stored.Profiles
	}
	s.m = Restore(s.config, stored)
	if s.hurt == nil {
		allWhole(t, s.m)
	}
	s.do(s.m.Resume(s.now))
}

// allWhole fails a test if a job is held since what is stored of it cannot be used.
func allWhole(t *testing.T, m *Machine) {
	t.Helper()
	for _, j := range m.jobs {
		if j.damage != "" {
			t.Fatalf("job %s %s", j.record.Spec.Name, j.damage)
		}
	}
}

// replicate makes the graph of all jobs one of a replica of so many.
func (s *script) replicate(t *testing.T, d *datadriven.TestData) {
	of := 0
	if !d.MaybeScanArgs(t, "replicas", &of) {
		return
	}
	g, err := nettest.Replicas("mlp", of)
	if err != nil {
		t.Fatal(err)
	}
	s.graph = g
}

func (s *script) profile() *planner.Profile {
	p, _ := profile(s.graph)
	return &p
}

// duration is an argument that may be absent.
func duration(t *testing.T, d *datadriven.TestData, of string) (span time.Duration) {
	if text := word(t, d, of); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	return span
}

// ticks has the machine told the time, every second until so much has passed; or only once, after it stood still.
func (s *script) ticks(t *testing.T, d *datadriven.TestData) {
	until := s.now + duration(t, d, "after")
	if d.HasArg("asleep") {
		s.now = until
	}
	for {
		s.do(s.m.Step(s.now, Input{Tick: &Tick{Deaf: d.HasArg("deaf")}}))
		if s.now >= until {
			return
		}
		s.now = min(until, s.now+time.Second)
	}
}

// input returns what a command says.
func (s *script) input(t *testing.T, d *datadriven.TestData) Input {
	switch d.Cmd {
	case "submit":
		in := Input{From: 1, By: word(t, d, "by")}
		for _, line := range lines(t, d) {
			spec := wire.Spec{Name: line.Cmd, Graph: s.graph.Digest(), Iterations: 10}
			line.MaybeScanArgs(t, "priority", &spec.Priority)
			line.MaybeScanArgs(t, "owner", &spec.Owner)
			line.MaybeScanArgs(t, "device", &spec.Device)
			line.MaybeScanArgs(t, "save", &spec.Save)
			line.MaybeScanArgs(t, "iterations", &spec.Iterations)
			line.MaybeScanArgs(t, "restarts", &spec.Restarts)
			if every := word(t, line, "every"); every != "" {
				long, err := time.ParseDuration(every)
				if err != nil {
					line.Fatalf(t, "%v", err)
				}
				spec.Checkpoint.Every = long
			} else if line.HasArg("checkpoints") {
				spec.Checkpoint.Iterations = 5
			}
			submission := Submission{Spec: spec, Graph: s.graph, At: s.now}
			if line.HasArg("claim") {
				var claim int64
				line.ScanArgs(t, "claim", &claim)
				submission.asScript(external.Claim(graph.Bytes(claim)))
				s.scripts[submission.Spec.Graph] = submission.Graph
			}
			of := 0
			line.MaybeScanArgs(t, "replicas", &of)
			for n := range of {
				submission.Spec.Name = fmt.Sprintf("%s@%d", line.Cmd, n)
				submission.Spec.Replica = wire.Replica{Number: n, Of: of}
				in.Submit = append(in.Submit, submission)
			}
			if of == 0 {
				in.Submit = append(in.Submit, submission)
			}
		}
		return in
	case "stop":
		return Input{From: 1, By: word(t, d, "by"), Request: &wire.Request{Verb: wire.Stop, Job: word(t, d, "job")}}
	case "ask":
		q := &wire.Request{Verb: wire.Verb(word(t, d, "verb")), Job: word(t, d, "job"),
			Executor: word(t, d, "executor"), Place: wire.Place(word(t, d, "place")), Device: word(t, d, "device"),
			Undo: d.HasArg("undo")}
		d.MaybeScanArgs(t, "priority", &q.Priority)
		var budget int64
		d.MaybeScanArgs(t, "budget", &budget)
		q.Budget = graph.Bytes(budget)
		return Input{From: 1, By: word(t, d, "by"), Request: q}
	case "status":
		return Input{Status: status(t, d)}
	case "recorded":
		to := Submission{}
		to.asScript(graphtest.Script(rand.New(rand.NewPCG(1, 1))))
		s.scripts[to.Spec.Graph] = to.Graph
		return Input{From: 1, To: &to, Request: &wire.Request{Verb: wire.SetGraph, Job: word(t, d, "job"),
			Graph: to.Spec.Graph, Held: 64}}
	case "ended":
		return Input{Ended: &ExecutorEnd{Executor: word(t, d, "executor"), Why: word(t, d, "why")}}
	case "planned":
		return Input{PlanResult: s.planned(t, d)}
	}
	d.Fatalf(t, "there is no command %s", d.Cmd)
	return Input{}
}

// asScript makes a submission that of a script, all ops of which take a millisecond.
func (s *Submission) asScript(g *graph.Graph) {
	s.Spec.Script, s.Spec.Iterations, s.Spec.Graph, s.Graph = true, 0, g.Digest(), g
	s.Latency = slices.Repeat([]time.Duration{time.Millisecond}, len(g.Ops))
}

// lines are the lines of a command's input, each in the form of a command.
func lines(t *testing.T, d *datadriven.TestData) []*datadriven.TestData {
	var list []*datadriven.TestData
	for line := range strings.Lines(d.Input) {
		name, args, err := datadriven.ParseLine(line)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		list = append(list, &datadriven.TestData{Pos: d.Pos, Cmd: name, CmdArgs: args})
	}
	return list
}

// word is an argument that is text; "": it is not there.
func word(t *testing.T, d *datadriven.TestData, name string) (value string) {
	d.MaybeScanArgs(t, name, &value)
	return strings.ReplaceAll(value, "_", " ")
}

func status(t *testing.T, d *datadriven.TestData) *wire.Status {
	w := &wire.Status{Executor: word(t, d, "executor"), Life: "1", Device: "gpu"}
	d.ScanArgs(t, "number", &w.Number)
	d.MaybeScanArgs(t, "life", &w.Life)
	d.MaybeScanArgs(t, "device", &w.Device)
	w.Host, w.Leaves = word(t, d, "host"), d.HasArg("leaves")
	w.Folder = cmp.Or(word(t, d, "folder"), w.Host)
	if name := word(t, d, "brings"); name != "" {
		rate := 1_000_000
		d.MaybeScanArgs(t, "link", &rate)
		link := cost.Link{Rate: cost.BytesPerSecond(rate)}
		w.Brings = &wire.Device{Name: name, Model: "gpu", Identity: w.Device, Host: w.Host, Align: 64,
			Facts: cost.Facts{Compute: 1e9, Bandwidth: 1e9, ComputeShare: 1, BandwidthShare: 1, Out: link, In: link}}
		var budget int64
		d.MaybeScanArgs(t, "of", &budget)
		w.Brings.Budget = graph.Bytes(budget)
		var context int64
		d.MaybeScanArgs(t, "context", &context)
		w.Brings.Context = graph.Bytes(context)
		var memory int64
		d.MaybeScanArgs(t, "memory", &memory)
		w.Brings.HostMemory = graph.Bytes(memory)
	}
	d.MaybeScanArgs(t, "orders", &w.Orders)
	if dead := word(t, d, "dead"); dead != "" {
		w.Dead = []string{dead}
	}
	for _, line := range lines(t, d) {
		j := wire.JobStatus{Name: line.Cmd, Incarnation: 1, Result: resultOf(t, line), Error: word(t, line, "error"),
			State: wire.State(word(t, line, "state")), Lacks: line.HasArg("lacks"),
			Damaged: line.HasArg("damaged"), Diverged: line.HasArg("diverged"), Alone: line.HasArg("alone")}
		line.MaybeScanArgs(t, "begun", &j.Begun)
		if line.HasArg("meets") {
			j.Meets = &wire.Meeting{Address: "at " + w.Executor}
		}
		line.ScanArgs(t, "id", &j.ID)
		line.MaybeScanArgs(t, "incarnation", &j.Incarnation)
		line.MaybeScanArgs(t, "epoch", &j.Epoch)
		line.MaybeScanArgs(t, "iteration", &j.Iteration)
		var arena int64
		line.MaybeScanArgs(t, "arena", &arena)
		j.Arena = graph.Bytes(arena)
		if line.HasArg("reserve") {
			var reserve int64
			line.ScanArgs(t, "reserve", &reserve)
			j.Script = &wire.Allocated{Reserve: graph.Bytes(reserve)}
			var touched int64
			line.MaybeScanArgs(t, "touched", &touched)
			j.Script.Touched = graph.Bytes(touched)
		}
		if line.HasArg("free") {
			var free int64
			line.ScanArgs(t, "free", &free)
			j.Free = (*graph.Bytes)(&free)
		}
		if line.HasArg("checkpoint") {
			j.Checkpoint = new(wire.Checkpoint)
			line.ScanArgs(t, "checkpoint", &j.Checkpoint.Iteration)
			j.Checkpoint.File, j.Checkpoint.Host = "FILE", "lab's host"
			line.MaybeScanArgs(t, "since", &j.Since)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// resultOf is what a job came to, as a status tells of it.
func resultOf(t *testing.T, line *datadriven.TestData) *wire.Result {
	if stored := word(t, line, "stored"); stored != "" {
		return &wire.Result{Stored: stored, Losses: []float32{1, 2}}
	}
	return nil
}

// reports has the machine hear of an iteration, or of all up to another.
func (s *script) reports(t *testing.T, d *datadriven.TestData) {
	r := s.report(t, d)
	to := r.Iteration
	d.MaybeScanArgs(t, "to", &to)
	for ; r.Iteration <= to; r.Iteration++ {
		again := *r
		s.do(s.m.Step(s.now, Input{Report: &again}))
	}
}

func (s *script) report(t *testing.T, d *datadriven.TestData) *wire.Report {
	r := &wire.Report{Executor: word(t, d, "executor"), Job: word(t, d, "job"), Incarnation: 1,
		Wall: time.Second}
	d.MaybeScanArgs(t, "incarnation", &r.Incarnation)
	d.MaybeScanArgs(t, "id", &r.ID)
	if d.HasArg("loss") {
		loss := wire.Loss(0.5)
		r.Loss = &loss
	}
	d.ScanArgs(t, "epoch", &r.Epoch)
	d.ScanArgs(t, "iteration", &r.Iteration)
	var times int
	d.ScanArgs(t, "times", &times)
	for _, latency := range s.profile().Latency {
		r.Steps = append(r.Steps, time.Duration(times)*latency)
	}
	return r
}

// planned answers the newest plan request, or pretends to answer another.
func (s *script) planned(t *testing.T, d *datadriven.TestData) *plans.Result {
	p := &plans.Result{WantsReports: d.HasArg("again")}
	d.ScanArgs(t, "ticket", &p.Ticket)
	asked := s.plans[p.Ticket]
	if asked == nil {
		asked = s.asked
	}
	if why := word(t, d, "why"); why != "" || d.HasArg("need") {
		p.NoPlan = &plans.NoPlan{Why: why}
		d.MaybeScanArgs(t, "need", &p.NoPlan.Need)
		d.MaybeScanArgs(t, "of", &p.NoPlan.Budget)
		p.NoPlan.OnHost = d.HasArg("host")
		if d.MaybeScanArgs(t, "contexts", &p.NoPlan.Contexts.Processes) {
			p.NoPlan.Contexts.Each = s.config.Context
		}
	}
	for _, line := range lines(t, d) {
		at := slices.IndexFunc(asked.Jobs, func(c plans.Candidate) bool { return c.Spec.Name == line.Cmd })
		if at < 0 {
			d.Fatalf(t, "no plan for job %s was asked for", line.Cmd)
		}
		if why := word(t, line, "never"); why != "" {
			if p.NeverFit == nil {
				p.NeverFit = make(map[int]string)
			}
			p.NeverFit[at] = why
			continue
		}
		p.Jobs = append(p.Jobs, s.plannedJob(t, line, &asked.Jobs[at]))
	}
	for i, c := range asked.Jobs {
		if c.Profile == nil {
			if p.NewProfiles == nil {
				p.NewProfiles = make(map[int]planner.Profile)
			}
			p.NewProfiles[i] = *s.profile()
		}
	}
	return p
}

// plannedJob is a plan in an arena of some size, which may be larger than it needs.
func (s *script) plannedJob(t *testing.T, line *datadriven.TestData, c *plans.Candidate) plans.PlannedJob {
	unlimited := s.config
	unlimited.Budget = 0
	fresh := *c
	fresh.Current = nil
	asks := &plans.Request{Jobs: []plans.Candidate{fresh}, Admitted: 1}
	j := plannerOf(unlimited, profile).Plan(t.Context(), asks).Jobs[0]
	var arena int64
	line.ScanArgs(t, "arena", &arena)
	if need := j.Layout.Wire.Arena; graph.Bytes(arena) < need {
		line.Fatalf(t, "the plan needs %d", int64(need))
	}
	j.Layout.Wire.Arena = graph.Bytes(arena)
	var host int64
	if line.MaybeScanArgs(t, "host", &host) {
		j.Layout.Host = graph.Bytes(host)
	}
	if slow := word(t, line, "slow"); slow != "" {
		var err error
		if j.Slowdown, err = strconv.ParseFloat(slow, 64); err != nil {
			line.Fatalf(t, "%v", err)
		}
		j.Alone = plans.TotalTime(j.Layout.Wire.Plan.Made)
	}
	for name, to := range map[string]*time.Duration{"gain": &j.Gain, "transition": &j.Transition, "alone": &j.Alone} {
		if value := word(t, line, name); value != "" {
			long, err := time.ParseDuration(value)
			if err != nil {
				line.Fatalf(t, "%v", err)
			}
			*to = long
		}
	}
	return j
}

// do prints what the machine wants done, and stores what is to be stored.
func (s *script) do(outputs []Output) {
	if s.through != nil {
		outputs = s.through(outputs)
	}
	for _, o := range outputs {
		switch {
		case o.Answer != nil:
			fmt.Fprintf(&s.out, "answer %d: %s", o.Answer.To, o.Answer.Error)
			for _, r := range o.Answer.Jobs {
				fmt.Fprintf(&s.out, "%s %s; ", r.Spec.Name, r.State)
			}
			if e := o.Answer.Explained; e != nil {
				fmt.Fprintf(&s.out, "%s is %s and has waited %v", e.Job, e.State, e.Past.Waited)
			}
			fmt.Fprintln(&s.out)
		case o.Record != nil:
			r := *o.Record
			s.records[r.Spec.Name] = r
			diverged := ""
			if r.Diverged {
				diverged = ", diverged"
			}
			wait := ""
			if r.Wait.For != "" {
				wait = fmt.Sprintf(", waits for %s", r.Wait.For)
			}
			if r.Wait.Bytes > 0 {
				wait += fmt.Sprintf(" of %s", r.Wait.Bytes)
			}
			if r.Wait.Until > 0 {
				wait += fmt.Sprintf(" until %v", r.Wait.Until)
			}
			fmt.Fprintf(&s.out, "store %s: %s, claim %s, epochs %d %d %d%s%s\n", r.Spec.Name, r.State, r.Claim, r.Epoch,
				r.Granted, r.Applied, diverged, wait)
		case o.Graph != nil:
			fmt.Fprintf(&s.out, "graph of %s for %s\n", o.Graph.Job, o.Graph.Executor)
		case o.Layout != nil:
			s.layouts[o.Layout.Job] = append(s.layouts[o.Layout.Job], o.Layout.Layout)
			fmt.Fprintf(&s.out, "layout %d of %s for %s\n", o.Layout.Layout.Plan.Epoch, o.Layout.Job, o.Layout.Executor)
		case o.Result != nil:
			fmt.Fprintf(&s.out, "result %s", o.Result.Object)
			if o.Result.Key != "" {
				fmt.Fprintf(&s.out, " from %s", o.Result.Key)
			}
			if o.Result.FromReports != nil {
				fmt.Fprintf(&s.out, ", %d losses were heard", len(o.Result.FromReports.Losses))
			}
			fmt.Fprintln(&s.out)
		case o.Device != nil:
			s.devices[o.Device.Name] = *o.Device
			fmt.Fprintf(&s.out, "store device %s, drained %v\n", o.Device.Name, o.Device.Drained)
		case o.Drop != nil && o.Drop.Device != "":
			delete(s.devices, o.Drop.Device)
			fmt.Fprintf(&s.out, "drop device %s\n", o.Drop.Device)
		case o.Settings != nil:
			s.set = o.Settings
			fmt.Fprintf(&s.out, "store budget %s for %s\n", o.Settings.Budget, o.Settings.Device)
		case o.Orders != nil:
			s.orders[o.Orders.Executor] = *o.Orders
			fmt.Fprintf(&s.out, "orders %d to %s:", o.Orders.Number, o.Orders.Executor)
			for _, j := range o.Orders.Jobs {
				fmt.Fprintf(&s.out, " %s epoch %d", j.Spec.Name, j.Epoch)
				if j.Incarnation > 1 {
					fmt.Fprintf(&s.out, " incarnation %d", j.Incarnation)
				}
				if j.From > 0 {
					fmt.Fprintf(&s.out, " from %d", j.From)
				}
				if j.At > 0 {
					fmt.Fprintf(&s.out, " at %d", j.At)
				}
				if j.Neighbour != nil {
					fmt.Fprintf(&s.out, " (neighbour %s)", j.Neighbour.Address)
				}
				if j.Stop {
					s.out.WriteString(" stop")
				}
				if j.Park != "" {
					fmt.Fprintf(&s.out, " park %s", j.Park)
				}
				if j.Copies {
					s.out.WriteString(" copies")
				}
				if j.Unplanned != "" {
					s.out.WriteString(" unplanned")
				}
			}
			for _, id := range o.Orders.Elsewhere {
				fmt.Fprintf(&s.out, " id %d elsewhere", id)
			}
			if o.Orders.Leave {
				s.out.WriteString(" leave")
			}
			if o.Orders.Refused != nil {
				fmt.Fprintf(&s.out, " refused %s", o.Orders.Refused.Life)
			}
			fmt.Fprintln(&s.out)
		case o.Launch != "":
			fmt.Fprintf(&s.out, "launch %s\n", o.Launch)
		case o.Forget != "":
			fmt.Fprintf(&s.out, "forget %s\n", o.Forget)
			delete(s.orders, o.Forget)
		case o.Drop != nil && o.Drop.Job != "":
			delete(s.records, o.Drop.Job)
			fmt.Fprintf(&s.out, "drop %s\n", o.Drop.Job)
		case o.Drop != nil && o.Drop.Log != "":
			fmt.Fprintf(&s.out, "drop the log of %s\n", o.Drop.Log)
		case o.Drop != nil && o.Drop.Settings != "":
			s.set = nil
			fmt.Fprintf(&s.out, "drop %s\n", o.Drop.Settings)
		case o.Drop != nil && o.Drop.Executor != "":
			object, _, _ := strings.Cut(o.Drop.Object, string(s.graph.Digest()))
			fmt.Fprintf(&s.out, "drop %s at %s\n", object, o.Drop.Executor)
		case o.Drop != nil && o.Drop.Result != "":
			fmt.Fprintf(&s.out, "drop %s\n", o.Drop.Result)
		case o.Drop != nil:
			delete(s.scripts, o.Drop.Graph)
			fmt.Fprintln(&s.out, "drop the graph")
		case o.PlanRequest != nil:
			s.asked, s.plans[o.PlanRequest.Ticket] = o.PlanRequest, o.PlanRequest
			fmt.Fprintf(&s.out, "plan %d", o.PlanRequest.Ticket)
			if o.PlanRequest.Device != nil {
				fmt.Fprintf(&s.out, " on %s", o.PlanRequest.Device.Name)
			}
			s.out.WriteString(":")
			if o.PlanRequest.Reserved > 0 {
				fmt.Fprintf(&s.out, " but for %s", o.PlanRequest.Reserved)
			}
			if o.PlanRequest.Contexts.Sum() > 0 {
				fmt.Fprintf(&s.out, " beside %s", o.PlanRequest.Contexts)
			}
			for i, c := range o.PlanRequest.Jobs {
				if i == o.PlanRequest.Admitted {
					s.out.WriteString(" and perhaps")
				}
				fmt.Fprintf(&s.out, " %s", c.Spec.Name)
				if c.StartsProcess {
					s.out.WriteString(" in another")
				}
				if c.LastReport != nil {
					fmt.Fprintf(&s.out, " with a report of %d", c.LastReport.Epoch)
				}
			}
			fmt.Fprintln(&s.out)
		case o.Explain != nil:
			fmt.Fprintf(&s.out, "question of %d: why job %s is %s; %s are taken", o.Explain.To, o.Explain.Job.Job,
				o.Explain.Job.State, o.Explain.Job.Taken)
			for _, h := range o.Explain.Job.Holders {
				fmt.Fprintf(&s.out, ", %s has %s", h.Job, h.Bytes)
			}
			if o.Explain.Plan != nil {
				s.out.WriteString("; plan")
				for i, c := range o.Explain.Plan.Jobs {
					if i == o.Explain.Plan.Admitted {
						s.out.WriteString(" and perhaps")
					}
					fmt.Fprintf(&s.out, " %s", c.Spec.Name)
				}
			}
			fmt.Fprintln(&s.out)
		case o.Cancel != 0:
			fmt.Fprintf(&s.out, "cancel %d\n", o.Cancel)
		case o.Event != nil:
			fmt.Fprintf(&s.out, "event: %s\n", o.Event)
		}
	}
}
