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
	"tensile/wire"
)

// Two replicas train at two executors that bring a device each, at one of them beside two jobs that share its memory by
// gates. One executor is killed: both begin again with a
// checkpoint that both have, at the device that is left. They are stopped after one number of iterations, and have then
// learned what tensile run has its replicas learn that nothing disturbs, to the byte.
func TestClusterReplicas(t *testing.T) {
	long.Only(t)
	t.Parallel()
	c := newLab(t, 16*graph.MiB, "--silence", "3s", "--memory-sharing", "gates")
	bring := map[string]*family{"a": c.brings("a", "12MiB"), "b": c.brings("b", "4MiB")}
	c.tell("submit", "lenet:2", "--batch", "64", "--device", "a", "--name", "beside", "--iterations", forever)
	network := []string{"lenet", "--batch", "2", "--image", "12", "--replicas", "2"}
	c.tell(slices.Concat([]string{"submit"}, network, []string{"--name", "net", "--iterations", forever, "--checkpoint",
		"20it", "--save", filepath.Join(c.files, "net")})...)
	names := []string{"net@0", "net@1"}
	where := make(map[string]bool)
	for _, name := range names {
		where[c.checkpointed(name, 1).On] = true
	}
	if !where["a"] || !where["b"] {
		t.Errorf("two replicas of a job have the devices %v, not one each", where)
	}
	bring["b"].signal(syscall.SIGKILL)
	bring["b"].ends(-1, "")
	c.line("^executor b cannot be reached: ")
	c.tell("forget", "b")
	for _, name := range names {
		if r := c.goesOn(name, 2); r.On != "a" || r.From == 0 || r.From%20 != 0 {
			t.Errorf("replica %s goes on from iteration %d on device %s", name, r.From, r.On)
		}
	}

	c.tell("stop", "net")
	ended := []wire.Record{c.in(wire.JobStopped, names[0]), c.in(wire.JobStopped, names[1])}
	if ended[0].Iteration != ended[1].Iteration {
		t.Fatalf("the replicas were stopped after %d and %d iterations", ended[0].Iteration, ended[1].Iteration)
	}
	tensile(t, c.files, slices.Concat([]string{"run"}, network, []string{"--iterations",
		fmt.Sprint(ended[0].Iteration), "--save", "calm"})...)
	for i, r := range ended {
		calm := filepath.Join(c.files, fmt.Sprintf("calm-lenet@%d", i))
		if r.Result == nil || !bytes.Equal(read(t, r.Result.Saved), read(t, calm)) {
			t.Errorf("replica %s has learned something else than one that nothing disturbs", r.Spec.Name)
		}
	}
	c.signal(syscall.SIGTERM)
	c.ends(0, "")
}
