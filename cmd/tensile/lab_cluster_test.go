//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/wire"
)

// bringsOn is brings on another host. login: flags by which the executor is let in by external servers.
func (c *lab) bringsOn(h *needs.Host, name, budget string, login ...string) *family {
	c.t.Helper()
	path := filepath.Join(c.files, name+".json")
	c.tell(append([]string{"credentials", name, "--output", path}, login...)...)
	x := startCommand(c.t, c.files, []string{"XDG_STATE_HOME=" + c.t.TempDir()}, h.Command("tensile", "executor",
		"--credentials", path, "--name", name, "--budget", budget, "--checkpoints",
		filepath.Join(c.files, "checkpoints"))...)
	c.line(`^executor ` + name + ` has joined$`)
	return x
}

// Two hosts bring a device each, to a controller with a server of its own, and to one at three external servers. Two
// replicas of a network, one on each host, train to the bits of two on one host. Eight jobs are placed on both. A host
// is killed, and of the three servers that which leads the records: the host's jobs go on at the other one from their
// checkpoints, to the bits of undisturbed ones.
func TestLab(t *testing.T) {
	long.Only(t)
	t.Parallel()
	patience := []string{"--silence", "10s", "--give-up", "10s"}
	t.Run("own", func(t *testing.T) {
		hosts := needs.OtherHosts(t, 2)
		c := newLab(t, 160*graph.MiB, append(patience, "--listen", hosts[0].Here+":0")...)
		c.losesHost(hosts, "mlp", func() {})
	})
	t.Run("external", func(t *testing.T) {
		hosts := needs.OtherHosts(t, 2)
		s := startNATS(t, 3, hosts[0].Here)
		for i := range s.urls {
			s.start(i)
		}
		s.leads("KV_record")
		user := func(name string) string { return filepath.Join(s.dir, name) }
		c := newLab(t, 160*graph.MiB, append(patience, "--nats", s.list(), "--nats-auth", user("boss"),
			"--nats-executors", user("executors"))...)
		c.losesHost(hosts, "resnet18", func() { s.kill(s.leads("KV_record")) }, "--nats-auth", user("executors"))
	})
}

// trainsTogether has two replicas of a network trained on two devices, to the bits of two on one.
func (c *lab) trainsTogether(network string) {
	c.t.Helper()
	flags := []string{network, "--image", "32", "--batch", "2", "--iterations", "2", "--replicas", "2", "--save"}
	saved, want := filepath.Join(c.files, "together"), filepath.Join(c.files, "here")
	c.tell(slices.Concat([]string{"submit"}, flags, []string{saved, "--wait"})...)
	run := slices.Concat([]string{"run"}, flags, []string{want, "--memory-sharing", "none"})
	start(c.t, c.files, run...).ends(0, "")
	jobs := c.jobs()
	if a, b := jobs[network+"@0"].On, jobs[network+"@1"].On; a == b || a == "" || b == "" {
		c.t.Errorf("the replicas of %s were on %q and %q", network, a, b)
	}
	for _, end := range []string{"@0", "@1"} {
		end = "-" + network + end
		if !bytes.Equal(read(c.t, saved+end), read(c.t, want+end)) {
			c.t.Errorf("%s%s has other weights than on one host", network, end)
		}
	}
}

// losesHost has two replicas of a network, and then eight jobs, trained on two hosts, of which one is killed while
// something else happens.
func (c *lab) losesHost(hosts []*needs.Host, network string, meanwhile func(), login ...string) {
	c.t.Helper()
	all := map[string]*family{}
	for i, h := range hosts {
		name := fmt.Sprint("device", i)
		all[name] = c.bringsOn(h, name, "80MiB", login...)
	}
	c.trainsTogether(network)
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
