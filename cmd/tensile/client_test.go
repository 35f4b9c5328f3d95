package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/wire"
)

// What executors log reaches a terminal as text alone.
func TestLogsAreText(t *testing.T) {
	var out strings.Builder
	l := log{out: &out}
	l.add([]byte("loss\t1 \x1b]0;title\x07"))
	if got, want := out.String(), "loss 1 \uFFFD]0;title\uFFFD\n"; got != want {
		t.Errorf("logs prints %q, want %q", got, want)
	}
}

// recordBus has the records of jobs, and nothing else.
type recordBus struct {
	wire.Bus
	records map[string]wire.Record // by key
}

func (b recordBus) Get(_ context.Context, key string) ([]byte, error) {
	r, ok := b.records[key]
	if !ok {
		return nil, wire.ErrNotFound
	}
	return wire.Encode(r), nil
}

// TestRecordsOf asks for a name that a job and some replicas have: it is that of what runs or waits, or came last.
func TestRecordsOf(t *testing.T) {
	bus := recordBus{records: make(map[string]wire.Record)}
	put := func(name string, seq int64, state wire.JobState, of wire.Replica) {
		bus.records[wire.RecordKey(name)] = wire.Record{Order: seq, State: state, Spec: wire.Spec{Name: name, ID: seq,
			Model: "lenet", Graph: graph.Digest(strings.Repeat("0", 64)), Iterations: 1, Priority: 1, Replica: of}}
	}
	replicas := func(state wire.JobState) {
		put("net@0", 2, state, wire.Replica{Of: 2, Group: 2})
		put("net@1", 3, state, wire.Replica{Number: 1, Of: 2, Group: 2})
	}
	want := func(names ...string) {
		t.Helper()
		all, err := recordsOf(t.Context(), bus, "net")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range all {
			got = append(got, r.Spec.Name)
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("net is (-want +got):\n%s", diff)
		}
	}
	put("net", 1, wire.JobFinished, wire.Replica{})
	want("net")
	replicas(wire.JobQueued)
	want("net@0", "net@1")
	replicas(wire.JobFinished)
	want("net@0", "net@1")
	put("net", 4, wire.JobQueued, wire.Replica{})
	want("net")
	put("net", 4, wire.JobFinished, wire.Replica{})
	want("net")
	delete(bus.records, wire.RecordKey("net"))
	want("net@0", "net@1")
}
