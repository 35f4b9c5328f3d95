package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tensile/graph"
	"tensile/internal/limit"
	"tensile/wire"
)

// Options are what Run needs beside the bus.
type Options struct {
	Config

	// Launch starts an executor process by this name, which joins by itself; ended is called once when it has ended, with
	// the reason in one line. Nil: executors are started by hand.
	Launch func(executor string, ended func(why string)) error

	// Forgotten is told that an executor has left for good; may be nil.
	Forgotten func(executor string)

	// Trouble says in one line why the bus stores nothing, as with a full disk, and "" when it does; nil: it always does. While
	// there is trouble requests are refused for that reason, and no executor counts as silent.
	Trouble func() string

	Silence time.Duration     // after which an executor that is not a child counts as gone; 0: 15 s
	Log     func(line string) // from any goroutine
	Ready   func()            // called once when requests are taken
}

// Run is a controller on a bus, until ctx is done. It takes up what one before it has stored there.
func Run(ctx context.Context, bus wire.Bus, o Options) error {
	if o.Silence == 0 {
		o.Silence = 15 * time.Second
	}
	if o.Trouble == nil {
		o.Trouble = func() string { return "" }
	}
	o.Stop = func() bool { return ctx.Err() != nil }
	r := &runner{ctx: ctx, bus: bus, options: o, inputs: make(chan input, 1024), heard: make(map[string]time.Time), children: make(map[string]bool)}
	if err := r.restore(); err != nil {
		return fmt.Errorf("take up what is stored: %w", err)
	}
	for _, record := range r.machine.Records() {
		if record.Executor != "" && !record.Phase.Over() {
			r.heard[record.Executor] = time.Now() // it may have died with the controller before this one
		}
	}
	if err := r.carryOut(r.machine.Resume(), nil); err != nil {
		return err
	}
	stop, err := r.listen()
	if err != nil {
		return err
	}
	defer stop()
	if o.Ready != nil {
		o.Ready()
	}
	return r.loop()
}

// runner has a machine talk over a bus. The machine belongs to the goroutine in loop.
type runner struct {
	ctx      context.Context
	bus      wire.Bus
	options  Options
	machine  *Machine
	inputs   chan input
	heard    map[string]time.Time // when an executor was last heard of
	children map[string]bool      // executors whose end is told by Launch

	submitting sync.RWMutex   // held for reading from before the graph of a job is looked for until the job is known
	unused     []graph.Digest // graphs to be removed

	blocked atomic.Pointer[[]wire.Record] // the jobs, while the bus does not take something

	garbageLock sync.Mutex
	garbage     limit.Lines // that arrives
}

// passedOver logs, at a limited rate, that a message of a kind is passed over.
func (r *runner) passedOver(kind, line string) {
	r.garbageLock.Lock()
	text, ok := r.garbage.Add(time.Now(), kind, line)
	r.garbageLock.Unlock()
	if ok {
		r.options.Log(text)
	}
}

// leftOut logs how many messages were passed over without a line.
func (r *runner) leftOut() {
	r.garbageLock.Lock()
	lines := r.garbage.Due(time.Now())
	r.garbageLock.Unlock()
	for _, line := range lines {
		r.options.Log(line)
	}
}

// input is an input of the machine, and where its answer goes.
type input struct {
	Input
	list   bool // the answer is a list of all jobs
	answer chan<- wire.Answer
}

// restore makes the machine from what is stored.
func (r *runner) restore() error {
	s := Stored{Graphs: map[graph.Digest]*graph.Graph{}, Layouts: map[string][]*wire.Layout{}, Orders: map[string]wire.Orders{}}
	var problems []error
	err := r.present(wire.RecordKey("*"), func(value []byte) {
		record, err := wire.DecodeAs[wire.Record](value)
		if err != nil {
			problems = append(problems, err)
			return
		}
		s.Records = append(s.Records, record)
	})
	if err == nil {
		err = r.present(wire.OrdersKey("*"), func(value []byte) {
			orders, err := wire.DecodeAs[wire.Orders](value)
			if err != nil {
				problems = append(problems, err)
				return
			}
			s.Orders[orders.Executor] = orders
		})
	}
	for _, record := range s.Records {
		if err == nil && !record.Phase.Over() {
			err = r.objects(record, &s)
		}
	}
	if err = errors.Join(append(problems, err)...); err != nil {
		return err
	}
	r.machine, err = Restore(r.options.Config, s)
	return err
}

// present reports the values that keys have now.
func (r *runner) present(pattern string, each func(value []byte)) error {
	stop, err := r.bus.Watch(r.ctx, pattern, func(_ string, value []byte) {
		if value != nil {
			each(value)
		}
	})
	if err == nil {
		stop()
	}
	return err
}

