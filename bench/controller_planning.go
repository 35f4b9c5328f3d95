package bench

import (
	"context"
	"errors"
	"time"

	"tensile/observe/report"
	"tensile/wire"
)

// planning submits a job for which plans take long, and measures what requests take until they are made.
func (s *rig) planning(ctx context.Context, r *PlanningReport) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	packed, err := wire.Pack(s.graph, nil)
	if err != nil {
		return err
	}
	begin := time.Now()
	answered := make(chan error, 1)
	go func() {
		spec := wire.Spec{Name: "long", Model: s.options.Model, Graph: s.graph.Digest(), Iterations: 1 << 30}
		a, err := s.request(ctx, wire.Request{Verb: wire.Submit, Specs: []wire.Spec{spec},
			Graphs: []wire.Packed{packed}})
		if err == nil && a.Error != "" {
			err = errors.New(a.Error)
		}
		r.Answered = report.Milliseconds(time.Since(begin))
		answered <- err
	}()
	var jobs, stops, puts []time.Duration
	for done := false; !done; {
		for _, m := range []struct {
			samples *[]time.Duration
			do      func() error
		}{
			{&jobs, func() error { _, err := s.request(ctx, wire.Request{Verb: wire.Jobs}); return err }},
			{&stops, func() error {
				_, err := s.request(ctx, wire.Request{Verb: wire.Stop,
					Job: "nobody"})
				return err
			}},
			{&puts, func() error {
				err := s.executors[0].tell(ctx)
				if err == nil {
					_, err = s.request(ctx, wire.Request{Verb: wire.Jobs})
				}
				return err
			}},
		} {
			since := time.Now()
			if err := m.do(); err != nil {
				return err
			}
			*m.samples = append(*m.samples, time.Since(since))
		}
		select {
		case <-s.adopted:
			done = true
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.Planned = report.Milliseconds(time.Since(begin))
	r.Jobs, r.Stop, r.Put = quantiles(jobs), quantiles(stops), quantiles(puts)
	return <-answered
}

// request asks the controller.
func (s *rig) request(ctx context.Context, q wire.Request) (wire.Answer, error) {
	data, err := s.conn.Ask(ctx, wire.ControlSubject, wire.Encode(q))
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.DecodeAs[wire.Answer](data)
}
