package bench

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"tensile/controller"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/bus"
)

// ControllerOptions say how much a controller is put under.
type ControllerOptions struct {
	Executors int           // connected, most of them idle
	Jobs      int           // of one model each, one per executor
	Reports   int           // a second, of all jobs together
	For       time.Duration // how long reports come
	Model     string
	Planning  string // a model that takes long to plan for; "": what requests take meanwhile is not measured
}

// ControllerReport is how a controller fares, with its server and all executors' connections in one process.
type ControllerReport struct {
	Executors int     `json:"executors"`
	Jobs      int     `json:"jobs"`
	Model     string  `json:"model"`
	Joined    float64 `json:"all_joined_ms"`
	// resident, both ends of its connection and what the controller keeps
	PerExecutor   int64     `json:"memory_per_executor_bytes"`
	Put           Quantiles `json:"orders_put_to_heard_ms"`
	Admitted      Quantiles `json:"submit_to_layout_ordered_ms"` // each with plans for all jobs before it
	ReportsWanted int       `json:"reports_per_second_wanted"`
	ReportsSent   int       `json:"reports_per_second_sent"`
	ReportsLost   int       `json:"reports_lost"`
	// until all reports were taken, after the last was sent; 200 ms at a time
	Backlog         float64   `json:"backlog_ms"`
	OrdersUnderLoad Quantiles `json:"orders_put_to_heard_under_reports_ms"`
	// of one job within 3/4 of what it needs, whose ops become faster and slower
	Replanned    Quantiles `json:"report_to_new_layout_ordered_ms"`
	NotReplanned int       `json:"changes_without_a_better_plan"`

	Planning *PlanningReport `json:"while_a_plan_is_made,omitempty"`
}

// PlanningReport is how a controller fares while a plan is made.
type PlanningReport struct {
	Model    string    `json:"model"`
	Planned  float64   `json:"planned_ms"`          // from the request to the event that there are plans
	Answered float64   `json:"submit_answered_ms"`  // it is answered after five seconds at the latest
	Jobs     Quantiles `json:"jobs_request_ms"`     // all jobs are asked for
	Stop     Quantiles `json:"stop_request_ms"`     // a job is to stop that there is not
	Put      Quantiles `json:"status_put_to_taken"` // from a heartbeat to the answer of a request after it
}

// Quantiles of a number of samples.
type Quantiles struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
}

func quantiles(samples []time.Duration) Quantiles {
	if len(samples) == 0 {
		return Quantiles{}
	}
	slices.Sort(samples)
	at := func(p int) float64 { return report.Milliseconds(samples[(len(samples)-1)*p/100]) }
	return Quantiles{len(samples), at(50), at(99)}
}

// rig is a controller, its server, and executors that do nothing but what the protocol demands.
type rig struct {
	options   ControllerOptions
	graph     *graph.Graph
	on        planner.Device
	profile   planner.Profile
	server    *bus.Server
	conn      *bus.Conn // as the controller
	executors []*fakeExecutor
	joined    chan struct{} // an executor has joined
	number    int64         // of the newest orders that puts made
	reports   int           // of replans
	adopted   chan struct{} // there are new plans
	eager     bool          // one report is enough for these
}

// MeasureController starts a controller on a server in dir, connects executors over TCP, and puts it under load; and
// then another, to see how soon it has a new plan when the load changes.
func MeasureController(ctx context.Context, dir string, o ControllerOptions) (*ControllerReport, error) {
	r := &ControllerReport{Executors: o.Executors, Jobs: o.Jobs, Model: o.Model, ReportsWanted: o.Reports}
	s := &rig{options: o, number: 1 << 40}
	if err := s.runController(ctx, filepath.Join(dir, "crowd"), 0, func(ctx context.Context) error {
		return s.measure(ctx, r)
	}); err != nil {
		return nil, err
	}
	s = &rig{options: ControllerOptions{Executors: 1, Jobs: 1, Model: o.Model}, number: 1 << 40, eager: true}
	if err := s.runController(ctx, filepath.Join(dir, "one"), 0.75, func(ctx context.Context) error {
		return s.replans(ctx, 40, r)
	}); err != nil {
		return nil, err
	}
	if o.Planning == "" {
		return r, nil
	}
	r.Planning = &PlanningReport{Model: o.Planning}
	s = &rig{options: ControllerOptions{Executors: 1, Jobs: 1, Model: o.Planning}, number: 1 << 40}
	err := s.runController(ctx, filepath.Join(dir, "planning"), 0.75, func(ctx context.Context) error {
		return s.planning(ctx, r.Planning)
	})
	return r, err
}

