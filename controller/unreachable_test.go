package controller

import (
	"slices"
	"testing"

	"tensile/controller/fleet"
	"tensile/graph"
	"tensile/wire"
)

// A record that was handed out keeps what it says is held, also when that is given back later.
func TestRecordsKeepWhatWasHeld(t *testing.T) {
	m := NewMachine(Config{Device: "gpu", Align: 64, Budget: 1000, Policy: "none-live"})
	held := []wire.Holding{{Executor: "x1", Life: "1", ID: 1, Bytes: 300, On: m.ownDomain.recordName()},
		{Executor: "x2", Life: "2", ID: 1, Bytes: 400, On: m.ownDomain.recordName()}}
	j := &job{record: wire.Record{Spec: wire.Spec{Name: "a", ID: 1}, State: wire.JobFailed, Held: slices.Clone(held)},
		domain: m.ownDomain}
	m.jobs = append(m.jobs, j)
	first := j.record
	m.processEnded("x1", "1", "killed")
	second := j.record
	m.settleReservations(&fleet.Executor{Name: "x2", Process: fleet.Process{Life: "2"}}, &wire.Status{})
	if !slices.Equal(first.Held, held) || !slices.Equal(second.Held, held[1:]) || len(j.record.Held) > 0 {
		t.Errorf("records say %+v, then %+v and at last %+v of %+v", first.Held, second.Held, j.record.Held, held)
	}
	if got, _ := m.ownDomain.reservations(); got != graph.Bytes(0) {
		t.Errorf("%s are held", got)
	}
}
