//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bus"
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
	{"C: credentials.json is gone", listGone},
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

// patience is how long an attack waits on another binary for what does not come where the attack succeeds. On this one
// it waits as long as go test lets it.
const patience = 2 * time.Minute

// waits reports whether there is time left for what should come.
func (v *victim) waits(since time.Time) bool {
	if *binaryFlag != "" {
		return time.Since(since) < patience
	}
	end, limited := v.Deadline()
	return !limited || time.Until(end) > reserve
}

// victim is a controller of a binary with its executors.
type victim struct {
	*testing.T
	dir, state, binary string
	controller         *family
	says               *printed // the controller
}

// end kills what is left, also what an earlier binary has started.
func (v *victim) end() {
	for _, pid := range v.processes("") {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processes are those of this victim whose first argument is a command, or all.
func (v *victim) processes(command string) (pids []int) {
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		v.Fatal(err)
	}
	for _, path := range found {
		environ, _ := os.ReadFile(path) // it may have ended
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		words := strings.Split(string(args), "\x00")
		if slices.Contains(strings.Split(string(environ), "\x00"), "TMPDIR="+v.dir) && len(words) > 1 &&
			(command == "" || words[1] == command) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				v.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// start starts the controller, and returns the last line that it says if it ends instead.
func (v *victim) start(flags ...string) (ended string) {
	v.Helper()
	args := append([]string{v.binary, "controller", "--state", v.state, "--budget", "8MiB", "--silence", "3s"},
		flags...)
	v.controller = startCommand(v.T, v.dir, nil, args...)
	for p := v.controller; ; {
		if !p.lines.Scan() {
			p.wait()
			return lastLine(p.stderr.String())
		}
		if strings.Contains(p.lines.Text(), "controller of ") {
			v.says = p.listen()
			return ""
		}
	}
}

func lastLine(text string) string {
	if i := strings.Index(text, "panic: "); i >= 0 {
		text, _, _ = strings.Cut(text[i:], "\n")
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// kill kills the controller.
func (v *victim) kill() {
	v.controller.command.Process.Kill() // it may have ended
	v.controller.wait()
}

// run runs a command of the binary for the controller.
func (v *victim) run(args ...string) (out string, err error) {
	c := exec.CommandContext(v.Context(), v.binary, append(args, "--state", v.state)...)
	c.Dir = v.dir
	text, err := c.CombinedOutput()
	return string(text), err
}

func (v *victim) must(args ...string) string {
	v.Helper()
	out, err := v.run(args...)
	if err != nil {
		v.Fatalf("%q: %v: %s", args, err, out)
	}
	return out
}

// jobs are those that the controller lists, by name. The binary reads them: an earlier one bounds no numbers.
func (v *victim) jobs() (map[string]wire.Record, error) {
	out, err := v.run("jobs", "--json")
	if err != nil {
		return nil, fmt.Errorf("jobs says: %s", strings.TrimSpace(out))
	}
	var list []wire.Record
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		v.Fatalf("%v in:\n%s", err, out)
	}
	jobs := make(map[string]wire.Record)
	for _, r := range list {
		jobs[r.Spec.Name] = r
	}
	return jobs, nil
}

// until looks until something is so, and reports false if it does not become so, or the controller ends.
func (v *victim) until(ok func(map[string]wire.Record) bool) (last map[string]wire.Record, err error, is bool) {
	for begin := time.Now(); v.waits(begin); time.Sleep(10 * pause) {
		if last, err = v.jobs(); err == nil && ok(last) {
			return last, nil, true
		}
		select {
		case <-v.says.end:
			v.controller.wait()
			return last, fmt.Errorf("the controller ended: %s", lastLine(v.controller.stderr.String())), false
		default:
		}
	}
	return last, err, false
}

// train submits jobs, and waits until they train.
func (v *victim) train(names []string, flags ...string) map[string]wire.Record {
	v.Helper()
	for _, name := range names {
		v.must(append([]string{"submit", "lenet", "--name", name, "--iterations", forever}, flags...)...)
	}
	jobs, err, ok := v.until(func(jobs map[string]wire.Record) bool { return trainMore(nil, jobs, names) })
	if !ok {
		v.Fatalf("the jobs do not train: %+v, %v", jobs, err)
	}
	return jobs
}

// trainMore reports whether jobs are further than they were, at the executors that they had.
func trainMore(was, is map[string]wire.Record, names []string) bool {
	for _, name := range names {
		a, b := was[name], is[name]
		if b.State != wire.JobRunning || b.Iteration <= a.Iteration || was != nil && a.Executor != b.Executor {
			return false
		}
	}
	return true
}

// raw is a client of the bus that sends what it likes, in the protocol of NATS.
type raw struct {
	v    *victim
	conn net.Conn
	from *bufio.Reader
	errs []string // what the server refuses
}

func (v *victim) connect(c bus.Credentials) (*raw, error) {
	at, err := url.Parse(c.URL)
	if err != nil {
		v.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { conn.Close() })
	r := &raw{v: v, conn: conn, from: bufio.NewReader(conn)}
	if _, err := r.from.ReadString('\n'); err != nil { // INFO
		v.Fatal(err)
	}
	login, err := json.Marshal(map[string]any{"user": c.User, "pass": c.Password, "headers": true, "verbose": false})
	if err != nil {
		v.Fatal(err)
	}
	r.write("CONNECT %s\r\n", login)
	if err := r.flush(); err != nil {
		return nil, err
	}
	if len(r.errs) > 0 {
		return nil, fmt.Errorf("%s", r.errs[0])
	}
	return r, nil
}

// as connects with credentials that are given out for it.
func (v *victim) as(name string, flags ...string) (*raw, error) {
	v.Helper()
	path := filepath.Join(v.dir, name+".json")
	if _, err := os.Stat(path); err != nil {
		v.must(append([]string{"credentials", name, "--output", path}, flags...)...)
	}
	c, err := bus.ReadCredentials(path)
	if err != nil {
		v.Fatal(err)
	}
	return v.connect(c)
}

// mustAs connects with credentials that must be accepted.
func (v *victim) mustAs(name string, flags ...string) *raw {
	v.Helper()
	r, err := v.as(name, flags...)
	if err != nil {
		v.Fatal(err)
	}
	return r
}

// write sends text; that the server has closed the connection shows when it is read.
func (r *raw) write(format string, args ...any) { fmt.Fprintf(r.conn, format, args...) }

// publish sends a message, with a header unless that is "".
func (r *raw) publish(subject, header string, data []byte) {
	if header == "" {
		r.write("PUB %s %d\r\n%s\r\n", subject, len(data), data)
		return
	}
	header = "NATS/1.0\r\n" + header + "\r\n\r\n"
	r.write("HPUB %s %d %d\r\n%s%s\r\n", subject, len(header), len(header)+len(data), header, data)
}

// flush waits until the server has read all that was sent.
func (r *raw) flush() error {
	r.write("PING\r\n")
	for {
		line, err := r.from.ReadString('\n')
		if err != nil {
			if len(r.errs) > 0 {
				err = fmt.Errorf("%s", r.errs[len(r.errs)-1])
			}
			return err
		}
		switch line = strings.TrimSpace(line); {
		case line == "PONG":
			return nil
		case line == "PING":
			r.write("PONG\r\n")
		case strings.HasPrefix(line, "-ERR"):
			r.errs = append(r.errs, line)
		}
	}
}

// ask sends a request, and returns the answer.
func (r *raw) ask(subject string) []byte {
	r.v.Helper()
	r.write("SUB _INBOX.attack 1\r\nPUB %s _INBOX.attack 0\r\n\r\n", subject)
	for {
		line, err := r.from.ReadString('\n')
		if err != nil {
			r.v.Fatal(err)
		}
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "MSG" && words[0] != "HMSG" {
			continue
		}
		n, err := strconv.Atoi(words[len(words)-1])
		if err != nil {
			r.v.Fatal(err)
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(r.from, data); err != nil {
			r.v.Fatal(err)
		}
		return data
	}
}

// stored is how many bytes a stream has, as its owner, the controller, is told.
func (v *victim) stored(stream string) (bytes int64) {
	v.Helper()
	c, err := bus.ReadCredentials(filepath.Join(v.state, clientFile))
	if err == nil {
		c, err = bus.Issue(v.state, c, bus.Controller)
	}
	if err != nil {
		v.Fatal(err)
	}
	r, err := v.connect(c)
	if err != nil {
		v.Fatal(err)
	}
	defer r.conn.Close()
	var info struct {
		State struct {
			Bytes int64 `json:"bytes"`
		} `json:"state"`
	}
	answer := r.ask("$JS.API.STREAM.INFO." + stream)
	if err := json.Unmarshal(answer, &info); err != nil {
		v.Fatalf("%v in:\n%s", err, answer)
	}
	return info.State.Bytes
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
