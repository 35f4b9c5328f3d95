//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// lab is a controller without a device of its own.
type lab struct {
	*cluster
	args []string
}

// newLab starts one with more flags, for devices of a budget together, and waits until it takes requests.
func newLab(t *testing.T, budget graph.Bytes, more ...string) *lab {
	t.Helper()
	dir := t.TempDir()
	c := &lab{cluster: &cluster{budget: budget, state: filepath.Join(dir, "state"), files: t.TempDir()}}
	c.args = append([]string{"controller", "--state", c.state, "--device", "none", "--memory-sharing", "none"}, more...)
	c.family = start(t, dir, c.args...)
	c.line("^controller of the devices that executors bring")
	return c
}

// brings starts an executor that brings a device, and waits until it has joined. Checkpoints of all lie in one folder.
func (c *lab) brings(name, budget string) *family {
	c.t.Helper()
	path := filepath.Join(c.files, name+".json")
	c.tell("credentials", name, "--output", path)
	x := start(c.t, c.files, "executor", "--credentials", path, "--name", name, "--budget", budget, "--checkpoints",
		filepath.Join(c.files, "checkpoints"))
	c.line(`^executor ` + name + ` has joined$`)
	return x
}

// devices are what tensile devices says, by name. None has more than its budget.
func (c *lab) devices() map[string]wire.DeviceState {
	c.t.Helper()
	var list []wire.DeviceState
	document(c.t, []byte(c.tell("devices", "--json")), &list)
	named := make(map[string]wire.DeviceState)
	for _, d := range list {
		if named[d.Name] = d; d.Used > d.Budget {
			c.t.Errorf("device %s has %s used of %s", d.Name, d.Used, d.Budget)
		}
	}
	return named
}

// Executors bring two devices, of which one has room for what the other has not. Jobs go where they are told or fit; a
// drained device loses its job to the other, which trains it to the bits of an undisturbed run; a restart of the
// controller finds devices and jobs; and the jobs of a device whose process has ended go on at the other.
func TestClusterDevices(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := newLab(t, 6*graph.MiB, "--silence", "3s")
	c.submit("lenet", "--name", "early")
	if r := c.jobs()["early"]; r.State != wire.JobQueued || r.Reason != "waits for an executor that brings a device" {
		t.Errorf("without a device the job is %s: %s", r.State, r.Reason)
	}
	c.tell("stop", "early")
	bring := map[string]*family{"small": c.brings("small", "2MiB"), "large": c.brings("large", "4MiB")}
	if d := c.devices(); len(d) != 2 || d["small"].Budget != 2*graph.MiB || d["large"].Executors != 1 ||
		d["small"].Identity != d["large"].Identity {
		t.Errorf("the devices are %+v", d)
	}

	line := c.refused("submit", "mlp", "--batch", "8", "--state", c.state)
	if !strings.Contains(line, "none of 2 devices can run it; on the largest, large: job mlp cannot run here, even "+
		"alone: it needs 16MiB") {
		t.Errorf("of a job that fits no device it is said: %s", line)
	}
	line = c.refused("submit", "lenet", "--device", "tiny", "--state", c.state)
	if !strings.Contains(line, "there is no device tiny") {
		t.Errorf("of a device that is not there it is said: %s", line)
	}

	// Wherever it is placed, it goes on at the other.
	c.tell(slices.Concat([]string{"submit"}, small, []string{"--iterations", forever, "--name", "job", "--save",
		filepath.Join(c.files, "job"), "--checkpoint", "20it"})...)
	first := c.checkpointed("job", 1).On
	second := map[string]string{"small": "large", "large": "small"}[first]
	if said := c.tell("drain", first); said != "job job is parking\n" {
		t.Errorf("drain says %q", said)
	}
	if r := c.goesOn("job", 2); r.On != second || r.Executor != second {
		t.Errorf("the job went from %s, which is drained, to %q, at %q", first, r.On, r.Executor)
	}
	if d := c.devices(); !d[first].Drained || d[first].Jobs != 0 || d[second].Jobs != 1 {
		t.Errorf("after %s was drained the devices are %+v", first, d)
	}

	// The next controller finds all that.
	c.signal(syscall.SIGKILL)
	c.ends(-1, "")
	c.family = start(t, c.dir, c.args...)
	c.line("^controller of the devices that executors bring")
	before := c.checkpointed("job", 2)
	c.train(map[string]wire.Record{"job": before}, "job")
	if d := c.devices(); len(d) != 2 || !d[first].Drained || d[second].Jobs != 1 {
		t.Errorf("after a restart the devices are %+v", d)
	}
	if said := c.tell("drain", first, "--undo"); said != "device "+first+" takes jobs again\n" {
		t.Errorf("drain --undo says %q", said)
	}

	bring[second].signal(syscall.SIGKILL)
	bring[second].ends(-1, "")
	c.line("^executor " + second + " cannot be reached: ")
	c.tell("forget", second)
	if r := c.goesOn("job", 3); r.On != first {
		t.Errorf("the job of a device that has gone is on %q, want %s", r.On, first)
	}
	c.settles("job", small)
	c.signal(syscall.SIGTERM)
	c.ends(0, "")
}
