package controller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/clock"
)

// restore makes the machine from what is stored.
func (r *runner) restore() error {
	s := Stored{Graphs: map[graph.Digest]*graph.Graph{}, Layouts: map[string][]*wire.Layout{},
		Orders: map[string]wire.Orders{}, Hurt: map[string]string{},
		Profiles: map[graph.Digest]*planner.Profile{}, Placed: map[string]map[graph.Digest]*planner.Profile{}}
	var problems []error
	err := decodeKeys(r, wire.RecordKey("*"), &problems, func(o wire.Record) { s.Records = append(s.Records, o) })
	if err == nil {
		err = decodeKeys(r, wire.OrdersKey("*"), &problems, func(o wire.Orders) { s.Orders[o.Executor] = o })
	}
	if err == nil {
		err = decodeKeys(r, wire.DeviceKey("*"), &problems, func(d wire.Device) { s.Devices = append(s.Devices, d) })
	}
	for _, record := range s.Records {
		if err == nil && !record.State.Over() {
			problem := r.loadObjects(record, &s)
			switch {
			case r.ctx.Err() != nil:
				err = context.Cause(r.ctx)
			case isUnanswered(problem):
				err = problem
			case problem != nil:
				s.Hurt[record.Spec.Name] = strings.ReplaceAll(problem.Error(), "\n", "; ")
			}
		}
	}
	if err == nil {
		s.Learnt, err = r.loadLearnt()
	}
	if err == nil {
		s.Settings, err = r.loadSettings()
	}
	if err == nil {
		s.Tenants, err = r.loadTenants()
	}
	if err = errors.Join(append(problems, err)...); err != nil {
		return err
	}
	if r.options.KeepSharing {
		r.options.Config = r.options.keepSharing(s.Records)
	}
	if !r.options.NoDevice {
		r.options.PlanDevice = r.options.SharedDevice(r.options.PlanDevice)
	}
	r.machine = Restore(r.options.Config, s)
	r.options.Record.begin(r.options.Config, s)
	if why := r.machine.configMismatch(); why != "" {
		return errors.New(why)
	}
	for _, j := range r.machine.jobs {
		if j.damage != "" {
			r.options.Log.Error(fmt.Sprintf("job %s %s", j.record.Spec.Name, j.damage))
		}
	}
	return nil
}

// decodeKeys takes the present values of keys. Those that are damaged are problems.
func decodeKeys[T wire.Message](r *runner, pattern string, problems *[]error, take func(T)) error {
	return r.readKeys(pattern, func(key string, value []byte) {
		o, err := wire.DecodeAs[T](value)
		if err != nil {
			*problems = append(*problems, damagedError(key, err))
			return
		}
		take(o)
	})
}

// readKeys reports the present values of keys.
func (r *runner) readKeys(pattern string, each func(key string, value []byte)) error {
	stop, err := r.bus.Watch(r.ctx, pattern, func(key string, value []byte) {
		if value != nil {
			each(key, value)
		}
	})
	if err == nil {
		stop()
	}
	return err
}

// damagedError says that a value cannot be read. Nothing can go on without it: an executor that it names may live, and
// have memory that nobody would reserve.
func damagedError(key string, err error) error {
	return fmt.Errorf("what is stored at %s cannot be read: restore a backup of the state folder, or start the "+
		"release that wrote it: %w", key, err)
}

// isUnanswered reports whether the bus could not be asked, so that it is not known what is stored.
func isUnanswered(err error) bool {
	return errors.Is(err, wire.ErrAway) || errors.Is(err, context.DeadlineExceeded)
}

// loadLearnt loads what was learnt of the device. If it is damaged it is ignored, as it is learnt again.
func (r *runner) loadLearnt() (*wire.Learnt, error) {
	data, err := r.bus.Load(r.ctx, wire.Lessons, wire.LearntObject(r.options.Device))
	if errors.Is(err, wire.ErrNotFound) {
		return nil, nil
	}
	var l wire.Learnt
	if err == nil {
		l, err = wire.DecodeAs[wire.Learnt](data)
	}
	switch {
	case r.ctx.Err() != nil:
		return nil, context.Cause(r.ctx)
	case isUnanswered(err):
		return nil, err
	case err == nil && l.Device != r.options.Device:
		err = fmt.Errorf("it is of device %s", l.Device)
	}
	if err != nil {
		r.options.Log.Warn("the latencies that were learnt of this device are passed over", "err", err)
		return nil, nil
	}
	return &l, nil
}

