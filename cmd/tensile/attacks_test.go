//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tensile/internal/long"
	"tensile/wire"
)

var binaryFlag = flag.String("binary", "", "the binary that TestAttacks attacks, instead of this one")

// attacks are those of an attack on commit 113f0747, by the letters of what was mended after it. Each returns what it
// saw, and whether that is as it should be.
var attacks = []struct {
	name string
	run  func(v *victim) (saw string, holds bool)
}{
	{"A: the graphs are gone", damaged("OBJ_graphs", nil)},
	{"A: a block of graphs is cut", damaged("OBJ_graphs", third)},
	{"A: a block of graphs is flipped", damaged("OBJ_graphs", flip(10, 90))},
	{"A: most of a block of records is flipped", damaged("KV_record", flip(10, 100))},
	{"B: the status of an executor with a budget near 2^63", hugeBudget},
	{"C: a user replaces the stream of graphs by one message", rollup},
	{"C: an executor stores results of jobs that there are not", forgedResults},
	{"C: an executor writes log lines without end", endlessLines},
	{"C: a user sends requests without end", endlessRequests},
	{"C: credentials.json is gone", listGone},
	{"C: a digit of credentials.json is another", listFlipped},
	{"D: the controller is killed as it forgets an executor", killedWhileForgetting},
	{"E: a lease is stopped", leaseStopped},
	{"F: a user saves a job in the secret of the state folder", saveSecret},
}

// Each attack is made with processes and raw messages on a binary, -binary's or this one, and comes to nothing.
func TestAttacks(t *testing.T) {
	long.Only(t)
	t.Parallel()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			v := &victim{T: t, dir: t.TempDir(), binary: *binaryFlag}
			if v.binary == "" {
				v.binary = "tensile"
			}
			v.state = filepath.Join(v.dir, "state")
			defer v.end()
			saw, holds := a.run(v)
			if t.Logf("%s: %s", a.name, saw); !holds {
				t.Errorf("%s: the attack succeeds", a.name)
			}
		})
	}
}

// damaged changes the files of a stream, or removes it, while no controller runs. All jobs go on with the next one.
func damaged(stream string, change func([]byte) []byte) func(*victim) (string, bool) {
	return func(v *victim) (string, bool) {
		v.start("--memory-sharing", "none")
		names := []string{"a", "b", "c", "d"}
		was := v.train(names[:2], "--batch", "4", "--image", "12", "--checkpoint", "20it")
		was = v.train(names[2:], "--batch", "2", "--image", "12", "--checkpoint", "20it")
		v.kill()
		folder := filepath.Join(streamsOf(v.state), stream)
		blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
		if err != nil || len(blocks) == 0 {
			v.Fatalf("no blocks are in %s: %v", folder, err)
		}
		if change == nil {
			os.RemoveAll(folder)
		} else {
			harm{to: change}.come(v.T, blocks[0])
		}
		if ended := v.start("--memory-sharing", "none"); ended != "" {
			return "the controller does not start: " + ended, false
		}
		jobs, err, ok := v.until(func(jobs map[string]wire.Record) bool { return trainMore(was, jobs, names) })
		if err != nil {
			return err.Error(), false
		}
		return saidOf(jobs, names...), ok
	}
}

// saidOf says what is listed of jobs.
func saidOf(jobs map[string]wire.Record, names ...string) string {
	var all []string
	for _, name := range names {
		said := name + " is not there"
		if r, ok := jobs[name]; ok {
			why, _, _ := strings.Cut(r.Reason, "; ")
			said = strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", name, r.State, why), ": ")
		}
		all = append(all, said)
	}
	return strings.Join(all, "; ")
}

