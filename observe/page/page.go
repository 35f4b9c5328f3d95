package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tensile/executor/timeline"
	"tensile/graph"
	"tensile/observe/live"
	"tensile/wire"
	"tensile/wire/clock"
)

// How often the controller is asked for its jobs: while somebody looks, while nobody does, and after what it says has
// happened. Several such things at once are one.
const (
	lookedAt = time.Second
	idle     = 5 * time.Second
	soon     = time.Second / 4
)

// Page is what browsers see of a controller. Any goroutine may use it.
type Page struct {
	bus      wire.Bus
	patience time.Duration // with a browser that does not read
	poke     chan struct{} // holds one if the controller is to be asked at once

	mu      sync.Mutex
	history live.History
	now     []byte        // the event of the newest answer; nil: nobody has wanted it yet
	news    chan struct{} // closed when there is something new
	viewers int
	watched map[string]*watched // jobs whose pages are open
	graphs  map[graph.Digest]*graph.Graph

	pictures pictures
}

// watched is a job whose page is open.
type watched struct {
	viewers  int
	asked    int64          // the epoch for which a trace was asked for
	measured *live.Measured // nil: none yet
}

// New is a page of the controller at a bus, to which it may do all that a controller does.
func New(bus wire.Bus) *Page {
	return &Page{bus: bus, patience: 20 * time.Second, poke: make(chan struct{}, 1), news: make(chan struct{}),
		watched: make(map[string]*watched), graphs: make(map[graph.Digest]*graph.Graph)}
}

// Run follows the controller until ctx is done.
func (p *Page) Run(ctx context.Context) {
	stop, err := p.bus.Subscribe(wire.TracedSubject("*", "*"), func(_ string, data []byte) { p.addTrace(data) })
	if err == nil { // otherwise iterations are not shown
		defer stop()
	}
	for ctx.Err() == nil {
		p.refresh(ctx)
		p.mu.Lock()
		next := idle
		if p.viewers > 0 {
			next = lookedAt
		}
		p.mu.Unlock()
		if !wait(ctx, soon, nil) || !wait(ctx, next-soon, p.poke) {
			return
		}
	}
}

// wait waits for a time, or until there is something; false: ctx is done.
func wait(ctx context.Context, d time.Duration, poke <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-poke:
	case <-ctx.Done():
		return false
	}
	return true
}

// Changed makes the page ask the controller soon, because something has happened.
func (p *Page) Changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Report takes what was measured of an iteration.
func (p *Page) Report(r *wire.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history.TakeReport(r)
}

// refresh asks the controller for its jobs, and loads plans that are new. What does not work is tried again the next
// time.
func (p *Page) refresh(ctx context.Context) {
	a, err := wire.AskJobs(func(q wire.Request) (wire.Answer, error) { return p.ask(ctx, q) })
	if err != nil {
		return
	}
	p.mu.Lock()
	p.history.TakeAnswer(clock.Now(), a)
	unplanned := p.history.MissingPlans()
	p.mu.Unlock()
	for i := range unplanned {
		p.plan(ctx, &unplanned[i])
	}
	p.mu.Lock()
	p.now = nil
	close(p.news)
	p.news = make(chan struct{})
	var trace []string
	for name, w := range p.watched {
		if r, _, _ := p.history.Layout(name); r.State == wire.JobRunning && r.Granted != w.asked {
			w.asked = r.Granted
			trace = append(trace, name)
		}
	}
	if p.viewers == 0 || len(p.graphs) > 2*len(a.Jobs) {
		clear(p.graphs)
	}
	p.mu.Unlock()
	for _, name := range trace {
		_, _ = p.ask(ctx, wire.Request{Verb: wire.TraceJob, Job: name, Iterations: 1}) // it is shown by nobody then
	}
}

