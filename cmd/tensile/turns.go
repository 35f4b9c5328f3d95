package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"tensile/controller/local"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/wire"
	"tensile/wire/bus"
)

// pace is how far the executors of a training go, block by block. Between its blocks all of its jobs rest in Home: they
// have nothing on the device, and the next block goes on from there.
type pace struct {
	mu       sync.Mutex
	children *children
	rests    map[string]int // per job: complete iterations in Home
	news     chan struct{}  // something has changed
}

func newPace() *pace { return &pace{rests: make(map[string]int), news: make(chan struct{}, 1)} }

// note records where a job is.
func (p *pace) note(s *wire.JobStatus) {
	if s.Arena > 0 {
		return
	}
	p.mu.Lock()
	p.rests[s.Name] = max(p.rests[s.Name], s.Iteration)
	p.mu.Unlock()
	p.wake()
}

func (p *pace) wake() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// begin hands over the executors, which rest until they are told more.
func (p *pace) begin(c *children) {
	p.mu.Lock()
	p.children = c
	p.mu.Unlock()
	p.wake()
}

// train has all jobs train up to an iteration, and returns when they rest there or when the training is over.
func (p *pace) train(ctx context.Context, w []task.Task, until int, over <-chan struct{}) error {
	told := false
	for {
		p.mu.Lock()
		if p.children != nil && !told {
			told = true
			p.children.train(until)
		}
		resting := true
		for _, t := range w {
			resting = resting && p.rests[t.Name] >= until
		}
		p.mu.Unlock()
		if resting {
			return nil
		}
		select {
		case <-p.news:
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch records what the statuses of executors say of their jobs.
func (p *pace) watch(ctx context.Context, conn *bus.Conn) (stop func(), err error) {
	return conn.Watch(ctx, wire.StatusKey("*"), func(_ string, value []byte) {
		if s, err := wire.DecodeAs[wire.Status](value); err == nil {
			for i := range s.Jobs {
				p.note(&s.Jobs[i])
			}
		}
	})
}

// alternate runs two trainings of the same jobs, a block of iterations of one and then the same of the other, so that
// background load hits both. While one trains, the jobs of the other rest in Home.
func alternate(ctx context.Context, trainings [2]*training, begin [2]func()) (runs [2]*local.Run, err error) {
	given := ctx
	ctx, cancel := context.WithCancelCause(given)
	var ends [2]chan struct{}
	var errs [2]error
	for i, t := range trainings {
		t.pace, ends[i] = newPace(), make(chan struct{})
		go func() {
			defer close(ends[i])
			if runs[i], errs[i] = t.run(ctx); errs[i] != nil {
				cancel(errs[i]) // the other has no one to be compared with
			}
		}()
	}
	for _, until := range report.Blocks(trainings[0].flags.iterations) {
		for i, t := range trainings {
			if ctx.Err() != nil {
				break
			}
			begin[i]()
			if err := t.pace.train(ctx, t.session.Tasks, until, ends[i]); err != nil {
				cancel(err)
			}
		}
	}
	for _, end := range ends {
		<-end
	}
	if err = context.Cause(ctx); given.Err() != nil {
		err = cmp.Or(errs[1], errs[0], err) // what became of the jobs that are to be saved, if any are
	}
	cancel(nil)
	if err == nil && (runs[0] == nil || runs[1] == nil) {
		err = fmt.Errorf("a training has ended without a result; please report this with the command line")
	}
	return runs, err
}
