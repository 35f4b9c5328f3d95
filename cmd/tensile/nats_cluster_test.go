//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bus"
)

// natsServers are NATS servers that somebody else runs: processes of nats-server.
type natsServers struct {
	t       *testing.T
	binary  string
	dir     string
	urls    []string
	running []*exec.Cmd
}

// natsUsers are the users of the servers, with what each may in place of %s.
const natsUsers = `authorization { users: [
  {user: boss, password: pw}
  {user: executors, password: pw}
  {user: ada, password: pw, %s}
] }
`

// natsServer is the program, built from the module that the embedded server is of.
var natsServer = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "nats-server")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "nats-server")
	build := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "GOPROXY=off", "XDG_CACHE_HOME="+cacheHome) // with what is built already
	out, err := build.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path)
})

// startNATS returns servers that form a cluster when they are started, and end with the test. They listen at an address
// of this host.
func startNATS(t *testing.T, count int, address string) *natsServers {
	t.Helper()
	s := &natsServers{t: t, dir: t.TempDir(), running: make([]*exec.Cmd, count)}
	s.binary = filepath.Join(s.dir, "nats-server")
	program, err := natsServer()
	if err != nil {
		t.Skipf("needs nats-server: it cannot be built: %v", err)
	}
	if err := os.WriteFile(s.binary, program, 0o700); err != nil {
		t.Fatal(err)
	}
	var ports []string
	for range 2 * count {
		l, err := net.Listen("tcp", address+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().String())
	}
	ada := string(tensile(t, s.dir, "credentials", "ada", "--user", "--permissions"))
	_, ada, _ = strings.Cut(ada, "\n") // a comment
	var routes []string
	for _, address := range ports[count:] {
		routes = append(routes, fmt.Sprintf("%q", "nats://"+address))
	}
	for i := range count {
		text := fmt.Sprintf("server_name: s%d\nlisten: %q\nmax_payload: %d\njetstream { store_dir: %q }\n"+natsUsers, i,
			ports[i], wire.MaxMessage, filepath.Join(s.dir, fmt.Sprint("js", i)), ada)
		if count > 1 {
			text += fmt.Sprintf("cluster { name: lab, listen: %q, routes: [%s] }\n", ports[count+i],
				strings.Join(routes, ", "))
		}
		if err := os.WriteFile(s.config(i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.urls = append(s.urls, "nats://"+ports[i])
	}
	for _, user := range []string{"boss", "executors", "ada"} {
		if err := os.WriteFile(filepath.Join(s.dir, user), []byte(user+":pw\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *natsServers) config(i int) string { return filepath.Join(s.dir, fmt.Sprintf("s%d.conf", i)) }

// start starts a server, also again, and waits until it takes connections.
func (s *natsServers) start(i int) {
	s.t.Helper()
	c := exec.Command(s.binary, "-c", s.config(i))
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.running[i] = c
	s.t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	s.await("a server to listen", func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.urls[i], "nats://"))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// kill ends a server the hard way.
func (s *natsServers) kill(i int) {
	s.t.Helper()
	kill(s.t, s.running[i].Process.Pid)
	s.running[i].Wait()
}

// list are the addresses of all servers.
func (s *natsServers) list() string { return strings.Join(s.urls, ",") }

// join connects as the controller, which makes the streams.
func (s *natsServers) join() (*bus.Conn, error) {
	return bus.Connect(s.t.Context(), bus.Credentials{URL: s.list(), User: bus.Controller, External: true,
		Login: bus.Login{User: "boss", Password: "pw"}}, bus.ConnOptions{})
}

// await does something again and again until it works.
func (s *natsServers) await(what string, do func() error) {
	s.t.Helper()
	end, limited := s.t.Deadline()
	for {
		err := do()
		if err == nil {
			return
		}
		if limited && time.Until(end) < reserve {
			s.t.Fatalf("waited for %s in vain: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// leads waits until each stream is on all servers, none of which lacks anything, and returns the number of the one that
// leads a stream.
func (s *natsServers) leads(stream string) (leader int) {
	s.t.Helper()
	s.await("streams on all servers", func() error {
		conn, err := s.join()
		if err != nil {
			return err
		}
		defer conn.Close()
		for _, name := range []string{"KV_leader", "KV_record", "KV_orders", "KV_device", "KV_status", "KV_result",
			"LOG", "OBJ_graphs", "OBJ_results", "OBJ_learnt", "OBJ_settings", stream} {
			text, err := conn.Ask(s.t.Context(), "$JS.API.STREAM.INFO."+name, nil)
			if err != nil {
				return err
			}
			var is struct {
				Cluster struct {
					Leader   string `json:"leader"`
					Replicas []struct {
						Current bool `json:"current"`
					} `json:"replicas"`
				} `json:"cluster"`
			}
			if err := json.Unmarshal(text, &is); err != nil {
				return err
			}
			current := 1
			for _, r := range is.Cluster.Replicas {
				if r.Current {
					current++
				}
			}
			if current != len(s.urls) || is.Cluster.Leader == "" {
				return fmt.Errorf("%s is as %s", name, text)
			}
			if _, err := fmt.Sscanf(is.Cluster.Leader, "s%d", &leader); err != nil {
				return err
			}
		}
		return nil
	})
	return leader
}

// others are controllers on external servers, with one state folder.
type others struct {
	*cluster
	servers *natsServers
}

// newExternal returns controllers to be started on servers.
func newExternal(t *testing.T, s *natsServers) *others {
	t.Helper()
	dir := t.TempDir()
	c := &others{&cluster{budget: 8 * graph.MiB, state: filepath.Join(dir, "state"), files: t.TempDir()}, s}
	c.family = &family{t: t, dir: dir}
	return c
}

// controller starts one more controller, on the state folder of the others.
func (c *others) controller() *family {
	c.t.Helper()
	return start(c.t, c.dir, "controller", "--state", c.state, "--budget", fmt.Sprint(int64(c.budget)),
		"--memory-sharing", "none", "--allow", c.files, "--nats", c.servers.list(),
		"--nats-auth", filepath.Join(c.servers.dir, "boss"),
		"--nats-executors", filepath.Join(c.servers.dir, "executors"))
}

// answers waits until a controller answers, and jobs are as they should become. Meanwhile a command may find no
// controller, or lose its connection.
func (c *others) answers(what string, ok func(map[string]wire.Record) bool) map[string]wire.Record {
	c.t.Helper()
	named := make(map[string]wire.Record)
	c.servers.await(what, func() error {
		command := exec.CommandContext(c.t.Context(), "tensile", "jobs", "--json", "--state", c.state)
		command.Env = append(os.Environ(), "GORACE="+noPause)
		out, err := command.Output()
		if err != nil {
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				return errors.New(string(exit.Stderr))
			}
			return err
		}
		var records []wire.Record
		document(c.t, out, &records)
		clear(named)
		for _, r := range records {
			named[r.Spec.Name] = r
		}
		if !ok(named) {
			return fmt.Errorf("jobs are %s", out)
		}
		return nil
	})
	return named
}

// onward waits until jobs train further than before, without a new start of their executors.
func (c *others) onward(than map[string]wire.Record, names ...string) map[string]wire.Record {
	c.t.Helper()
	now := c.answers(fmt.Sprintf("%q to train on", names), func(jobs map[string]wire.Record) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			return jobs[name].State != wire.JobRunning || jobs[name].Iteration <= than[name].Iteration
		})
	})
	for _, name := range names {
		if now[name].Incarnation != 1 {
			c.t.Errorf("job %s was started again: %+v", name, now[name])
		}
	}
	return now
}

// Of three servers that somebody else runs one is killed while jobs train, and when that is back the one that leads the
// stream of records. Jobs train on, and come to the bits of undisturbed ones. A user of the servers submits one.
func TestNATSLosesServers(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := startNATS(t, 3, "127.0.0.1")
	for i := range s.urls {
		s.start(i)
	}
	s.leads("KV_record")
	c := newExternal(t, s)
	first := c.controller()
	first.line("^controller of ")
	ada := filepath.Join(c.files, "ada.json")
	c.tell("credentials", "ada", "--user", "--nats-auth", filepath.Join(s.dir, "ada"), "--output", ada)
	c.saves("a", forever)
	tensile(t, c.files, append(append([]string{"submit", "--credentials", ada}, smallJob...), "--name", "b",
		"--iterations", forever, "--save", filepath.Join(c.files, "b"))...)
	before := c.onward(nil, "a", "b")
	if before["a"].Spec.Owner != "" || before["b"].Spec.Owner != "ada" {
		t.Errorf("the jobs belong to %q and %q", before["a"].Spec.Owner, before["b"].Spec.Owner)
	}
	if line := c.refused("stop", "a", "--credentials", ada); !strings.Contains(line, "belongs to an administrator") {
		t.Errorf("who does not own a job stops it: %s", line)
	}
	pids := executors(t, c.dir)
	other := (s.leads("KV_record") + 1) % len(s.urls)
	s.kill(other)
	before = c.onward(before, "a", "b")
	s.start(other)
	leader := s.leads("KV_record")
	before = c.onward(before, "a", "b")
	s.kill(leader)
	c.onward(before, "a", "b")
	for name, pid := range executors(t, c.dir) {
		if pids[name] != pid {
			t.Errorf("executor %s is process %d, and was %d", name, pid, pids[name])
		}
	}
	s.start(leader)
	s.leads("KV_record")
	c.answers("the controller", func(map[string]wire.Record) bool { return true })
	c.settles("a", smallJob)
	c.settles("b", smallJob)
	first.signal(syscall.SIGTERM)
	first.ends(0, "")
}

// When the controller that leads is killed the other takes its place: jobs train on in the processes that they have,
// and come to the bits of undisturbed ones; what it does next it does once.
func TestStandby(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := startNATS(t, 1, "127.0.0.1")
	s.start(0)
	c := newExternal(t, s)
	first := c.controller()
	first.line("^this controller leads, in term 1$")
	first.line("^controller of ")
	second := c.controller()
	second.line("^this controller stands by: .* leads$")
	c.tell("budget", "7MiB")
	c.saves("a", forever)
	before := c.onward(nil, "a")
	pids := executors(t, c.dir)
	first.signal(syscall.SIGKILL)
	first.ends(-1, "")
	second.line("^this controller leads, in term 2$")
	second.line("^controller of ")
	after := c.onward(before, "a")
	if now := executors(t, c.dir); len(now) != 1 || now["x1"] != pids["x1"] || after["a"].Epoch < before["a"].Epoch {
		t.Errorf("executors are %v, and were %v; the job is %+v, and was %+v", now, pids, after["a"], before["a"])
	}
	third := c.controller()
	third.line("^this controller stands by: .* leads$")
	c.saves("b", forever)
	after = c.onward(after, "a", "b")
	second.signal(syscall.SIGTERM) // which lets the next lead at once
	second.ends(0, "")
	third.line("^this controller leads, in term 3$")
	third.line("^controller of ")
	c.onward(after, "a", "b")
	kill(t, executors(t, c.dir)["x1"]) // of which a controller that has not started it hears by its lock
	c.goesOn("a", 2)
	c.settles("a", smallJob)
	c.settles("b", smallJob)
	third.signal(syscall.SIGTERM)
	third.ends(0, "")
}

// A controller that was stopped, and goes on when another leads, writes nothing more: it leaves what users have asked
// for meanwhile, which it hears too, and notices that it does not lead.
func TestStoppedController(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := startNATS(t, 1, "127.0.0.1")
	s.start(0)
	c := newExternal(t, s)
	first := c.controller()
	first.line("^controller of ")
	c.saves("a", forever)
	before := c.onward(nil, "a")
	second := c.controller()
	second.line("^this controller stands by: .* leads$")
	first.signal(syscall.SIGSTOP)
	second.line("^this controller leads, in term 2$")
	second.line("^controller of ")

	conn, err := s.join()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var mu sync.Mutex
	newest := make(map[string]wire.Record)
	stop, err := conn.Watch(t.Context(), wire.RecordKey("*"), func(key string, value []byte) {
		mu.Lock()
		defer mu.Unlock()
		r, err := wire.DecodeAs[wire.Record](value)
		if err != nil {
			t.Error(err)
			return
		}
		was := newest[key]
		if r.Spec.ID != was.Spec.ID && was.Spec.ID != 0 || r.Epoch < was.Epoch || r.Incarnation < was.Incarnation ||
			was.State.Over() && !r.State.Over() {
			t.Errorf("the record %+v comes after %+v", r, was)
		}
		newest[key] = r
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c.saves("b", forever) // which both hear, and the first later
	before = c.onward(before, "a", "b")
	c.tell("stop", "a")
	c.answers("job a to stop", func(jobs map[string]wire.Record) bool { return jobs["a"].State == wire.JobStopped })
	pids := executors(t, c.dir)
	first.signal(syscall.SIGCONT)
	first.line("^this controller leads no longer: ")
	after := c.onward(before, "b")
	if a := after["a"]; a.State != wire.JobStopped || after["b"].Spec.ID != before["b"].Spec.ID {
		t.Errorf("jobs are %+v, and were %+v", after, before)
	}
	for name, pid := range executors(t, c.dir) {
		if pids[name] != pid {
			t.Errorf("executor %s of process %d was started by a controller that does not lead", name, pid)
		}
	}
	c.settles("a", smallJob)
	c.settles("b", smallJob)
	for _, p := range []*family{first, second} {
		p.signal(syscall.SIGTERM)
		p.ends(0, "")
	}
}