// loadSettings loads what an administrator has set for the device. If it is damaged it is ignored, with a line in the
// log.
func (r *runner) loadSettings() (*wire.Settings, error) {
	data, err := r.bus.Load(r.ctx, wire.Administration, wire.SettingsObject(r.options.Device))
	if errors.Is(err, wire.ErrNotFound) {
		return nil, nil
	}
	var s wire.Settings
	if err == nil {
		s, err = wire.DecodeAs[wire.Settings](data)
	}
	switch {
	case r.ctx.Err() != nil:
		return nil, context.Cause(r.ctx)
	case isUnanswered(err):
		return nil, err
	case err != nil:
		r.options.Log.Warn("what tensile device budget has set is passed over", "err", err)
		return nil, nil
	}
	return &s, nil
}

// loadTenants loads the shares of tenants. If they are damaged that is an error: without them all tenants would have
// the same share.
func (r *runner) loadTenants() (*wire.Tenants, error) {
	data, err := r.bus.Load(r.ctx, wire.Administration, wire.TenantsObject)
	if errors.Is(err, wire.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	t, err := wire.DecodeAs[wire.Tenants](data)
	if err != nil {
		return nil, fmt.Errorf("the shares of tenants: %w", err)
	}
	return &t, nil
}

// loadObjects loads the graph of a job, and the layouts that may be in force.
func (r *runner) loadObjects(record wire.Record, s *Stored) error {
	g, size, err := r.loadGraph(record.Spec.Graph)
	if err != nil {
		return err
	}
	s.Graphs[record.Spec.Graph] = g
	r.sizes[record.Spec.Graph] = size
	if record.Spec.Script {
		s.Profiles[record.Spec.Graph] = recordedProfile(r.loadRecorded(g))
	}
	if at := slices.IndexFunc(s.Devices, func(d wire.Device) bool { return d.Name == record.On }); at >= 0 {
		p, err := r.describe(&s.Devices[at]).Profile(g)
		if err != nil {
			return fmt.Errorf("on device %s: %w", record.On, err)
		}
		if s.Placed[record.On] == nil {
			s.Placed[record.On] = make(map[graph.Digest]*planner.Profile)
		}
		s.Placed[record.On][record.Spec.Graph] = &p
	} else if s.Profiles[record.Spec.Graph] == nil && !r.options.NoDevice {
		p, err := r.options.PlanDevice.Profile(g)
		if err != nil {
			return err
		}
		s.Profiles[record.Spec.Graph] = &p
	}
	for epoch, last := record.Epochs(); epoch <= last; epoch++ {
		data, err := r.bus.Load(r.ctx, wire.Bucket(record.Executor), wire.LayoutObject(record.Spec.Name, record.Spec.ID,
			epoch))
		if errors.Is(err, wire.ErrNotFound) {
			continue // the layout was never granted
		} else if err != nil {
			return err
		}
		l, err := wire.DecodeAs[wire.Layout](data)
		if err != nil {
			return fmt.Errorf("its layout %d: %w", epoch, err)
		}
		s.Layouts[record.Spec.Name] = append(s.Layouts[record.Spec.Name], &l)
	}
	return nil
}

// loadRecorded loads the recorded latencies of a script's graph. If they are damaged they are zero, and reports tell
// them.
func (r *runner) loadRecorded(g *graph.Graph) []time.Duration {
	data, err := r.bus.Load(r.ctx, wire.Graphs, wire.RecordedObject(g.Digest()))
	if err == nil {
		if l, err := wire.DecodeAs[wire.Recorded](data); err == nil && len(l.Latency) == len(g.Ops) {
			return l.Latency
		}
	}
	return make([]time.Duration, len(g.Ops))
}

// loadGraph loads a graph, and returns how many bytes its JSON form has.
func (r *runner) loadGraph(digest graph.Digest) (*graph.Graph, int, error) {
	data, err := r.bus.Load(r.ctx, wire.Graphs, wire.GraphObject(digest))
	if err != nil {
		return nil, 0, fmt.Errorf("load its graph: %w", err)
	}
	g, err := graph.Read(bytes.NewReader(data))
	if err != nil {
		return nil, 0, fmt.Errorf("its graph: %w", err)
	}
	if g.Digest() != digest {
		return nil, 0, fmt.Errorf("its graph has the digest %s, not %s: submit it again", g.Digest(), digest)
	}
	return g, len(data), nil
}

// subscribe has messages become inputs, until stop is called.
func (r *runner) subscribe() (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	keep := func(s func(), problem error) {
		if problem == nil {
			stops = append(stops, s)
		} else if err == nil {
			err = problem
		}
	}
	keep(r.bus.Watch(r.ctx, wire.StatusKey("*"), r.takeStatus))
	keep(r.bus.Watch(r.ctx, wire.ResultKeys("*"), func(key string, value []byte) {
		if value != nil {
			r.putInput(input{result: key})
		}
	}))
	keep(r.bus.Subscribe(wire.ReportSubject("*", "*"), r.takeReport))
	keep(r.bus.Subscribe(wire.TraceSubject("*", "*"), func(subject string, data []byte) {
		if executor, job, ok := strings.Cut(strings.TrimPrefix(subject, "trace."), "."); ok {
			_ = r.bus.Publish("traced."+executor+"."+job, data) // a lost message is missing in the trace
		}
	}))
	keep(r.bus.Serve(wire.ControlSubject, r.serve))
	if err != nil {
		stop()
	}
	return stop, err
}

// takeStatus has the status at a key become an input.
func (r *runner) takeStatus(key string, value []byte) {
	if value == nil {
		return
	}
	s, err := wire.DecodeAs[wire.Status](value)
	if err == nil && key != wire.StatusKey(s.Executor) {
		err = fmt.Errorf("it names executor %s", s.Executor)
	}
	if err != nil {
		r.logIgnored("status at "+key, fmt.Sprintf("a status at %s is passed over: %v", key, err))
		return
	}
	r.putInput(input{Input: Input{Status: &s}})
}

// takeReport has a report become an input.
func (r *runner) takeReport(subject string, data []byte) {
	if len(r.inputs) > maxInputs/2 {
		return // a lost report costs little, and statuses must not wait for reports
	}
	report, err := wire.DecodeAs[wire.Report](data)
	if err == nil && subject != wire.ReportSubject(report.Executor, report.Job) {
		err = fmt.Errorf("it names job %s of executor %s", report.Job, report.Executor)
	}
	if err != nil {
		sender, _, _ := strings.Cut(strings.TrimPrefix(subject, "report."), ".")
		r.logIgnored("reports of "+sender, fmt.Sprintf("a report at %s is passed over: %v", subject, err))
		return
	}
	if r.options.Reports != nil {
		r.options.Reports(&report)
	}
	r.putInput(input{Input: Input{Report: &report}})
}

// readRequest returns what the machine is asked by a request of a user; or the answer, if that is known.
func (r *runner) readRequest(user string, q *wire.Request, by *ask) (in input, known *wire.Answer) {
	refuse := func(format string, args ...any) (input, *wire.Answer) {
		return input{}, &wire.Answer{Error: fmt.Sprintf(format, args...)}
	}
	in.By = user
	if q.Verb == wire.Jobs {
		if known = r.blockedJobs(q); known == nil {
			in.listJobs = q
		}
		return in, known
	}
	if trouble := r.options.Trouble(); trouble != "" {
		return in, &wire.Answer{Error: trouble, Trouble: trouble}
	}
	switch q.Verb {
	case wire.Submit:
		var err error
		if in.Submit, in.graphs, err = r.readSubmissions(q, by); err != nil {
			return refuse("%v", err)
		}
	case wire.SetGraph:
		graphs, err := r.unpackGraphs(q, by)
		if err == nil && graphs[q.Graph] == nil {
			err = errors.New("the graph does not come with the request")
		}
		if err != nil {
			return refuse("job %s: %v", q.Job, err)
		}
		q.Graphs, in.graphs = nil, graphs
		in.Request = q
		in.To = &Submission{Spec: wire.Spec{Name: q.Job, Graph: q.Graph}, Graph: graphs[q.Graph].graph, At: clock.Now(),
			Latency: graphs[q.Graph].latency}
	default:
		in.Request = q
	}
	return in, nil
}

// readSubmissions returns the jobs of a request with their graphs, those also that come with the request.
func (r *runner) readSubmissions(q *wire.Request, by *ask) ([]Submission, map[graph.Digest]*handedGraph, error) {
	graphs, err := r.unpackGraphs(q, by)
	if err != nil {
		return nil, nil, err
	}
	var list []Submission
	for _, spec := range q.Specs {
		if graphs[spec.Graph] == nil {
			g, size, err := r.loadGraph(spec.Graph)
			if err == nil {
				err = by.grow(size)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("job %s: %w", spec.Name, err)
			}
			graphs[spec.Graph] = &handedGraph{graph: g}
			if g.Opaque() {
				graphs[spec.Graph].latency = r.loadRecorded(g)
			}
		}
		h := graphs[spec.Graph]
		s := Submission{Spec: spec, Graph: h.graph, At: clock.Now()}
		if spec.Script {
			if refusal := r.checkScript(q, h.graph); refusal != "" {
				return nil, nil, errors.New(refusal)
			}
			s.Latency = h.latency
		}
		list = append(list, s)
	}
	return list, graphs, nil
}

// blockedJobs is the answer to a request for all jobs while the bus refuses something. nil: it does not.
func (r *runner) blockedJobs(q *wire.Request) *wire.Answer {
	blocked := r.blocked.Load()
	if blocked == nil {
		return nil
	}
	a := blocked.Answer
	a.Jobs = remainingJobs(q, slices.Clone(a.Jobs))
	a.Trouble = cmp.Or(r.options.Trouble(), a.Trouble)
	return &a
}

// askMachine asks the machine, and waits for the answer.
func (r *runner) askMachine(q *wire.Request, in input) wire.Answer {
	answer := make(chan wire.Answer, 1)
	in.answer = answer
	r.putInput(in)
	look := time.NewTicker(time.Second / 4)
	defer look.Stop()
	for {
		select {
		case a := <-answer:
			if q.Verb == wire.Submit && q.Specs[0].Script && a.Error == "" {
				a.Credentials = r.options.Credentials(a.Jobs[0].Executor)
			}
			return a
		case <-look.C:
			trouble := r.options.Trouble()
			if q.Verb == wire.Jobs {
				if blocked := r.blockedJobs(q); blocked != nil { // the bus began to refuse after the request had come
					return *blocked
				}
			} else if trouble != "" {
				return wire.Answer{Error: "what was asked for is done when there is no trouble any more: " + trouble,
					Trouble: trouble}
			}
		case <-r.ctx.Done():
			return wire.Answer{Error: "the controller is ending"}
		}
	}
}

// handedGraph is a graph that has come with a request.
type handedGraph struct {
	graph *graph.Graph
	// latency holds, per op of a script's graph, how long it took when it was recorded. It is nil for others.
	latency []time.Duration
}

// unpackGraphs reads the graphs of a request. Those of scripts have a latency for each op.
func (r *runner) unpackGraphs(q *wire.Request, by *ask) (map[graph.Digest]*handedGraph, error) {
	graphs := make(map[graph.Digest]*handedGraph)
	for i := range q.Graphs {
		g, size, err := q.Graphs[i].Unpack()
		if err != nil {
			return nil, err
		}
		if err := by.grow(size); err != nil {
			return nil, err
		}
		h := &handedGraph{graph: g, latency: q.Graphs[i].Latency}
		if h.latency == nil && g.Opaque() {
			h.latency = make([]time.Duration, len(g.Ops))
		}
		graphs[g.Digest()] = h
	}
	return graphs, nil
}

// checkScript says why a request with a script is refused. "": it is not.
func (r *runner) checkScript(q *wire.Request, g *graph.Graph) string {
	switch {
	case len(q.Specs) > 1:
		return "a script is submitted by itself: tensile join does"
	case !g.Opaque():
		return fmt.Sprintf("job %s: its graph is not a script's", q.Specs[0].Name)
	case r.options.Credentials == nil:
		return "this controller takes no scripts: it ends with the command that has started it"
	}
	return ""
}

// logIgnored logs, at a limited rate, that a message of a kind is ignored.
func (r *runner) logIgnored(kind, line string) {
	r.garbageLock.Lock()
	text, ok := r.garbage.Add(time.Now(), kind, line)
	r.garbageLock.Unlock()
	if ok {
		r.options.Log.Warn(text)
	}
}

// logOmitted logs how many messages were ignored without a line.
func (r *runner) logOmitted() {
	r.garbageLock.Lock()
	lines := r.garbage.Due(time.Now())
	r.garbageLock.Unlock()
	for _, line := range lines {
		r.options.Log.Warn(line)
	}
}
