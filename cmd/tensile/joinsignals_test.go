//go:build linux

package main

import (
	"maps"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// sent is a signal to a script, to the command that joins it or to both, and the state of the job that is waited for
// then; "": none.
type sent struct {
	signal syscall.Signal
	to     string // of s (the script) and c (the command), in this order
	then   wire.JobState
}

const toldToEnd = "its executor was interrupted, and its script told to end"

// signalledRow is a row of signalled.
type signalledRow struct {
	signals []sent
	status  int
	why     string
}

// signalled says what signals come, the exit status of the command (-1: it is killed) and what the job's record says.
var signalled = map[string]signalledRow{
	"command interrupted": {[]sent{{signal: syscall.SIGINT, to: "c"}}, 130, toldToEnd},
	"command ended":       {[]sent{{signal: syscall.SIGTERM, to: "c"}}, 143, toldToEnd},
	"command hung up":     {[]sent{{signal: syscall.SIGHUP, to: "c"}}, 129, toldToEnd},
	"script interrupted":  {[]sent{{signal: syscall.SIGINT, to: "s"}}, 130, "signal: interrupt"},
	"script ended":        {[]sent{{signal: syscall.SIGTERM, to: "s"}}, 143, "signal: terminated"},
	"script hung up":      {[]sent{{signal: syscall.SIGHUP, to: "s"}}, 129, "signal: hangup"},
	"script killed":       {[]sent{{signal: syscall.SIGKILL, to: "s"}}, 137, "signal: killed"},
	"both interrupted":    {[]sent{{signal: syscall.SIGINT, to: "sc"}}, 130, "signal: interrupt|" + toldToEnd},
	"both hung up":        {[]sent{{signal: syscall.SIGHUP, to: "sc"}}, 129, "signal: hangup|" + toldToEnd},
	"both suspended and continued": {[]sent{{syscall.SIGSTOP, "cs", wire.JobUnknown},
		{syscall.SIGCONT, "sc", wire.JobRunning}, {signal: syscall.SIGTERM, to: "c"}}, 143, toldToEnd},
	"command suspended and continued, script ended": {[]sent{{syscall.SIGSTOP, "c", wire.JobUnknown},
		{syscall.SIGCONT, "c", wire.JobRunning}, {signal: syscall.SIGTERM, to: "s"}}, 143, "signal: terminated"},
	"command suspended, script ended": {[]sent{{syscall.SIGSTOP, "c", wire.JobUnknown},
		{signal: syscall.SIGTERM, to: "s"}, {signal: syscall.SIGCONT, to: "c"}}, 143, "signal: terminated"},
	"script suspended, command ended": {[]sent{{signal: syscall.SIGSTOP, to: "s"}, {signal: syscall.SIGTERM, to: "c"},
		{signal: syscall.SIGCONT, to: "s"}}, 143, toldToEnd},
	"script suspended, both ended": {[]sent{{signal: syscall.SIGSTOP, to: "s"}, {signal: syscall.SIGTERM, to: "cs"},
		{signal: syscall.SIGCONT, to: "s"}}, 143, "signal: terminated|" + toldToEnd},
	"script suspended, then killed": {[]sent{{signal: syscall.SIGSTOP, to: "s"}, {signal: syscall.SIGKILL, to: "s"}},
		137, "signal: killed"},
	"command killed, script ended": {[]sent{{syscall.SIGKILL, "c", wire.JobUnknown}, {signal: syscall.SIGTERM,
		to: "s"}},
		-1, "its executor has ended"},
	"script suspended, command killed": {[]sent{{signal: syscall.SIGSTOP, to: "s"},
		{syscall.SIGKILL, "c", wire.JobUnknown}, {signal: syscall.SIGTERM, to: "s"}, {signal: syscall.SIGCONT,
			to: "s"}},
		-1, "its executor has ended"},
}

// sends signals a script and the command that joins it.
func (p *family) sends(script int, s sent) {
	p.t.Helper()
	for _, to := range s.to {
		if to == 'c' {
			p.signal(s.signal)
		} else if err := syscall.Kill(script, s.signal); err != nil {
			p.t.Fatal(err)
		}
	}
}

// signals are the rows of signalled that this process can send.
func signals(t *testing.T) []string {
	if signal.Ignored(syscall.SIGHUP) {
		t.Log("under nohup nothing can be hung up")
	}
	few := []string{"command ended", "script killed", "command killed, script ended"}
	all := long.Or(few, slices.Sorted(maps.Keys(signalled)))
	return slices.DeleteFunc(all, func(name string) bool { return signal.Ignored(signalled[name].signals[0].signal) })
}

// Whatever signals a script and its sidecar get, in whatever order, both end, with the exit status of the script, and
// the record of the job says what has happened.
func TestJoinJobSignals(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4*graph.MiB, "--silence", "3s")
	for _, name := range signals(t) {
		row := signalled[name]
		job := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		p, script := c.joinJob(job)
		c.planned(job)
		for _, s := range row.signals {
			if p.sends(script, s); s.then != "" {
				c.in(s.then, job)
			}
		}
		p.wait() // until nobody has its stdout, which is that of the script too
		r := c.in(wire.JobFailed, job)
		if got := p.command.ProcessState.ExitCode(); got != row.status || r.Claim != 0 ||
			!regexp.MustCompile(row.why).MatchString(r.Reason) {
			t.Errorf("%s: exit status %d, want %d; the record claims %s and says %q, want %q; stderr:\n%s", name, got,
				row.status, r.Claim, r.Reason, row.why, &p.stderr)
		}
	}
	c.end()
}

// The same without a controller.
func TestJoinSignals(t *testing.T) {
	t.Parallel()
	file, err := filepath.Abs("../../models/external/testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range signals(t) {
		row := signalled[name]
		p := start(t, t.TempDir(), "join", "--", "fakescript", file, "0", "job")
		said := p.line("^process ")
		script, err := strconv.Atoi(strings.TrimPrefix(said[len(said)-1], "process "))
		if err != nil {
			t.Fatal(err)
		}
		p.line("by plan [1-9]")
		for _, s := range row.signals {
			p.sends(script, s)
		}
		p.wait()
		if got := p.command.ProcessState.ExitCode(); got != row.status {
			t.Errorf("%s: exit status %d, want %d; stderr:\n%s", name, got, row.status, &p.stderr)
		}
	}
}
