package cpu

import (
	"sync"

	"tensile/plan/program"
)

// arrivals is the order of the prologues of all jobs, for lanes that are threads. Its mutex comes after those of jobs.
type arrivals struct {
	mu      sync.Mutex
	changed sync.Cond // something that lets a copy go
	order   program.Arrivals
}

func newArrivals() *arrivals {
	a := new(arrivals)
	a.changed.L = &a.mu
	return a
}

// entry is a job's prologue. What follows the first field is guarded by the mutex of arrivals.
type entry struct {
	*arrivals
	*program.Arrival
	awaited bool // the lane that computes stands still for it
	closed  bool
}

func (e *entry) issue(s *program.Section) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.order.Issue(e.Arrival, s)
}

// wait returns when the next copy of the prologue is not to wait for others, or the job is closed.
func (e *entry) wait() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.closed && e.order.Yields(e.Arrival, e.awaited) {
		e.changed.Wait()
	}
}

// begin and end tell of a command.
func (e *entry) begin(s *program.Section, c *program.Command) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.order.Begin(e.Arrival, s, c)
}

func (e *entry) end(s *program.Section, c *program.Command) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.order.End(e.Arrival, s, c)
	e.changed.Broadcast()
}

// stand tells whether the lane that computes stands still for the prologue.
func (e *entry) stand(awaited bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.awaited = awaited; awaited {
		e.changed.Broadcast()
	}
}

// load has the job go on with the prologue of another program.
func (e *entry) load(x *program.Arrival) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Arrival = x
}

// close lets no copy wait any more. leave forgets the job, whose lanes have ended.
func (e *entry) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.changed.Broadcast()
}

func (e *entry) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.order.Close(e.Arrival)
	e.changed.Broadcast()
}
