package agent

import (
	"fmt"
	"testing"
	"time"

	"tensile/executor"
	"tensile/wire"
)

// Twenty jobs of very many iterations have ended while the controller was away. The status that tells of them fits a
// message, since their losses are stored.
func TestManyResults(t *testing.T) {
	online, offline := true, false
	m := NewMachine(Process{Executor: "x1", Life: "life", Device: "device"})
	tickets := make(map[string]Ticket)
	var now time.Duration
	var status *wire.Status
	var stored []Input
	step := func(in Input) {
		now += time.Second
		for _, o := range m.Step(now, in) {
			switch {
			case o.Prepare != nil:
				tickets[o.Prepare.Spec.Name] = o.Prepare.Ticket
			case o.Store != nil:
				if len(o.Store.Result.Losses) != wire.MaxLosses || len(wire.Encode(*o.Store.Result)) > wire.MaxMessage {
					t.Fatalf("a result of %d losses is stored", len(o.Store.Result.Losses))
				}
				stored = append(stored, Input{Stored: &Stored{Ticket: o.Store.Ticket}})
			case o.Status != nil:
				status = o.Status
			}
		}
	}
	step(Input{Online: &online})
	orders := &wire.Orders{Executor: "x1", Number: 1}
	const jobs = 20
	for i := range jobs {
		spec := wire.Spec{Name: fmt.Sprint("job", i), ID: int64(i + 1), Iterations: wire.MaxLosses}
		orders.Jobs = append(orders.Jobs, wire.Assignment{Spec: spec, Epoch: 1})
	}
	step(Input{Orders: orders})
	for _, o := range orders.Jobs {
		step(Input{Prepared: &Prepared{Ticket: tickets[o.Spec.Name]}})
		step(Input{Fetched: &Fetched{Ticket: tickets[o.Spec.Name], Epoch: 1, Proven: provenOf(1)}})
	}
	step(Input{Online: &offline})
	for _, o := range orders.Jobs {
		step(Input{Event: &executor.Event{Job: o.Spec.Name, Ended: &executor.Ended{Iterations: wire.MaxLosses}}})
		step(Input{Kept: &Kept{Ticket: tickets[o.Spec.Name], Losses: make([]float32, wire.MaxLosses)}})
	}
	step(Input{Online: &online})
	if len(stored) != jobs {
		t.Fatalf("%d results are to be stored, want %d", len(stored), jobs)
	}
	for _, in := range stored {
		step(in)
	}
	text := wire.Encode(*status)
	said, err := wire.DecodeAs[wire.Status](text)
	if err != nil || len(text) > wire.MaxMessage/100 {
		t.Fatalf("the status has %d bytes: %v", len(text), err)
	}
	for _, j := range said.Jobs {
		if j.State != wire.Finished || j.Result.Stored == "" {
			t.Errorf("job %s is %s, its result at %q", j.Name, j.State, j.Result.Stored)
		}
	}
}
