package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/observe/report"
	"tensile/wire"
	"tensile/wire/bus"
)

// connect has all executors join.
func (s *rig) connect(ctx context.Context) error {
	for i := range s.options.Executors {
		d := &fakeExecutor{name: fmt.Sprintf("fake%04d", i), news: make(chan struct{}, 1)}
		conn, err := bus.Connect(ctx, s.server.Credentials(bus.Executor(d.name)), bus.ConnOptions{})
		if err != nil {
			return err
		}
		d.conn = conn
		s.executors = append(s.executors, d)
		if _, err := conn.Watch(ctx, wire.OrdersKey(d.name), d.hear); err != nil {
			return err
		}
		if err := d.tell(ctx); err != nil {
			return err
		}
	}
	for range s.executors {
		select {
		case <-s.joined:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// puts measures from the put of orders to the executor that receives them: the last one, which never has a job.
func (s *rig) puts(ctx context.Context, n int) (Quantiles, error) {
	d := s.executors[len(s.executors)-1]
	var samples []time.Duration
	for range n {
		s.number++
		begin := time.Now()
		o := wire.Orders{Executor: d.name, Number: s.number, Jobs: []wire.Assignment{}}
		if err := s.conn.Put(ctx, wire.OrdersKey(d.name), wire.Encode(o)); err != nil {
			return Quantiles{}, err
		}
		at, err := d.await(ctx, func(o wire.Orders) bool { return o.Number == s.number })
		if err != nil {
			return Quantiles{}, err
		}
		samples = append(samples, at.Sub(begin))
	}
	return quantiles(samples), nil
}

// submit submits the jobs one after another, each when the one before has a layout.
func (s *rig) submit(ctx context.Context) (map[string]*fakeExecutor, Quantiles, error) {
	packed, err := wire.Pack(s.graph, nil)
	if err != nil {
		return nil, Quantiles{}, err
	}
	jobs := make(map[string]*fakeExecutor)
	var samples []time.Duration
	for i := range s.options.Jobs {
		spec := wire.Spec{Name: fmt.Sprintf("job%03d", i), Model: s.options.Model, Graph: s.graph.Digest(),
			Iterations: 1 << 30}
		begin := time.Now()
		data, err := s.conn.Ask(ctx, wire.ControlSubject, wire.Encode(wire.Request{Verb: wire.Submit,
			Specs: []wire.Spec{spec}, Graphs: []wire.Packed{packed}}))
		if err != nil {
			return nil, Quantiles{}, err
		}
		a, err := wire.DecodeAs[wire.Answer](data)
		if err == nil && a.Error != "" {
			err = errors.New(a.Error)
		}
		if err != nil {
			return nil, Quantiles{}, err
		}
		d, at, err := s.ordered(ctx, i, spec.Name)
		if err != nil {
			return nil, Quantiles{}, err
		}
		samples = append(samples, at.Sub(begin))
		jobs[spec.Name] = d
		if err := d.tell(ctx); err != nil {
			return nil, Quantiles{}, err
		}
	}
	return jobs, quantiles(samples), nil
}

// ordered waits until a fake executor was told to train a job with a layout, and returns when it heard of that. Idle
// executors get jobs in the order of their names.
func (s *rig) ordered(ctx context.Context, job int, name string) (*fakeExecutor, time.Time, error) {
	d := s.executors[job]
	at, err := d.await(ctx, func(o wire.Orders) bool { return d.trains(o, name) > 0 })
	return d, at, err
}

// load sends reports at a rate, measures orders meanwhile, and how many reports have arrived.
func (s *rig) load(ctx context.Context, jobs map[string]*fakeExecutor, r *ControllerReport) error {
	var names []string
	for name := range jobs {
		names = append(names, name)
	}
	slices.Sort(names)
	sent := make(map[string]int)
	stop := make(chan struct{})
	done := make(chan error, 1)
	begin := time.Now()
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			due := begin.Add(time.Duration(n) * time.Second / time.Duration(s.options.Reports))
			if time.Until(due) > time.Millisecond {
				time.Sleep(time.Until(due))
			}
			name := names[n%len(names)]
			d := jobs[name]
			rep := wire.Report{Executor: d.name, Job: name, Incarnation: 1, Epoch: d.epoch(name),
				Iteration: sent[name],
				Steps:     s.profile.Latency, Wall: time.Millisecond}
			if err := d.conn.Publish(wire.ReportSubject(d.name, name), wire.Encode(rep)); err != nil {
				done <- err
				return
			}
			sent[name]++
		}
	}()
	var err error
	until := time.Now().Add(s.options.For)
	for r.OrdersUnderLoad, err = s.puts(ctx, 500); err == nil && time.Now().Before(until); {
		r.OrdersUnderLoad, err = s.puts(ctx, 500)
	}
	close(stop)
	took := time.Since(begin)
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	var total int
	for _, n := range sent {
		total += n
	}
	r.ReportsSent = int(float64(total) / took.Seconds())
	drained := time.Now()
	const patience = 25 // looks at a controller that takes no more reports, after which the others are lost
	var moved time.Time // when the last was seen to be taken
	for last, still := -1, 0; ; {
		taken, err := s.taken(ctx)
		if err != nil {
			return err
		}
		if still++; taken != last {
			still, moved = 0, time.Now()
		}
		if r.ReportsLost = total - taken; taken == total || still == patience {
			r.Backlog = report.Milliseconds(moved.Sub(drained))
			return nil
		}
		last = taken
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// taken is the number of reports that the controller has taken.
func (s *rig) taken(ctx context.Context) (int, error) {
	jobs, err := s.jobs(ctx)
	sum := 0
	for _, j := range jobs {
		sum += j.Iteration
	}
	return sum, err
}

// jobs asks the controller for all jobs.
func (s *rig) jobs(ctx context.Context) ([]wire.Record, error) {
	a, err := s.request(ctx, wire.Request{Verb: wire.Jobs})
	return a.Jobs, err
}
