//go:build linux

package main

import (
	"bufio"
	"encoding/json"
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

	"tensile/wire"
	"tensile/wire/bus"
)

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
		return nil, err
	}
	r := &raw{v: v, conn: conn, from: bufio.NewReader(conn)}
	if err := r.logIn(c); err != nil {
		conn.Close()
		return nil, err
	}
	v.Cleanup(func() { conn.Close() })
	return r, nil
}

func (r *raw) logIn(c bus.Credentials) error {
	if _, err := r.from.ReadString('\n'); err != nil { // INFO
		return err
	}
	login, err := json.Marshal(map[string]any{"user": c.User, "pass": c.Password, "headers": true, "verbose": false})
	if err != nil {
		return err
	}
	r.write("CONNECT %s\r\n", login)
	if err := r.flush(); err != nil {
		return err
	}
	if len(r.errs) > 0 {
		return fmt.Errorf("%s", r.errs[0])
	}
	return nil
}

// credentials are given out for a name, unless that was done before.
func (v *victim) credentials(name string, flags ...string) bus.Credentials {
	v.Helper()
	path := filepath.Join(v.dir, name+".json")
	if _, err := os.Stat(path); err != nil {
		v.must(append([]string{"credentials", name, "--output", path}, flags...)...)
	}
	c, err := bus.ReadCredentials(path)
	if err != nil {
		v.Fatal(err)
	}
	return c
}

// as connects with credentials that are given out for it.
func (v *victim) as(name string, flags ...string) (*raw, error) {
	v.Helper()
	return v.connect(v.credentials(name, flags...))
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

// write sends text, if the server has not closed the connection, which otherwise shows when it is read.
func (r *raw) write(format string, args ...any) error {
	_, err := fmt.Fprintf(r.conn, format, args...)
	return err
}

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
