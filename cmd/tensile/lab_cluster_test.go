//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/needs"
	"tensile/wire"
)

// bringsOn is brings on another host. login: flags by which the executor is let in by servers of others.
func (c *lab) bringsOn(h *needs.Host, name, budget string, login ...string) *family {
	c.t.Helper()
	path := filepath.Join(c.files, name+".json")
	c.tell(append([]string{"credentials", name, "--output", path}, login...)...)
	x := startCommand(c.t, c.files, []string{"XDG_STATE_HOME=" + c.t.TempDir()}, h.On("tensile", "executor",
		"--credentials", path, "--name", name, "--budget", budget, "--checkpoints",
		filepath.Join(c.files, "checkpoints"))...)
	c.line(`^executor ` + name + ` has joined$`)
	return x
}

// Two hosts bring a device each, to a controller with a server of its own, and to one at three servers of others. Eight
// jobs are placed on both. A host is killed, and of the three servers that which leads the records: the host's jobs go
// on at the other one from their checkpoints, to the bits of undisturbed ones.
func TestLab(t *testing.T) {
	t.Parallel()
	patience := []string{"--silence", "10s", "--give-up", "10s"}
	t.Run("own", func(t *testing.T) {
		hosts := needs.OtherHosts(t, 2)
		c := newLab(t, 16*graph.MiB, append(patience, "--listen", hosts[0].Here+":0")...)
		c.survives(hosts, func() {})
	})
	t.Run("external", func(t *testing.T) {
		hosts := needs.OtherHosts(t, 2)
		s := startNATS(t, 3, hosts[0].Here)
		for i := range s.urls {
			s.start(i)
		}
		s.leads("KV_record")
		user := func(name string) string { return filepath.Join(s.dir, name) }
		c := newLab(t, 16*graph.MiB, append(patience, "--nats", s.list(), "--nats-auth", user("boss"),
			"--nats-executors", user("executors"))...)
		c.survives(hosts, func() { s.kill(s.leads("KV_record")) }, "--nats-auth", user("executors"))
	})
}

// survives has eight jobs trained on two hosts, of which one is killed while something else happens.
func (c *lab) survives(hosts []*needs.Host, meanwhile func(), login ...string) {
	c.t.Helper()
	all := map[string]*family{}
	for i, h := range hosts {
		name := fmt.Sprint("device", i)
		all[name] = c.bringsOn(h, name, "8MiB", login...)
	}
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprint("job", i))
		c.saves(names[i], forever, "--checkpoint", "50it", "--seed", fmt.Sprint(i))
	}
	jobs := c.until("all jobs to have checkpoints", func(jobs map[string]wire.Record) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return jobs[n].Checkpoint == nil })
	})
	on := make(map[string][]string)
	for _, n := range names {
		on[jobs[n].On] = append(on[jobs[n].On], n)
	}
	dead, left := "device0", "device1"
	if len(on[dead]) == 0 || len(on[left]) == 0 {
		c.t.Errorf("the jobs are on %v", on)
	}
	for name, d := range c.devices() {
		if want := map[string]string{"device0": "host0", "device1": "host1"}[name]; d.Host != want {
			c.t.Errorf("device %s is on host %s, want %s", name, d.Host, want)
		}
	}
	hosts[0].Cut()
	all[dead].signal(syscall.SIGKILL)
	all[dead].ends(-1, "")
	meanwhile()
	for _, n := range on[dead] {
		r := c.goesOn(n, 2)
		if r.On != left || len(r.Held) != 1 {
			c.t.Errorf("job %s is on %s, and %v is reserved for what its host may have", n, r.On, r.Held)
		}
	}
	c.train(c.jobs(), names...)
	for _, n := range names {
		c.tell("stop", n)
	}
	for _, n := range []string{on[dead][0], on[left][0]} {
		c.settles(n, append(smallJob, "--seed", n[len("job"):]))
	}
	c.signal(syscall.SIGTERM)
	c.ends(0, "")
}