// objects loads the graph of a job, and the layouts that may be in force.
func (r *runner) objects(record wire.Record, s *Stored) error {
	g, err := r.graph(record.Spec.Graph)
	if err != nil {
		return fmt.Errorf("job %s: %w", record.Spec.Name, err)
	}
	s.Graphs[record.Spec.Graph] = g
	for epoch := max(1, record.Applied); epoch <= record.Granted; epoch++ {
		data, err := r.bus.Load(r.ctx, wire.Bucket(record.Executor), wire.LayoutObject(record.Spec.Name, epoch))
		if errors.Is(err, wire.ErrNotFound) {
			continue // it was never granted
		} else if err != nil {
			return err
		}
		l, err := wire.DecodeAs[wire.Layout](data)
		if err != nil {
			return fmt.Errorf("layout %d of job %s: %w", epoch, record.Spec.Name, err)
		}
		s.Layouts[record.Spec.Name] = append(s.Layouts[record.Spec.Name], &l)
	}
	return nil
}

func (r *runner) graph(digest graph.Digest) (*graph.Graph, error) {
	data, err := r.bus.Load(r.ctx, wire.Graphs, wire.GraphObject(digest))
	if err != nil {
		return nil, fmt.Errorf("load its graph: %w", err)
	}
	g, err := graph.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("its graph: %w", err)
	}
	if g.Digest() != digest {
		return nil, fmt.Errorf("its graph has the digest %s, not %s: submit it again", g.Digest(), digest)
	}
	return g, nil
}

// listen has what arrives become inputs.
func (r *runner) listen() (stop func(), err error) {
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
	keep(r.bus.Watch(r.ctx, wire.StatusKey("*"), func(key string, value []byte) {
		if value == nil {
			return
		}
		s, err := wire.DecodeAs[wire.Status](value)
		if err == nil && key != wire.StatusKey(s.Executor) {
			err = fmt.Errorf("it names executor %s", s.Executor)
		}
		if err != nil {
			r.passedOver("status at "+key, fmt.Sprintf("a status at %s is passed over: %v", key, err))
			return
		}
		r.put(input{Input: Input{Status: &s}})
	}))
	keep(r.bus.Subscribe(wire.ReportSubject("*", "*"), func(subject string, data []byte) {
		report, err := wire.DecodeAs[wire.Report](data)
		if err == nil && subject != wire.ReportSubject(report.Executor, report.Job) {
			err = fmt.Errorf("it names job %s of executor %s", report.Job, report.Executor)
		}
		if err != nil {
			sender, _, _ := strings.Cut(strings.TrimPrefix(subject, "report."), ".")
			r.passedOver("reports of "+sender, fmt.Sprintf("a report at %s is passed over: %v", subject, err))
			return
		}
		r.put(input{Input: Input{Report: &report}})
	}))
	keep(r.bus.Serve(wire.ControlSubject, func(data []byte) []byte {
		request, err := wire.DecodeAs[wire.Request](data)
		if err != nil {
			r.passedOver("requests", fmt.Sprintf("a request is refused: %v", err))
			return wire.Encode(wire.Answer{Error: err.Error()})
		}
		return wire.Encode(r.serve(request))
	}))
	if err != nil {
		stop()
	}
	return stop, err
}

func (r *runner) put(in input) {
	select {
	case r.inputs <- in:
	case <-r.ctx.Done():
	}
}

// serve answers a request.
func (r *runner) serve(q wire.Request) wire.Answer {
	answer := make(chan wire.Answer, 1)
	in := input{answer: answer}
	blocked, trouble := r.blocked.Load(), r.options.Trouble()
	switch {
	case q.Verb == wire.Jobs && blocked != nil:
		return wire.Answer{Jobs: *blocked, Trouble: trouble}
	case q.Verb != wire.Jobs && trouble != "":
		return wire.Answer{Error: trouble, Trouble: trouble}
	}
	switch q.Verb {
	case wire.Jobs:
		in.list = true
	case wire.Stop:
		in.Stop = q.Job
	case wire.Submit:
		r.submitting.RLock()
		defer r.submitting.RUnlock()
		graphs := make(map[graph.Digest]*graph.Graph)
		for _, spec := range q.Specs {
			g := graphs[spec.Graph]
			if g == nil {
				var err error
				if g, err = r.graph(spec.Graph); err != nil {
					return wire.Answer{Error: fmt.Sprintf("job %s: %v", spec.Name, err)}
				}
				graphs[spec.Graph] = g
			}
			in.Submit = append(in.Submit, Submission{Spec: spec, Graph: g, At: time.Duration(time.Now().UnixNano())})
		}
	}
	r.put(in)
	look := time.NewTicker(time.Second / 4)
	defer look.Stop()
	for {
		select {
		case a := <-answer:
			return a
		case <-look.C:
			if trouble := r.options.Trouble(); trouble != "" {
				return wire.Answer{Error: "what was asked for is done when there is no trouble any more: " + trouble, Trouble: trouble}
			}
		case <-r.ctx.Done():
			return wire.Answer{Error: "the controller is ending"}
		}
	}
}

