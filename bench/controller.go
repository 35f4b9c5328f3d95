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
	"tensile/cost"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/internal/bus"
	"tensile/scheduler"
	"tensile/wire"
)

// ControllerOptions say how much a controller is put under.
type ControllerOptions struct {
	Executors int           // connected, most of them idle
	Jobs      int           // of one model each, on so many of them
	Reports   int           // a second, of all jobs together
	For       time.Duration // how long reports come
	Model     string
}

// ControllerReport is how a controller fares, with its server and all executors' connections in one process.
type ControllerReport struct {
	Executors       int       `json:"executors"`
	Jobs            int       `json:"jobs"`
	Model           string    `json:"model"`
	Joined          float64   `json:"all_joined_ms"`
	PerExecutor     int64     `json:"memory_per_executor_bytes"` // resident, both ends of its connection and what the controller keeps
	Put             Quantiles `json:"orders_put_to_heard_ms"`
	Admitted        Quantiles `json:"submit_to_layout_ordered_ms"` // each with plans for all jobs before it
	ReportsWanted   int       `json:"reports_per_second_wanted"`
	ReportsSent     int       `json:"reports_per_second_sent"`
	ReportsLost     int       `json:"reports_lost"`
	Backlog         float64   `json:"backlog_ms"` // until all reports were taken, after the last was sent; 200 ms at a time
	OrdersUnderLoad Quantiles `json:"orders_put_to_heard_under_reports_ms"`
	Replanned       Quantiles `json:"report_to_new_layout_ordered_ms"` // of one job within 3/4 of what it needs, whose ops become faster and slower
	NotReplanned    int       `json:"changes_without_a_better_plan"`
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
	at := func(p int) float64 { return Milliseconds(samples[(len(samples)-1)*p/100]) }
	return Quantiles{len(samples), at(50), at(99)}
}

// stand is a controller, its server, and executors that do nothing but what the protocol demands.
type stand struct {
	options ControllerOptions
	graph   *graph.Graph
	profile controller.Profile
	server  *bus.Server
	conn    *bus.Conn // as the controller
	drones  []*drone
	joined  chan struct{} // an executor has joined
	number  int64         // of the newest orders that puts made
	reports int           // of replans
}

// MeasureController starts a controller on a server in dir, connects executors over TCP, and puts it under load; and then
// another, to see how soon it has a new plan when the load changes.
func MeasureController(ctx context.Context, dir string, o ControllerOptions) (*ControllerReport, error) {
	r := &ControllerReport{Executors: o.Executors, Jobs: o.Jobs, Model: o.Model, ReportsWanted: o.Reports}
	s := &stand{options: o, number: 1 << 40}
	if err := s.with(ctx, filepath.Join(dir, "crowd"), 0, func(ctx context.Context) error { return s.measure(ctx, r) }); err != nil {
		return nil, err
	}
	s = &stand{options: ControllerOptions{Executors: 1, Jobs: 1, Model: o.Model}, number: 1 << 40}
	if err := s.with(ctx, filepath.Join(dir, "one"), 0.75, func(ctx context.Context) error { return s.replans(ctx, 40, r) }); err != nil {
		return nil, err
	}
	return r, nil
}

// with runs a controller, with a budget of a share of what the model needs (0: none), while something is measured.
func (s *stand) with(ctx context.Context, dir string, share float64, measure func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	config, err := s.config(share)
	if err != nil {
		return err
	}
	s.joined = make(chan struct{}, s.options.Executors)
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
		cancel(controller.Run(ctx, s.conn, controller.Options{Config: config, Profile: s.profileOf, Log: func(string) {}, Events: s.event,
			Ready: func() { close(ready) }}))
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

func (s *stand) config(share float64) (controller.Config, error) {
	w, err := Load([]string{s.options.Model}, Settings{Batch: 1})
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
	for op := range s.graph.Ops {
		v := d.Variants(s.graph, graph.OpID(op))[0]
		s.profile.Latency = append(s.profile.Latency, facts.Roofline(s.graph.Cost(graph.OpID(op))))
		s.profile.Scratch, s.profile.Variant = append(s.profile.Scratch, v.Scratch), append(s.profile.Variant, v.Name)
	}
	planned, err := NewPlanner(w, d, scheduler.Options{}).Plan("tensile", 0)
	if err != nil {
		return controller.Config{}, err
	}
	return controller.Config{Budget: graph.Bytes(share * float64(planned.Arena)), Device: d.Identity(), Align: d.Align(), Out: facts.Out, In: facts.In, Policy: "tensile", Horizon: 1 << 20,
		Silence: time.Hour}, nil
}

func (s *stand) profileOf(*graph.Graph) (controller.Profile, error) { return s.profile, nil }

// event hears from the controller who has joined. An answer to a request would not tell: what an executor puts and
// what somebody asks come to the controller by different ways.
func (s *stand) event(e controller.Event) {
	if e.Kind == controller.Joined {
		s.joined <- struct{}{}
	}
}

func (s *stand) close() {
	for _, d := range s.drones {
		d.conn.Close()
	}
}

func (s *stand) measure(ctx context.Context, r *ControllerReport) error {
	before := resident()
	begin := time.Now()
	if err := s.connect(ctx); err != nil {
		return err
	}
	r.Joined = Milliseconds(time.Since(begin))
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

// replans makes the ops of one job faster and slower, and measures from the report that crosses the threshold until its
// executor hears of a new layout.
func (s *stand) replans(ctx context.Context, changes int, r *ControllerReport) error {
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
			epoch := d.epoch(name)
			granted := epoch
			var begin time.Time
			for range 40 { // until the average has settled
				begin = time.Now()
				if granted, err = s.report(ctx, d, name, epoch, []float64{0.05, 1}[i%2]); err != nil {
					return err
				}
				if granted > epoch {
					break
				}
			}
			if granted == epoch {
				r.NotReplanned++
				continue
			}
			if _, err := d.await(ctx, func(o wire.Orders) bool { return d.trains(o, name) == granted }); err != nil {
				return err
			}
			d.mu.Lock()
			samples = append(samples, d.at.Sub(begin))
			d.mu.Unlock()
			if err := d.tell(ctx); err != nil {
				return err
			}
		}
	}
	r.Replanned = quantiles(samples)
	return nil
}

// report sends one, of ops that take so many times as long as the profile says, and waits until it was taken. It returns
// the epoch that the job is granted then.
func (s *stand) report(ctx context.Context, d *drone, job string, epoch int64, times float64) (granted int64, err error) {
	layout, err := s.conn.Load(ctx, wire.Bucket(d.name), wire.LayoutObject(job, epoch))
	if err != nil {
		return 0, err
	}
	l, err := wire.DecodeAs[wire.Layout](layout)
	if err != nil {
		return 0, err
	}
	rep := wire.Report{Executor: d.name, Job: job, Epoch: epoch, Iteration: s.reports, Wall: time.Millisecond}
	for _, step := range l.Plan.Steps {
		rep.Steps = append(rep.Steps, time.Duration(times*float64(s.profile.Latency[step.Op])))
	}
	if err := d.conn.Publish(wire.ReportSubject(d.name, job), wire.Encode(rep)); err != nil {
		return 0, err
	}
	s.reports++
	for {
		jobs, err := s.jobs(ctx)
		if err != nil {
			return 0, err
		}
		if jobs[0].Iteration == s.reports {
			return jobs[0].Granted, nil
		}
	}
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