// ask asks the controller.
func (p *Page) ask(ctx context.Context, q wire.Request) (wire.Answer, error) {
	if err := wire.Check(q); err != nil {
		return wire.Answer{}, fmt.Errorf("%s: %w", q.Verb, err)
	}
	data, err := p.bus.Ask(ctx, wire.ControlSubject, wire.Encode(q))
	if errors.Is(err, wire.ErrNobody) {
		return wire.Answer{}, errors.New("the controller does not answer yet")
	} else if err != nil {
		return wire.Answer{}, err
	}
	a, err := wire.DecodeAs[wire.Answer](data)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// plan loads the plan of a job and tells the history.
func (p *Page) plan(ctx context.Context, r *wire.Record) {
	g, err := p.graph(ctx, r.Spec.Graph)
	if err != nil {
		return
	}
	data, err := p.bus.Load(ctx, wire.Bucket(r.Executor), wire.LayoutObject(r.Spec.Name, r.Spec.ID, r.Granted))
	if err != nil {
		return
	}
	l, err := wire.DecodeAs[wire.Layout](data)
	if err != nil || l.Plan == nil || l.Plan.Graph != g.Digest() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history.TakePlan(r, g, &l)
}

// graph loads a graph.
func (p *Page) graph(ctx context.Context, digest graph.Digest) (*graph.Graph, error) {
	p.mu.Lock()
	g := p.graphs[digest]
	p.mu.Unlock()
	if g != nil {
		return g, nil
	}
	data, err := p.bus.Load(ctx, wire.Graphs, wire.GraphObject(digest))
	if err != nil {
		return nil, err
	}
	if g, err = graph.Read(bytes.NewReader(data)); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.graphs[digest] = g
	return g, nil
}

// addTrace takes a section that an executor has recorded.
func (p *Page) addTrace(data []byte) {
	p.mu.Lock()
	nobody := len(p.watched) == 0
	p.mu.Unlock()
	if nobody {
		return
	}
	s, err := timeline.Decode(data)
	if err != nil {
		return
	}
	m := live.MeasuredOf(&s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watched[s.Job]; w != nil && m != nil {
		w.measured = m
		close(p.news)
		p.news = make(chan struct{})
	}
}

// watch counts a viewer, of a job's page if a job is named.
func (p *Page) watch(name string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.viewers >= maxViewers {
		return nil, false
	}
	p.viewers++
	if name != "" {
		if p.watched[name] == nil {
			p.watched[name] = new(watched)
		}
		p.watched[name].viewers++
	}
	p.Changed()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.viewers--
		if w := p.watched[name]; w != nil {
			if w.viewers--; w.viewers == 0 {
				delete(p.watched, name)
			}
		}
	}, true
}

// maxViewers is how many browsers may look at the same time.
const maxViewers = 64

// overview is the event now: the overview and its sample, encoded once for all who look.
func (p *Page) overview() (event []byte, news <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		samples := p.history.Samples()
		p.now = encode(struct {
			live.Overview
			Sample []live.Sample `json:"sample"` // the newest; none before the controller has answered
		}{p.history.Overview(), samples[max(0, len(samples)-1):]})
	}
	return p.now, p.news
}

// helloEvent returns the first event for a viewer.
func (p *Page) helloEvent(steer bool) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return encode(struct {
		Version string        `json:"version"` // the version of the page's files
		Steer   bool          `json:"steer"`   // buttons may be used
		Samples []live.Sample `json:"samples"`
	}{version, steer, slices.Clip(p.history.Samples())})
}

// detail is the event job, with losses after an iteration; nil: there is no such job.
func (p *Page) detail(name string, after int) (event []byte, last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.history.Detail(name, after)
	if !ok {
		return nil, after
	}
	if n := len(d.Losses); n > 0 {
		after = d.Losses[n-1].Iteration
	}
	return encode(d), after
}

// newestTraced is the newest iteration that was traced of a job whose page is open.
func (p *Page) newestTraced(name string) *live.Measured {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watched[name]; w != nil {
		return w.measured
	}
	return nil
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("page: %T: %v", v, err))
	}
	return data
}