// runController runs a controller, with a budget of a share of what the model needs (0: none), while something is
// measured.
func (s *rig) runController(ctx context.Context, dir string, share float64,
	measure func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	config, err := s.config(ctx, share)
	if err != nil {
		return err
	}
	s.joined, s.adopted = make(chan struct{}, s.options.Executors), make(chan struct{}, 1)
	if s.server, err = bus.Start(bus.Options{Dir: dir, Listen: "127.0.0.1:0"}); err != nil {
		return err
	}
	defer s.server.Close()
	if s.conn, err = s.server.Connect(ctx, bus.ConnOptions{}); err != nil {
		return err
	}
	defer s.conn.Close()
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		cancel(controller.Run(ctx, s.conn, controller.Options{Config: config, PlanDevice: s.on,
			Observers: controller.Observers{Events: s.event}, Ready: func() { close(ready) }}))
	}()
	defer func() {
		cancel(nil)
		<-ended
	}()
	defer s.close()
	select {
	case <-ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return measure(ctx)
}

func (s *rig) config(ctx context.Context, share float64) (controller.Config, error) {
	w, err := task.Load([]string{s.options.Model}, task.Settings{Batch: 1})
	if err != nil {
		return controller.Config{}, err
	}
	facts, err := cost.Device(networkDevice)
	if err != nil {
		return controller.Config{}, err
	}
	d := sim.New(facts, sim.Options{})
	defer d.Close()
	s.graph = w[0].Graph
	s.on = planner.Describe(d, planner.Roofline(facts))
	if s.profile, err = s.on.Profile(s.graph); err != nil {
		return controller.Config{}, err
	}
	s.on.Profile = func(*graph.Graph) (planner.Profile, error) { return s.profile, nil } // the device is closed
	r := s.on.Request(s.profile.Job(w[0].Name, 1, s.graph))
	r.Policy = "tensile"
	planned, err := planner.Plan(ctx, r)
	if err != nil {
		return controller.Config{}, err
	}
	budget := graph.Bytes(share * float64(planned.Arena))
	c := controller.Config{Budget: budget, Policy: "tensile", Horizon: 1 << 20, Silence: time.Hour}
	if s.eager {
		c.Alpha, c.SettleReports = 1, 1
	}
	return c, nil
}

// event hears from the controller who has joined, and when there are new plans. An answer to a request would not tell:
// what an executor puts and what somebody asks come to the controller by different ways.
func (s *rig) event(e controller.Event) {
	switch e.Kind {
	case controller.Joined:
		s.joined <- struct{}{}
	case controller.Adopted:
		select {
		case s.adopted <- struct{}{}:
		default:
		}
	}
}

func (s *rig) close() {
	for _, d := range s.executors {
		d.conn.Close()
	}
}

func (s *rig) measure(ctx context.Context, r *ControllerReport) error {
	before := resident()
	begin := time.Now()
	if err := s.connect(ctx); err != nil {
		return err
	}
	r.Joined = report.Milliseconds(time.Since(begin))
	r.PerExecutor = (resident() - before) / int64(max(1, s.options.Executors))
	var err error
	if r.Put, err = s.puts(ctx, 500); err != nil {
		return err
	}
	jobs, admitted, err := s.submit(ctx)
	if err != nil {
		return err
	}
	r.Admitted = admitted
	return s.load(ctx, jobs, r)
}

const (
	noBetter = time.Second / 2        // after which replans assumes that no new plan pays
	rest     = 100 * time.Millisecond // after a plan none is made for drift for nine times as long as that took
)

// replans makes the ops of one job faster and slower, and measures from the report that says so until its executor
// learns of a new layout.
func (s *rig) replans(ctx context.Context, changes int, r *ControllerReport) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	jobs, _, err := s.submit(ctx)
	if err != nil {
		return err
	}
	var samples []time.Duration
	for name, d := range jobs {
		for i := range changes {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			epoch := d.epoch(name)
			select {
			case <-s.adopted: // of an earlier change
			default:
			}
			begin := time.Now()
			if err := s.report(ctx, d, name, epoch, []float64{0.05, 1}[i%2]); err != nil {
				return err
			}
			select {
			case <-s.adopted:
			case <-time.After(noBetter):
				r.NotReplanned++
				continue
			}
			at, err := d.await(ctx, func(o wire.Orders) bool { return d.trains(o, name) > epoch })
			if err != nil {
				return err
			}
			samples = append(samples, at.Sub(begin))
			if err := d.tell(ctx); err != nil {
				return err
			}
		}
	}
	r.Replanned = quantiles(samples)
	return nil
}

// report sends a report whose ops take a multiple of the profiled times.
func (s *rig) report(ctx context.Context, d *fakeExecutor, job string, epoch int64, times float64) error {
	layout, err := s.conn.Load(ctx, wire.Bucket(d.name), wire.LayoutObject(job, 1, epoch))
	if err != nil {
		return err
	}
	l, err := wire.DecodeAs[wire.Layout](layout)
	if err != nil {
		return err
	}
	rep := wire.Report{Executor: d.name, Job: job, Incarnation: 1, Epoch: epoch, Iteration: s.reports,
		Wall: time.Millisecond}
	for _, step := range l.Plan.Steps {
		rep.Steps = append(rep.Steps, time.Duration(times*float64(s.profile.Latency[step.Op])))
	}
	s.reports++
	return d.conn.Publish(wire.ReportSubject(d.name, job), wire.Encode(rep))
}

// resident is the process's resident memory.
func resident() int64 {
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
