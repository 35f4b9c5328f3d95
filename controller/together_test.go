package controller

import (
	"strings"
	"testing"
	"time"

	"tensile/models/nettest"
	"tensile/wire"
)

// replicas returns two replicas of a job of 100 iterations that train on the device of a machine.
func replicas() (m *Machine, a, b *job) {
	m = NewMachine(Config{Device: "model"})
	m.now = time.Hour
	for n, name := range []string{"net@0", "net@1"} {
		m.jobs = append(m.jobs, &job{domain: m.ownDomain, record: wire.Record{Spec: wire.Spec{Name: name,
			Iterations: 100,
			Replica:    wire.Replica{Group: 1, Number: n, Of: 2}}, State: wire.JobRunning}})
	}
	return m, m.jobs[0], m.jobs[1]
}

// Replicas go on from the newest checkpoint that all have: one of a run without a gap, of which only the first and the
// last are said, counts as well. One that was never ordered, or is no newer, is nothing.
func TestCommonCheckpoints(t *testing.T) {
	m, a, b := replicas()
	for _, j := range m.jobs {
		j.record.Spec.Checkpoint.Iterations, j.record.Restarts, j.record.From = 5, 2, 5
	}
	keeps := func(j *job, iteration, since, want int) {
		t.Helper()
		m.recordKeptCheckpoint(j, &wire.JobStatus{Checkpoint: &wire.Checkpoint{Iteration: iteration}, Since: since})
		if a.record.From != want || b.record.From != want {
			t.Errorf("after checkpoint %d they go on from %d and %d, want %d", iteration, a.record.From, b.record.From,
				want)
		}
	}
	keeps(a, 5, 0, 5)
	keeps(a, 105, 0, 5)
	if len(a.replica.checkpoints) > 0 {
		t.Errorf("kept are %v", a.replica.checkpoints)
	}
	keeps(a, 20, 10, 5)
	for iteration, want := range map[int]bool{5: false, 10: true, 12: false, 15: true, 20: true, 25: false} {
		if a.replica.checkpoints.Contains(iteration, 5) != want {
			t.Errorf("it has checkpoint %d: %v", iteration, !want)
		}
	}
	keeps(b, 12, 0, 5)
	if a.record.Restarts != 2 {
		t.Errorf("it was started again %d times", a.record.Restarts)
	}
	keeps(b, 15, 0, 15)
	if a.record.Restarts != 0 || b.record.Restarts != 0 {
		t.Errorf("after a progress they were started again %d and %d times", a.record.Restarts, b.record.Restarts)
	}
}

// Replicas rest after more iterations than any has begun, and than any was told before. Those that hear of it too late
// are given twice as many, but for a checkpoint by time not more than lie between two.
func TestChooseAt(t *testing.T) {
	m, a, b := replicas()
	choose := func(late bool, want int) {
		t.Helper()
		a.replica.resting = true
		m.chooseRestPoint(m.jobs, late)
		if a.record.At != want || b.record.At != want || a.replica.resting {
			t.Errorf("they rest after %d and %d iterations, want %d; the first rests: %v", a.record.At, b.record.At,
				want, a.replica.resting)
		}
	}
	a.record.Iteration, b.replica.iterationsBegun = 6, 7
	choose(false, 7+2)
	choose(true, 9+4)
	choose(true, 13+8)
	a.iterationTime, a.record.Spec.Checkpoint.Every = time.Second, 5*time.Second
	choose(true, 21+5)
	a.record.State = wire.JobParking
	choose(true, 26+10)
	a.record.Iteration = 95
	choose(true, 100)
}

// A replica rests when it says so of its newest orders, after the iteration that was chosen, and has nothing of the
// device any more. When all do they are parked.
func TestRested(t *testing.T) {
	m, a, b := replicas()
	for _, j := range m.jobs {
		j.record.State, j.record.Park, j.record.At = wire.JobParking, wire.InMemory, 9
	}
	m.recordRest(b, &wire.JobStatus{State: wire.Resting, Iteration: 9}, true)
	for _, c := range []struct {
		status  wire.JobStatus
		answers bool
		want    wire.JobState
	}{
		{wire.JobStatus{State: wire.Running, Iteration: 9}, true, wire.JobParking},
		{wire.JobStatus{State: wire.Resting, Iteration: 9}, false, wire.JobParking},
		{wire.JobStatus{State: wire.Resting, Iteration: 8}, true, wire.JobParking},
		{wire.JobStatus{State: wire.Resting, Iteration: 9, Arena: 64}, true, wire.JobParking},
		{wire.JobStatus{State: wire.Resting, Iteration: 9}, true, wire.JobParked},
	} {
		if m.recordRest(a, &c.status, c.answers); a.record.State != c.want || b.record.State != c.want {
			t.Errorf("%+v: they are %s and %s, want %s", c.status, a.record.State, b.record.State, c.want)
		}
	}
	a.replica, b.replica = replicaState{leftExecutor: true}, replicaState{resting: true}
	if !m.isGangAtRest(a) {
		t.Error("one has left and one rests, and not all are home")
	}
	if b.replica.resting = false; m.isGangAtRest(a) {
		t.Error("one trains, and all are home")
	}
}

// One that was told too late rests later, and with it the other.
func TestRestsLater(t *testing.T) {
	m, a, b := replicas()
	for _, j := range m.jobs {
		j.record.State, j.record.Park, j.record.At = wire.JobParking, wire.InMemory, 9
	}
	a.replica.iterationsBegun = 11
	m.recordRest(a, &wire.JobStatus{State: wire.Running, Iteration: 9, Begun: 11}, true)
	if a.record.At != 13 || b.record.At != 13 {
		t.Errorf("they rest after %d and %d iterations", a.record.At, b.record.At)
	}
}

// Replicas come all together, one after the other, whatever comes before them; and only as who submits them says them.
func TestRefusedReplicas(t *testing.T) {
	g, err := nettest.Replicas("mlp", 2)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string, replica wire.Replica) Submission {
		return Submission{Graph: g, Spec: wire.Spec{Name: name, Graph: g.Digest(), Replica: replica}}
	}
	first, second := wire.Replica{Of: 2}, wire.Replica{Number: 1, Of: 2}
	m := NewMachine(Config{Device: "model"})
	both := []Submission{of("a@0", first), of("a@1", second)}
	for _, c := range []struct {
		list    []Submission
		missing string
	}{
		{append(both, of("b@0", first), of("b@1", second)), ""},
		{append(both, of("b@0", first)), "b@1"},
		{append(both, of("b@1", second)), "b@0"},
		{both[1:], "a@0"},
		{append(both[:1:1], of("a@1", wire.Replica{Group: 7, Number: 1, Of: 2})), "a@1"},
	} {
		err := m.checkReplicas(c.list)
		if (err == nil) != (c.missing == "") ||
			err != nil && !strings.Contains(err.Error(), ": "+c.missing+" of its 2") {
			t.Errorf("%q is missing: %v", c.missing, err)
		}
	}
}