func hugeBudget(v *victim) (string, bool) {
	v.start("--memory-sharing", "gates")
	was := v.train([]string{"a"}, "--batch", "4", "--image", "12")
	x := v.mustAs("lab")
	text := read(v.T, "../../wire/testdata/status.json")
	for from, to := range map[string]string{
		`"executor": "e1"`:            `"executor": "lab"`,
		`"budget_bytes": 1073741824,`: `"budget_bytes": 9223372036854775807,`,
		`"identity": "cpu/gonum"`:     `"identity": "lab-cpu"`,
		`"device": "cpu"`:             `"device": "lab-cpu"`,
		`"limited": true,`:            `"limited": true`,
		`"drained": true`:             ``,
		`"leaves": true,`:             ``,
	} {
		if !bytes.Contains(text, []byte(from)) {
			v.Fatalf("%s is not in the message of the tests of package wire", from)
		}
		text = bytes.Replace(text, []byte(from), []byte(to), 1)
	}
	head, _, _ := bytes.Cut(text, []byte(`"jobs": [`))
	var line bytes.Buffer
	if err := json.Compact(&line, append(head, []byte(`"jobs": []}}`)...)); err != nil {
		v.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // it is not silent meanwhile
		defer close(stopped)
		for n := 12; x.flush() == nil; n++ {
			status := bytes.Replace(line.Bytes(), []byte(`"number":12`), fmt.Appendf(nil, `"number":%d`, n), 1)
			x.publish("$KV.status.lab", "", status)
			select {
			case <-stop:
				return
			case <-time.After(10 * pause):
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	said, _ := v.run("submit", "lenet", "--name", "b", "--batch", "4", "--image", "12", "--iterations", forever)
	train := func(jobs map[string]wire.Record) bool {
		return trainMore(was, jobs, []string{"a"}) && trainMore(nil, jobs, []string{"b"})
	}
	jobs, err, ok := v.until(train)
	if err == nil {
		return fmt.Sprintf("%s (submit said: %s)", saidOf(jobs, "a", "b"), strings.TrimSpace(said)), ok
	}
	v.start("--memory-sharing", "gates")
	_, again, _ := v.until(train)
	return fmt.Sprintf("%v; and started again: %v", err, again), false
}

func rollup(v *victim) (string, bool) {
	v.start("--memory-sharing", "none")
	was := v.train([]string{"a"}, "--batch", "4", "--image", "12")
	eve := v.mustAs("eve", "--user")
	before := v.stored("OBJ_graphs")
	eve.publish("$O.graphs.C.forged", "Nats-Rollup: all", []byte("forged"))
	if err := eve.flush(); err != nil {
		v.Fatal(err)
	}
	after := v.stored("OBJ_graphs")
	saw := fmt.Sprintf("the stream of graphs had %d bytes, and has %d; the server says %q", before, after, eve.errs)
	v.kill()
	if ended := v.start("--memory-sharing", "none"); ended != "" {
		return saw + "; the controller does not start again: " + ended, false
	}
	_, _, ok := v.until(func(jobs map[string]wire.Record) bool { return trainMore(was, jobs, []string{"a"}) })
	return saw, ok && after >= before
}

func forgedResults(v *victim) (string, bool) {
	v.start("--memory-sharing", "none")
	x := v.mustAs("lab")
	const count, each = 64, 1 << 20
	var most, now int64
	for i := range count {
		x.publish(fmt.Sprintf("$KV.result.lab.%d", 1000+i), "", bytes.Repeat([]byte("x"), each-1024))
		if err := x.flush(); err != nil {
			v.Fatal(err)
		}
		now = v.stored("KV_result")
		most = max(most, now)
	}
	for begin := time.Now(); now > each && v.waits(begin); time.Sleep(pause) {
		now = v.stored("KV_result")
	}
	return fmt.Sprintf("of %d MiB of results of no job at most %d KiB were stored at once, and %d KiB stay", count,
		most>>10, now>>10), now <= each
}

func listGone(v *victim) (string, bool) {
	v.start("--memory-sharing", "none")
	v.mustAs("eve", "--user")
	v.must("credentials", "eve", "--user", "--revoke")
	if _, err := v.as("eve", "--user"); err == nil {
		v.Fatal("a user is let in whose credentials were revoked")
	}
	v.kill()
	if err := os.Remove(filepath.Join(v.state, "credentials.json")); err != nil {
		v.Fatal(err)
	}
	if ended := v.start("--memory-sharing", "none"); ended != "" {
		return "the controller does not start: " + ended, true
	}
	_, err := v.as("eve", "--user")
	return fmt.Sprintf("a user whose credentials were revoked connects: %v", err), err != nil
}

func listFlipped(v *victim) (string, bool) {
	v.start("--memory-sharing", "none")
	v.mustAs("eve", "--user")
	v.must("credentials", "eve", "--user", "--revoke")
	list := filepath.Join(v.state, "credentials.json")
	text := read(v.T, list)
	flipped := bytes.Replace(text, []byte(`"revoked": 1`), []byte(`"revoked": 0`), 1)
	if bytes.Equal(flipped, text) {
		v.Fatalf("the list says of nobody that credentials were revoked:\n%s", text)
	}
	write(v.T, list, string(bytes.Replace(flipped, []byte(`"valid": false`), []byte(`"valid": true`), 1)))
	_, err := v.as("eve", "--user")
	return fmt.Sprintf("a user whose credentials were revoked connects: %v", err), err != nil
}

// endlessLines has an executor write more than the logs keep, of many jobs, while a job of another trains.
func endlessLines(v *victim) (string, bool) {
	v.start("--memory-sharing", "none")
	v.train([]string{"a"}, "--batch", "4", "--image", "12")
	first := func() string {
		line, _, _ := strings.Cut(v.must("logs", "a"), "\n")
		return line
	}
	before := first()
	x := v.mustAs("lab")
	line := bytes.Repeat([]byte("x"), 16<<10)
	const mib = 1 << 20
	sent := 0
	for ; sent < 1200*mib; sent += len(line) {
		x.publish(fmt.Sprintf("log.lab.j%d", sent/mib), "", line)
		if sent%mib == 0 && x.flush() != nil {
			break // it was disconnected
		}
	}
	after := first()
	return fmt.Sprintf("of %d MiB %d are stored; the log of a job begins with %q, and began with %q", sent/mib,
		v.stored("LOG")/mib, after, before), before == after
}

// endlessRequests has a user send requests as fast as the server takes them, while an administrator asks for the jobs.
func endlessRequests(v *victim) (string, bool) {
	v.start("--memory-sharing", "none")
	v.train([]string{"a"}, "--batch", "4", "--image", "12")
	to := v.credentials("eve", "--user")
	var stop atomic.Bool
	stopped := make(chan int)
	go func() {
		request := wire.Encode(wire.Request{Verb: wire.Jobs})
		sent := 0
		for !stop.Load() {
			eve, err := v.connect(to) // again, when it was disconnected
			if err == nil {
				err = eve.write("SUB _INBOX.eve 1\r\n")
				go func() { _, _ = io.Copy(io.Discard, eve.from) }() // until it is
			}
			for ; err == nil && !stop.Load(); sent++ {
				err = eve.write("PUB control _INBOX.eve %d\r\n%s\r\n", len(request), request)
			}
		}
		stopped <- sent
	}()
	const asks = 20
	answered := 0
	var err error
	for ; answered < asks && err == nil; answered++ {
		_, err = v.jobs()
	}
	stop.Store(true)
	if sent := <-stopped; err != nil {
		return fmt.Sprintf("while a user sends %d requests, number %d of the administrator gets: %v", sent, answered,
			err), false
	}
	return fmt.Sprintf("while a user sends requests, %d of the administrator are answered", asks), true
}

func killedWhileForgetting(v *victim) (string, bool) {
	const tries = 10
	v.start("--memory-sharing", "none")
	was := v.train([]string{"a"}, "--batch", "4", "--image", "12", "--checkpoint", "20it", "--restarts", "100")
	for try := range tries {
		x := was["a"].Executor
		lock := filepath.Join(v.state, "executors", x+".lock")
		for pid := range slices.Values(v.processes("executor")) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		for exists(lock) { // which goes last of its files
		}
		v.kill()
		if ended := v.start("--memory-sharing", "none"); ended != "" {
			return "the controller does not start: " + ended, false
		}
		jobs, err, ok := v.until(func(jobs map[string]wire.Record) bool {
			return jobs["a"].State == wire.JobUnknown || jobs["a"].Executor != x && trainMore(nil, jobs, []string{"a"})
		})
		if j := jobs["a"]; !ok || j.State == wire.JobUnknown {
			return fmt.Sprintf("at try %d job a is %s at executor %s, which has ended, and %d bytes are reserved for "+
				"it: %s, %v", try+1, j.State, j.Executor, j.Claim, j.Reason, err), false
		}
		was = jobs
	}
	return fmt.Sprintf("%d times the job went on in another executor", tries), true
}

func leaseStopped(v *victim) (string, bool) {
	v.start("--memory-sharing", "gates")
	names := []string{"a", "b"}
	v.train(names, "--batch", "32")
	found := v.processes("lease")
	if len(found) != 1 {
		v.Fatalf("the leases are processes %v, want one", found)
	}
	if err := syscall.Kill(found[0], syscall.SIGSTOP); err != nil {
		v.Fatal(err)
	}
	was, err := v.jobs()
	if err != nil {
		v.Fatal(err)
	}
	jobs, _, ok := v.until(func(jobs map[string]wire.Record) bool {
		return !slices.Contains(v.processes("lease"), found[0]) && trainMore(was, jobs, names)
	})
	if ok {
		return "it was ended, and the jobs train on with another", true
	}
	return fmt.Sprintf("after %v job a is %s at iteration %d, was at %d, reason %q", patience, jobs["a"].State,
		jobs["a"].Iteration, was["a"].Iteration, jobs["a"].Reason), false
}

func saveSecret(v *victim) (string, bool) {
	v.start("--memory-sharing", "none")
	secret := filepath.Join(v.state, "secret")
	before := read(v.T, secret)
	v.must("submit", "lenet", "--batch", "4", "--image", "12", "--name", "a", "--iterations", "2", "--save", secret)
	var j wire.Record
	v.until(func(jobs map[string]wire.Record) bool {
		j = jobs["a"]
		return j.State.Over()
	})
	after := read(v.T, secret)
	return fmt.Sprintf("the job is %s: %s; the secret had %d bytes, and has %d", j.State, j.Reason, len(before),
		len(after)), bytes.Equal(before, after)
}
