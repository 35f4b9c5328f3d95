package agent

import (
	"errors"
	"reflect"
	"testing"

	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/executor/reduce"
	"tensile/models/task"
	"tensile/wire"
)

// Whatever a machine may be told is recorded: an input in which a field is set has that field when it is read again.
func TestToldIsWhole(t *testing.T) {
	why := errors.New("why")
	loss, online := wire.Loss(2), true
	inputs := map[string]Input{
		"Orders":   {Orders: &wire.Orders{Executor: "x1"}},
		"Prepared": {Prepared: &Prepared{Ticket: 1, Err: why, Again: true}},
		"Met":      {Met: &Met{Ticket: 1, Meeting: &wire.Meeting{Address: "a"}, Err: why}},
		"Fetched":  {Fetched: &Fetched{Ticket: 1, Epoch: 2, Peak: 3, Err: why, Again: true}},
		"Kept": {Kept: &Kept{Ticket: 1, Losses: []float32{1}, Weights: map[int32]string{0: "ab"}, Saved: "f",
			Err: why, Checkpoint: &wire.Checkpoint{Iteration: 3}, Again: true}},
		"Stored":  {Stored: &Stored{Ticket: 1, Err: why}},
		"Written": {Written: &Written{Ticket: 1, Checkpoint: &wire.Checkpoint{Iteration: 3, File: "f"}, Err: why}},
		"Closed":  {Closed: true},
		"Event":   {Event: &executor.Event{Job: "a", Refused: why}, Loss: &loss},
		"Loss":    {Event: &executor.Event{Job: "a", Ended: &executor.Ended{Err: why, Iterations: 3}}, Loss: &loss},
		"Online":  {Online: &online},
		"Tick":    {Tick: true},
		"Waits":   {Tick: true, Waits: map[lease.Job]string{"a": "why"}},
		"Drain":   {Drain: why},
		"Quit":    {Quit: why},
	}
	for name, in := range map[string]Input{
		"Begin": {Prepared: &Prepared{Ticket: 1, Notes: []string{"why"},
			Begin: &Begin{Iteration: 3, File: "f", Checkpoint: &wire.Checkpoint{Iteration: 3}}}},
		"Lacking":  {Prepared: &Prepared{Ticket: 1, Err: lackingError{why}}},
		"Damaged":  {Prepared: &Prepared{Ticket: 1, Err: damagedError{why}}},
		"Parked":   {Event: &executor.Event{Job: "a", Parked: 2}},
		"Begun":    {Event: &executor.Event{Job: "a", Begun: 2}},
		"Snapshot": {Event: &executor.Event{Job: "a", Snapshot: &executor.Snapshot{Iteration: 3}}},
		"crowded": {Event: &executor.Event{Job: "a", Ended: &executor.Ended{
			Err: recordedError{&device.OutOfMemoryError{Free: 5}, "why"}}}},
		"lost": {Event: &executor.Event{Job: "a", Ended: &executor.Ended{
			Err: recordedError{&reduce.LostError{Replica: 1, Err: why}, "why"}}}},
		"diverged": {Event: &executor.Event{Job: "a", Ended: &executor.Ended{
			Err: &task.DivergedError{What: "why"}}}},
		"troubled": {Event: &executor.Event{Job: "a", Troubled: why}},
		"useless":  {Kept: &Kept{Ticket: 1, Err: &task.DivergedError{What: "why"}}},
		"no state": {Event: &executor.Event{Job: "a", Snapshot: &executor.Snapshot{Err: why}}},
	} {
		if got := newRecordedInput(in).input(); !reflect.DeepEqual(got, in) {
			t.Errorf("%s is read again as %+v, was %+v", name, got, in)
		}
	}
	of := reflect.TypeFor[Input]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		in, ok := inputs[name]
		if !ok {
			t.Errorf("this test has no input with %s: add one, and see that it is recorded", name)
			continue
		}
		if got := newRecordedInput(in).input(); !reflect.DeepEqual(got, in) {
			t.Errorf("an input with %s is read again as %+v, was %+v", name, got, in)
		}
	}
}
