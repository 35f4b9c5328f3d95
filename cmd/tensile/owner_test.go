//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/bus"
	"tensile/wire"
	"tensile/workload"
)

// A user who says that a job is another's gets it as one of his own, and can do nothing with those of others, whatever
// he asks and however.
func TestClusterForgedOwner(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 8*graph.MiB)
	connect := func(name string) *bus.Conn {
		path := filepath.Join(c.files, name+".json")
		c.tell("credentials", name, "--user", "--output", path)
		credentials, err := bus.ReadCredentials(path)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := bus.Connect(t.Context(), credentials, bus.ConnOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ada, bob := connect("ada"), connect("bob")
	w, err := workload.Load([]string{"lenet"}, workload.Settings{Batch: 8, Image: 12})
	if err != nil {
		t.Fatal(err)
	}
	job := func(name, owner string) []newJob {
		return []newJob{{spec: wire.Spec{Name: name, Owner: owner, Model: "lenet", Graph: w[0].Graph.Digest(), Seed: 1,
			Iterations: 1_000_000}, graph: w[0].Graph}}
	}
	if _, err := submit(t.Context(), ada, job("hers", "")); err != nil {
		t.Fatal(err)
	}
	if _, err := submit(t.Context(), bob, job("his", "ada")); err != nil {
		t.Fatal(err)
	}
	for _, q := range []wire.Request{
		{Verb: wire.Stop, Job: "hers"},
		{Verb: wire.Park, Job: "hers", Place: wire.InMemory},
		{Verb: wire.Resume, Job: "hers"},
		{Verb: wire.SetWeight, Job: "hers", Priority: 5},
	} {
		q.Specs = []wire.Spec{{Name: "hers", Owner: "bob"}}
		if _, err := ask(t.Context(), bob, q); err == nil ||
			err.Error() != "job hers belongs to ada: ask ada or an administrator" {
			t.Errorf("%s of another's job: %v", q.Verb, err)
		}
	}
	if _, err := submit(t.Context(), bob, job("hers", "ada")); err == nil ||
		!strings.Contains(err.Error(), "it is not yours") {
		t.Errorf("a job of another's name: %v", err)
	}
	for _, q := range []wire.Request{{Verb: wire.SetBudget, Budget: graph.GiB}, {Verb: wire.Forget, Executor: "x1"}} {
		_, err := ask(t.Context(), ada, q)
		if err == nil || !strings.HasPrefix(err.Error(), "ada is no administrator") {
			t.Errorf("%s by a user: %v", q.Verb, err)
		}
	}
	jobs := c.jobs()
	if jobs["hers"].Spec.Owner != "ada" || jobs["his"].Spec.Owner != "bob" || jobs["hers"].Spec.Priority > 1 {
		t.Errorf("the jobs are %+v", jobs)
	}
	for _, q := range []wire.Request{{Verb: wire.SetWeight, Job: "hers", Priority: 5}, {Verb: wire.Stop, Job: "hers"}} {
		if _, err := ask(t.Context(), ada, q); err != nil {
			t.Errorf("%s of one's own job: %v", q.Verb, err)
		}
	}
	c.tell("stop", "his")
	c.end()
}
