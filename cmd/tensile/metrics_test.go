//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tensile/graph"
	"tensile/wire"
)

// metrics is where the metrics of a controller are, and the token for them.
func (c *cluster) metrics() (at, token string) {
	c.t.Helper()
	page, err := url.Parse(strings.TrimSpace(c.tell("page")))
	if err != nil {
		c.t.Fatal(err)
	}
	token = page.Query().Get("token")
	page.Path, page.RawQuery = "/metrics", ""
	return page.String(), token
}

// scrape are the metrics of a controller, by name and labels.
func (c *cluster) scrape(at, token string) map[string]float64 {
	c.t.Helper()
	status, text := get(c.t, at, token)
	if status != http.StatusOK {
		c.t.Fatalf("status %d\n%s", status, text)
	}
	values := make(map[string]float64)
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			c.t.Fatalf("%v in %q", err, line)
		}
		if _, twice := values[line[:at]]; twice {
			c.t.Errorf("there is %s twice", line[:at])
		}
		values[line[:at]] = value
	}
	return values
}

// get asks for a URL with a token.
func get(t *testing.T, url, token string) (status int, text string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(data)
}

// scraped asks for the metrics until they are as they should become.
func (c *cluster) scraped(at, token, what string, ok func(map[string]float64) bool) map[string]float64 {
	c.t.Helper()
	end, limited := c.t.Deadline()
	for {
		values := c.scrape(at, token)
		if ok(values) {
			return values
		}
		if limited && time.Until(end) < reserve {
			c.t.Fatalf("waited for %s in vain; metrics are %v", what, values)
		}
	}
}

// Metrics of a controller with two jobs agree with what jobs says. When one of them ends its series go, and totals
// stay.
func TestClusterMetrics(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2600*graph.KiB, "--link", "6MB/s", "--threshold", "100")
	c.submit("lenet:3")
	c.train(nil, "lenet.1", "lenet.2", "lenet.3")
	of := func(name, job, more string) string {
		return fmt.Sprintf(`tensile_job_%s{device="cpu",%sjob=%q,owner=""}`, name, more, job)
	}
	iterations, moved := of("iterations_total", "lenet.1", ""), of("moved_bytes_total", "lenet.1", `direction="in",`)
	at, token := c.metrics()
	if status, text := get(t, at, "wrong"); status != http.StatusUnauthorized || strings.Contains(text, "tensile_") {
		t.Errorf("with a wrong token: status %d\n%s", status, text)
	}
	before := c.jobs()
	got := c.scraped(at, token, "iterations", func(m map[string]float64) bool {
		return m[iterations] > 1 && m[moved] > 0 && m[of("touched_bytes", "lenet.1", "")] > 0
	})
	after := c.jobs()
	for _, name := range []string{"lenet.1", "lenet.2", "lenet.3"} {
		if done := got[of("iterations_total", name, "")]; done > float64(after[name].Iteration) {
			t.Errorf("job %s has done %v iterations, and later %d", name, done, after[name].Iteration)
		}
		arena := got[of("arena_bytes", name, "")]
		if arena != float64(before[name].Arena) && arena != float64(after[name].Arena) {
			t.Errorf("the arena of job %s is %v; it was %d, and is %d", name, arena, before[name].Arena,
				after[name].Arena)
		}
		if touched := got[of("touched_bytes", name, "")]; touched > arena {
			t.Errorf("job %s has touched %v of %v", name, touched, arena)
		}
	}
	for name, want := range map[string]float64{
		`tensile_controller_up{device="cpu"}`:                             1,
		`tensile_device_budget_bytes{device="cpu"}`:                       float64(c.budget),
		`tensile_device_jobs{device="cpu",state="running"}`:               3,
		`tensile_device_executors{device="cpu",state="joined"}`:           3,
		`tensile_build_info{device="cpu",version="` + version + `"}`:      1,
		`tensile_owner_plans_total{device="cpu",owner="",reason="drift"}`: 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v (there: %v), want %v", name, value, ok, want)
		}
	}
	for _, name := range []string{`tensile_controller_planning_seconds_count{device="cpu"}`,
		`tensile_controller_message_lag_seconds_count{device="cpu"}`,
		`tensile_controller_events_total{device="cpu",kind="granted"}`,
		`tensile_owner_plans_total{device="cpu",owner="",reason="arrival"}`,
		of("swapped_bytes", "lenet.1", ""), of("iteration_seconds", "lenet.1", "")} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if used := got[`tensile_device_used_bytes{device="cpu"}`]; used <= 0 || used > float64(c.budget) {
		t.Errorf("%v of %d bytes are used", used, c.budget)
	}

	c.tell("stop", "lenet.1")
	c.in(wire.JobStopped, "lenet.1")
	now := c.scrape(at, token)
	if now[`tensile_owner_jobs_ended_total{device="cpu",owner="",state="stopped"}`] != 1 {
		t.Errorf("jobs that were stopped are counted %v times",
			now[`tensile_owner_jobs_ended_total{device="cpu",owner="",state="stopped"}`])
	}
	for name, value := range got {
		switch _, there := now[name]; {
		case strings.Contains(name, `job="lenet.1"`) && there:
			t.Errorf("%s has stayed", name)
		case strings.Contains(name, "tensile_owner_") && strings.Contains(name, "_total{") && now[name] < value:
			t.Errorf("%s has fallen from %v to %v", name, value, now[name])
		}
	}
	if all := `tensile_owner_iterations_total{device="cpu",owner=""}`; now[all] < got[all]+1 {
		t.Errorf("%s was %v and is %v", all, got[all], now[all])
	}
	c.tell("stop", "lenet.2", "lenet.3")
	c.end()
}

