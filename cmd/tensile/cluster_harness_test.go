//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bus"
)

// cluster is a controller with its executors.
type cluster struct {
	*family
	budget graph.Bytes
	state  string
	files  string // folder for what tests make

	patient bool // its server may be away for a while, as it is when the disk was full
	unheld  bool // a script has trained without a plan since claims were last within the budget
}

// forever is the most iterations that a job may have, and more than any test waits for.
const forever = "16777216"

// apart has a controller give each job an arena of its own, unless its flags say how jobs share memory: the networks of
// these tests take less than a page, and most tests are about what arenas add up to. It also has the link of its device
// slow.
func apart(args []string) []string {
	if !slices.Contains(args, "--memory-sharing") {
		args = append([]string{"--memory-sharing", "none"}, args...)
	}
	if !slices.Contains(args, "--link") && !slices.Contains(args, "--device") {
		args = append([]string{"--link", slow("10MB/s")}, args...)
	}
	return args
}

// slow is the --link of jobs that train while a test does something else: in short form they sleep most of the time, in
// which the processors are for other tests.
func slow(link string) string { return long.Or(link, "none") }

// startCluster starts a controller and waits until it takes requests.
func startCluster(t *testing.T, budget graph.Bytes, args ...string) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{budget: budget, state: filepath.Join(dir, "state"), files: t.TempDir()}
	args = append([]string{"controller", "--state", c.state, "--budget", fmt.Sprint(int64(budget))}, apart(args)...)
	c.family = start(t, dir, args...)
	c.line("^controller of ")
	return c
}

// restart starts a controller on the state of another, which has ended.
func (c *cluster) restart(args ...string) *cluster {
	c.t.Helper()
	again := *c
	args = append([]string{"controller", "--state", c.state, "--budget", fmt.Sprint(int64(c.budget))}, apart(args)...)
	again.family = start(c.t, c.dir, args...)
	again.line("^controller of ")
	return &again
}

// connect connects to the controller with the credentials of a file; "": the administrator's.
func (c *cluster) connect(path string) *bus.Conn {
	c.t.Helper()
	credentials, err := bus.ReadCredentials(cmp.Or(path, filepath.Join(c.state, clientFile)))
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := bus.Connect(c.t.Context(), credentials, bus.ConnOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// tell runs a command for the controller, and returns what it prints.
func (c *cluster) tell(args ...string) string {
	c.t.Helper()
	return string(tensile(c.t, c.files, append(args, "--state", c.state)...))
}

// submit gives jobs of the smallest network to the controller.
func (c *cluster) submit(models ...string) string {
	c.t.Helper()
	return c.tell(append(append([]string{"submit"}, models...), "--batch", "8", "--iterations", forever)...)
}

// answered is what submit says of a job. Where plans take longer than submit waits for them, it says that they are
// being made, and the job's record says the rest later.
func (c *cluster) answered(job, said string) string {
	c.t.Helper()
	const early = "is being planned for"
	if said != fmt.Sprintf("job %s is queued: %s\n", job, early) {
		return said
	}
	r := c.until("plans with job "+job,
		func(jobs map[string]wire.Record) bool { return jobs[job].Reason != early })[job]
	return submitted(r) + "\n"
}

// logged waits until the log of a job has some text.
func (c *cluster) logged(job, text string) {
	c.t.Helper()
	c.until(fmt.Sprintf("%q in the log of job %s", text, job), func(map[string]wire.Record) bool {
		return strings.Contains(c.tell("logs", job), text)
	})
}

// refused runs a command that is to fail with one line, which it returns.
func (c *cluster) refused(args ...string) string {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), "tensile", args...)
	command.Dir = c.files
	command.Env = append(os.Environ(), "GORACE="+noPause)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	line, ended := strings.CutSuffix(stderr.String(), "\n")
	if command.ProcessState.ExitCode() != 1 || len(out) > 0 || !ended || strings.Contains(line, "\n") {
		c.t.Fatalf("tensile %q: %v, want exit status 1 and one line; stdout: %s, stderr: %s", args, err, out, &stderr)
	}
	return line
}