// loop steps the machine.
func (r *runner) loop() error {
	tick := time.NewTicker(r.options.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case in := <-r.inputs:
			if in.list {
				in.answer <- wire.Answer{Jobs: r.machine.Records(), Trouble: r.options.Trouble(), Device: r.options.Identity, Budget: r.options.Budget,
					Link: wire.Rates{Out: r.options.Out.Rate, In: r.options.In.Rate}}
				continue
			}
			outputs := r.machine.Step(in.Input)
			if s := in.Status; s != nil && r.machine.Speaks(s.Executor, s.Life) {
				r.heard[s.Executor] = time.Now()
			}
			if err := r.carryOut(outputs, in.answer); err != nil {
				return err
			}
		case <-tick.C:
			if err := r.insist(r.sweep); err != nil {
				return err
			}
			r.leftOut()
			if r.options.Trouble() != "" {
				r.hearAll() // what executors say is not stored, and so not heard
			}
			for executor, at := range r.heard {
				if silent := time.Since(at); silent > r.options.Silence && !r.children[executor] {
					why := fmt.Sprintf("its executor has not been heard of for %v", silent.Round(time.Second))
					if err := r.carryOut(r.machine.Step(Input{Gone: &Gone{executor, why}}), nil); err != nil {
						return err
					}
				}
			}
		}
	}
}

// carryOut does what the machine wants, in its order; nothing once ctx is done, which may have cut its planning short.
func (r *runner) carryOut(outputs []Output, answer chan<- wire.Answer) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	for _, o := range outputs {
		var err error
		switch {
		case o.Answer != nil:
			if answer != nil {
				answer <- *o.Answer
			}
		case o.Record != nil:
			err = r.insist(func() error {
				return r.bus.Put(r.ctx, wire.RecordKey(o.Record.Spec.Name), wire.Encode(*o.Record))
			})
		case o.Graph != nil:
			err = r.insist(func() error { return r.storeGraph(o.Graph) })
		case o.Layout != nil:
			l := o.Layout
			err = r.insist(func() error {
				return r.bus.Store(r.ctx, wire.Bucket(l.Executor), wire.LayoutObject(l.Job, l.Layout.Plan.Epoch), wire.Encode(*l.Layout))
			})
		case o.Orders != nil:
			err = r.insist(func() error {
				return r.bus.Put(r.ctx, wire.OrdersKey(o.Orders.Executor), wire.Encode(*o.Orders))
			})
		case o.Launch != "":
			r.launch(o.Launch)
		case o.Forget != "":
			err = r.insist(func() error { return r.forget(o.Forget) })
		case o.Drop != nil:
			err = r.drop(o.Drop)
		case o.Line != "":
			r.options.Log(o.Line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hearAll counts all executors as heard now.
func (r *runner) hearAll() {
	for executor := range r.heard {
		r.heard[executor] = time.Now()
	}
}

// insist does something on the bus again and again until it works: without its bus a controller can only wait.
func (r *runner) insist(do func() error) error {
	said := false
	for {
		err := do()
		if err == nil {
			if r.blocked.Swap(nil) != nil {
				r.hearAll() // what they said meanwhile is still to be read
			}
			return nil
		}
		if r.blocked.Load() == nil {
			records := r.machine.Records()
			r.blocked.Store(&records)
		}
		if !said && r.options.Trouble() == "" { // which is said by whoever knows of it
			said = true
			r.options.Log(fmt.Sprintf("the bus does not take it, trying again: %v", err))
		}
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-time.After(time.Second / 4):
		}
	}
}

func (r *runner) storeGraph(d *Delivery) error {
	text, err := json.Marshal(d.Graph)
	if err != nil {
		return err
	}
	return r.bus.Store(r.ctx, wire.Bucket(d.Executor), wire.GraphObject(d.Graph.Digest()), text)
}

// launch starts an executor, whose end becomes an input.
func (r *runner) launch(executor string) {
	ended := func(why string) {
		go func() {
			r.lastWords(executor)
			r.put(input{Input: Input{Gone: &Gone{executor, why}}})
		}()
	}
	if r.options.Launch == nil {
		r.heard[executor] = time.Now() // it has to be started by hand
		return
	}
	r.children[executor] = true
	if err := r.options.Launch(executor, ended); err != nil {
		ended(err.Error())
	}
}

// lastWords takes what an executor that has ended said last: news of its end may overtake that.
func (r *runner) lastWords(executor string) {
	value, err := r.bus.Get(r.ctx, wire.StatusKey(executor))
	if err != nil {
		return // it has said nothing, or cannot be heard
	}
	if s, err := wire.DecodeAs[wire.Status](value); err == nil && s.Executor == executor {
		r.put(input{Input: Input{Status: &s}})
	}
}

// forget removes what is stored for an executor that has left.
func (r *runner) forget(executor string) error {
	delete(r.heard, executor)
	delete(r.children, executor)
	if r.options.Forgotten != nil {
		r.options.Forgotten(executor)
	}
	return errors.Join(r.bus.Delete(r.ctx, wire.StatusKey(executor)), r.bus.Delete(r.ctx, wire.OrdersKey(executor)),
		r.bus.Remove(r.ctx, wire.Bucket(executor), ""))
}