// Metrics without a token are served where that was asked for, and nowhere without a server.
func TestMetricsOpen(t *testing.T) {
	t.Parallel()
	c := startCluster(t, graph.GiB, "--metrics-open")
	at, _ := c.metrics()
	if status, text := get(t, at, ""); status != http.StatusOK ||
		!strings.Contains(text, "tensile_controller_up{device=\"cpu\"} 1\n") {
		t.Errorf("status %d\n%s", status, text)
	}
	c.end()
	line := c.refused("controller", "--http", "off", "--metrics-open", "--state", c.state)
	if line != "tensile: --metrics-open: with --http off there are no metrics: leave one of the two out" {
		t.Error(line)
	}
}

// What a controller and an executor log as JSON about a job from its beginning to its end has the same keys in each
// line: time, level and msg; the device; the job and the epoch where it has them.
func TestClusterLogsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &cluster{budget: graph.GiB, state: filepath.Join(dir, "state"), files: t.TempDir()}
	c.family = start(t, dir, "controller", "--state", c.state, "--budget", "1GiB", "--memory-sharing", "none",
		"--log-format", "json")
	lines := c.line(`"msg":"controller of `)
	c.submit("lenet")
	c.train(nil, "lenet")
	_, token := c.metrics()
	notices, err := os.ReadFile(filepath.Join(c.state, "executors", "x1.log"))
	if err != nil {
		t.Fatal(err)
	}
	whole := notices[:bytes.LastIndexByte(notices, '\n')+1] // it may be written to just now
	events := eventsIn(t, slices.Collect(strings.Lines(string(whole))))
	if of := events["applied"]; of["job"] != "lenet" || of["executor"] != "x1" || of["epoch"] != 1.0 {
		t.Errorf("that the job begins is logged as %v", of)
	}
	c.tell("stop", "lenet")
	c.in(wire.JobStopped, "lenet")
	c.until("all executors to leave", func(map[string]wire.Record) bool { return len(executors(t, c.dir)) == 0 })
	c.signal(syscall.SIGTERM)
	lines = slices.AppendSeq(lines, strings.Lines(c.ends(0, "")))
	events = eventsIn(t, lines)
	for event, keys := range map[string][]string{"granted": {"job", "epoch", "bytes"},
		"adopted": {"plans", "reason", "cause"}, "ended": {"job", "epoch", "state", "iterations"}} {
		for _, key := range keys {
			if _, ok := events[event][key]; !ok {
				t.Errorf("a line of %s has no %s: %v", event, key, events[event])
			}
		}
	}
	if strings.Contains(strings.Join(lines, ""), token) {
		t.Error("the log has the page's token")
	}
	if of := events["ended"]; of["job"] != "lenet" || of["state"] != "stopped" || of["epoch"] != 1.0 {
		t.Errorf("the end of the job is logged as %v", of)
	}
}

// eventsIn wants each line to be an object with the keys that all have, and returns the last one per event.
func eventsIn(t *testing.T, lines []string) map[string]map[string]any {
	t.Helper()
	events := make(map[string]map[string]any)
	for _, line := range lines {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("%v in %s", err, line)
			continue
		}
		for _, key := range []string{"time", "level", "msg", "device"} {
			if s, ok := record[key].(string); !ok || s == "" {
				t.Errorf("a line without %s: %s", key, line)
			}
		}
		if event, ok := record["event"].(string); ok {
			events[event] = record
		}
	}
	return events
}
