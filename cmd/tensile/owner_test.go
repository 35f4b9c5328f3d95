//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/task"
	"tensile/wire"
	"tensile/wire/bus"
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
	w, err := task.Load([]string{"lenet"}, task.Settings{Batch: 8, Image: 12})
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
	for _, q := range []wire.Request{{Verb: wire.SetBudget, Budget: graph.GiB}, {Verb: wire.Forget, Executor: "x1"},
		{Verb: wire.SetShare, Tenant: "ada", Share: 9}} {
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

// An administrator gives users shares, which are there after a restart of the controller; jobs count for the tenant
// whose connection has submitted them, and their slowdown is measured.
func TestClusterTenants(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := startCluster(t, 8*graph.MiB)
	if said := c.tell("tenants"); said != "nobody has a share: tensile tenants set NAME --share N gives one\n" {
		t.Errorf("without tenants: %q", said)
	}
	if said := c.tell("tenant", "ada", "--share", "3"); said != "tenant ada has share 3, and no jobs yet\n"+
		"from now on every other user and the administrator count as tenants of share 1 each: tensile tenants lists "+
		"those with jobs\n" {
		t.Errorf("tenant says %q", said)
	}
	ada := filepath.Join(c.files, "ada.json")
	c.tell("credentials", "ada", "--user", "--output", ada)
	c.tell("submit", "lenet", "--image", "12", "--batch", "8", "--iterations", forever, "--credentials", ada)
	served := func() (list []wire.TenantState) {
		c.until("her job to have done something", func(map[string]wire.Record) bool {
			list = nil
			document(t, []byte(c.tell("tenants", "--json")), &list)
			return len(list) == 1 && list[0].Served > 0 && list[0].Speed > 0
		})
		return list
	}
	if list := served(); list[0].Name != "ada" || list[0].Share != 3 || list[0].Running != 1 || list[0].Waiting != 0 {
		t.Errorf("the tenants are %+v", list)
	}
	if r := c.jobs()["lenet"]; r.Measured <= 0 || r.Spec.Owner != "ada" {
		t.Errorf("the job is %+v", r)
	}
	c.signal(syscall.SIGKILL)
	c.ends(-1, "")
	c = c.restart()
	if list := served(); list[0].Share != 3 {
		t.Errorf("after a restart the tenants are %+v", list)
	}
	if out := c.tell("jobs"); !strings.Contains(out, "SLOWDOWN") {
		t.Errorf("jobs shows no slowdown:\n%s", out)
	}
	if said := c.tell("tenant", "ada", "--remove"); said != "tenant ada has no share of its own\n"+
		"nobody has a share any more: all jobs count by their priorities alone\n" {
		t.Errorf("tenant --remove says %q", said)
	}
	c.tell("stop", "lenet", "--credentials", ada)
	c.end()
}