// answer is what the controller answers to who lists its jobs, with the whole results of these: what `jobs --json`
// prints, without a process for each look.
func (c *cluster) answer() wire.Answer {
	c.t.Helper()
	a, err := listed(c.t.Context(), c.state)
	for ; err != nil && c.patient && c.t.Context().Err() == nil; a, err = listed(c.t.Context(), c.state) {
		time.Sleep(pause)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func listed(ctx context.Context, state string) (wire.Answer, error) {
	conn, err := (&clientFlags{state: state}).connect(ctx)
	if err != nil {
		return wire.Answer{}, err
	}
	defer conn.Close()
	a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
	if err == nil {
		err = loadResults(ctx, conn, a.Jobs, make(map[string]*wire.Result))
	}
	return a, err
}

// jobs are the records of all jobs, by name. In none of these snapshots do claims exceed the budget, but while a script
// that has recorded more than it had claimed trains without a plan: it counts with what it takes, and there is nothing
// that could hold it to less. After that, claims may exceed it until the others have taken the smaller plans they have.
func (c *cluster) jobs() map[string]wire.Record {
	c.t.Helper()
	records := c.answer().Jobs
	named := make(map[string]wire.Record)
	for _, r := range records {
		named[r.Spec.Name] = r
		if r.Claim > 0 && (r.State.Over() || r.State == wire.JobQueued) {
			c.t.Errorf("job %s is %s and claims %s", r.Spec.Name, r.State, r.Claim)
		}
	}
	claims := together(named)
	switch {
	case slices.ContainsFunc(records, unheld):
		c.unheld = true
	case claims <= c.budget:
		c.unheld = false
	case !c.unheld || !slices.ContainsFunc(records, func(r wire.Record) bool { return r.Granted > r.Applied }):
		c.t.Errorf("claims of %s exceed the budget of %s: %+v", claims, c.budget, records)
	}
	return named
}

// unheld reports whether a job is a script that follows no plan.
func unheld(r wire.Record) bool {
	return r.Spec.Script && !r.State.Over() && (r.Script == nil || r.Script.Plan == 0)
}

// pause is the time between two looks.
const pause = 50 * time.Millisecond

// until asks for the jobs again and again, until they are as they should become.
func (c *cluster) until(what string, ok func(map[string]wire.Record) bool) map[string]wire.Record {
	c.t.Helper()
	end, limited := c.t.Deadline()
	for {
		jobs := c.jobs()
		if ok(jobs) {
			return jobs
		}
		if limited && time.Until(end) < reserve {
			text, _ := json.MarshalIndent(jobs, "", "  ")
			c.t.Fatalf("waited for %s in vain; jobs are %s", what, text)
		}
		time.Sleep(pause) // the processor is for the jobs
	}
}

// train waits until jobs have each done more iterations than before, all of them still training.
func (c *cluster) train(than map[string]wire.Record, names ...string) map[string]wire.Record {
	c.t.Helper()
	return c.until(fmt.Sprintf("%q to train", names), func(jobs map[string]wire.Record) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			if r := jobs[name]; r.State.Over() {
				c.t.Fatalf("job %s is %s before %q all train: %s", name, r.State, names, r.Reason)
			}
			return jobs[name].State != wire.JobRunning || jobs[name].Iteration <= than[name].Iteration
		})
	})
}

// in waits until a job is in a phase, and returns its record.
func (c *cluster) in(phase wire.JobState, name string) wire.Record {
	c.t.Helper()
	what := fmt.Sprintf("job %s to be %s", name, phase)
	return c.until(what, func(jobs map[string]wire.Record) bool { return jobs[name].State == phase })[name]
}

// end ends the controller by a signal, after the executors that it started.
func (c *cluster) end() {
	c.t.Helper()
	c.until("all executors to leave", func(map[string]wire.Record) bool { return len(executors(c.t, c.dir)) == 0 })
	c.signal(syscall.SIGTERM)
	if rest := c.ends(0, ""); !strings.Contains(rest, // other lines may follow
		"the controller ends; executors go on with their plans until it is started again on this state folder\n") {
		c.t.Errorf("the controller has ended without the line that executors go on: %s", rest)
	}
	c.vanishes()
	want := "tensile: no controller runs on the state folder " + c.state
	if line := c.refused("jobs", "--state", c.state); !strings.HasPrefix(line, want) {
		c.t.Errorf("after the controller has ended jobs says %q, want %q ...", line, want)
	}
}

// shows wants the plan of a job that has had another before, and its log.
func (c *cluster) shows(job string) {
	c.t.Helper()
	var p livePlan
	document(c.t, []byte(c.tell("plan", "--job", job, "--json")), &p)
	record := c.jobs()[job]
	if p.Job != job || p.Model != "lenet" || p.State != wire.JobRunning || p.Epoch < 2 || p.Newest < p.Epoch ||
		p.Newest > record.Epoch || p.Steps < p.Ops || p.Ops == 0 ||
		p.Swaps == 0 && p.Steps == p.Ops || p.PlanReason == "" ||
		p.Arena <= 0 || p.SlotPeak > p.Arena || p.Since < 1 || p.Since >= p.Epoch {
		c.t.Errorf("plan of job %s: %+v, its record: %+v", job, p, record)
	}
	for _, change := range p.Changes {
		if (change.Storage == "") == (change.Op == "") || change.Before == change.Now || change.Before == "" ||
			change.Now == "" {
			c.t.Errorf("job %s: change %+v", job, change)
		}
	}
	if p.Since == 1 && len(p.Changes) == 0 {
		c.t.Errorf("the plan of job %s has not changed since it was alone", job)
	}
	text := regexp.MustCompile(`^job ` + job +
		` \(lenet\) is running; plan [0-9]+ \((cold-start|updated)\)(; plan [0-9]+ waits for bytes of other jobs)?: .+
[0-9]+ steps for [0-9]+ ops, [0-9]+ swaps, slot peak [0-9.]+[KM]iB, arena [0-9.]+[KM]iB
[0-9]+ changes since plan [0-9]+
(  [a-z0-9.]+: .+ -> .+
)*$`)
	if said := c.tell("plan", "--job", job); !text.MatchString(said) {
		c.t.Errorf("plan --job %s says:\n%s", job, said)
	}
	log := regexp.MustCompile(`^trains with layout [0-9]+ in .+
(.*
)*iteration 0: [^ ]+, stall [^ ]+, loss [0-9.]+
`)
	c.until("the log of job "+job, func(map[string]wire.Record) bool { return log.MatchString(c.tell("logs", job)) })
}
