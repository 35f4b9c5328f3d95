package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/observe/live"
	"tensile/observe/web"
	"tensile/wire"
	"tensile/wire/bustest"
)

// rig is a page whose controller answers what the test sets.
type rig struct {
	t    *testing.T
	bus  *bustest.Bus
	page *Page
	url  *url.URL // of the server; its token is for looking
	more string   // the token for more

	mu     sync.Mutex
	answer wire.Answer
	asked  []wire.Request // but for jobs
}

func start(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, bus: bustest.New(), answer: wire.Answer{Device: "sim", Budget: 100, Jobs: []wire.Record{{
		Spec: wire.Spec{Name: "a b", ID: 1, Model: "mlp", Iterations: 10,
			Graph: graph.Digest(strings.Repeat("0", 64))},
		Order: 1, State: wire.JobRunning, Iteration: 4, Claim: 60, Arena: 60, Pace: time.Second}}}}
	if _, err := r.bus.Serve(wire.ControlSubject, func(_ string, data []byte, reply func([]byte)) {
		q, err := wire.DecodeAs[wire.Request](data)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if q.Verb == wire.Jobs {
			reply(wire.Encode(r.answer))
			return
		}
		r.asked = append(r.asked, q)
		a := wire.Answer{Jobs: r.answer.Jobs}
		if q.Verb == wire.Resume {
			a = wire.Answer{Error: "job a b is not parked"}
		}
		reply(wire.Encode(a))
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server, err := web.Listen(web.Options{Dir: dir, Listen: "127.0.0.1:0", Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := web.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.url, err = url.Parse(server.URL(web.View)); err != nil {
		t.Fatal(err)
	}
	r.more = kept.Steer
	r.page = New(r.bus)
	r.page.Mount(server)
	server.Serve()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { r.page.Run(ctx) })
	t.Cleanup(func() {
		server.Close()
		cancel()
		done.Wait()
	})
	return r
}

// do makes a request with the token for looking, or the one for more.
func (r *rig) do(method, path, body string, more bool) *http.Response {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.url.Host+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	token := r.url.Query().Get("token")
	if more {
		token = r.more
	}
	q.Header.Set("Authorization", "Bearer "+token)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { a.Body.Close() })
	return a
}

// set changes what the controller answers.
func (r *rig) set(change func(*wire.Answer)) {
	r.mu.Lock()
	change(&r.answer)
	r.answer.Jobs = slices.Clone(r.answer.Jobs)
	r.mu.Unlock()
	r.page.Changed()
}

// events are those of a stream. Those of one kind come in order; which of two kinds comes first is chance.
type events struct {
	t      *testing.T
	lines  *bufio.Scanner
	passed []event // on the way to one of another kind
}

type event struct{ kind, data string }

func (r *rig) listen(path string) *events {
	r.t.Helper()
	a := r.do("GET", path, "", false)
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("%s: %s, %v", path, a.Status, a.Header)
	}
	e := &events{t: r.t, lines: bufio.NewScanner(a.Body)}
	e.lines.Buffer(nil, 1<<20)
	return e
}

// next returns the next event of a kind.
func (e *events) next(kind string) string {
	e.t.Helper()
	if i := slices.IndexFunc(e.passed, func(p event) bool { return p.kind == kind }); i >= 0 {
		data := e.passed[i].data
		e.passed = slices.Delete(e.passed, i, i+1)
		return data
	}
	for is := ""; e.lines.Scan(); {
		line := e.lines.Text()
		if k, found := strings.CutPrefix(line, "event: "); found {
			is = k
		}
		data, found := strings.CutPrefix(line, "data: ")
		if found && is == kind {
			return data
		} else if found {
			e.passed = append(e.passed, event{is, data})
		}
	}
	e.t.Fatalf("the stream ends before %s: %v", kind, e.lines.Err())
	panic("unreachable")
}

// until reads events up to one of a kind for which ok says true, and returns its data.
func until[T any](e *events, kind string, ok func(T) bool) T {
	e.t.Helper()
	for {
		var v T
		if data := e.next(kind); json.Unmarshal([]byte(data), &v) != nil {
			e.t.Fatalf("%s is no %T", data, v)
		}
		if ok(v) {
			return v
		}
	}
}

// A viewer hears at once what there is, then of each change; what the controller answers is what it hears.
func TestEvents(t *testing.T) {
	r := start(t)
	e := r.listen("/events?job=" + url.QueryEscape("a b"))
	type hello struct {
		Version string
		Steer   bool
	}
	if h := until(e, "hello", func(hello) bool { return true }); h.Version != version || h.Steer {
		t.Errorf("hello %+v, want version %s, for looking only", h, version)
	}
	o := until(e, "now", func(o live.Overview) bool { return len(o.Jobs) > 0 })
	if o.Used != 60 || o.Budget != 100 || o.Jobs[0].Iteration != 4 || o.Jobs[0].Rate != 1 {
		t.Errorf("now %+v", o)
	}
	until(e, "job", func(d live.Detail) bool { return d.Job.Spec.Name == "a b" })
	loss := wire.Loss(3)
	r.page.Report(&wire.Report{Job: "a b", ID: 1, Iteration: 4, Wall: time.Second, Loss: &loss})
	record := r.answer.Jobs[0]
	record.SetExecutor("x")
	if err := r.bus.Put(t.Context(), wire.RecordKey("a b"), wire.Encode(record)); err != nil {
		t.Fatal(err)
	}
	if err := r.bus.Append(t.Context(), wire.LogSubject("x", "a b"), []byte("a line")); err != nil {
		t.Fatal(err)
	}
	r.set(func(a *wire.Answer) { a.Jobs[0].Iteration, a.Trouble = 5, "the disk is full" })
	until(e, "now", func(o live.Overview) bool { return o.Jobs[0].Iteration == 5 && o.Trouble == "the disk is full" })
	d := until(e, "job", func(d live.Detail) bool { return len(d.Losses) > 0 })
	if d.Losses[0] != (live.Loss{Iteration: 4, Loss: 3}) || d.Newest.Wall != time.Second {
		t.Errorf("job %+v", d)
	}
	until(e, "log", func(lines []string) bool { return slices.Equal(lines, []string{"a line"}) })
	r.set(func(a *wire.Answer) { a.Jobs = nil })
	until(e, "now", func(o live.Overview) bool { return o.Jobs != nil && len(o.Jobs) == 0 })
	another := r.listen("/events") // hears what was before it came
	type before struct{ Samples []live.Sample }
	until(another, "hello", func(b before) bool {
		return len(b.Samples) > 1 && b.Samples[0].Devices["sim"].Parts["a b"] == 60
	})
}

// A browser that finds a controller again before that one has answered anything hears lists, which are empty.
func TestEarly(t *testing.T) {
	p := New(bustest.New())
	now, _ := p.overview()
	for event, list := range map[string]string{string(p.helloEvent(true)): "samples", string(now): "sample"} {
		if !strings.Contains(event, fmt.Sprintf("%q:[]", list)) {
			t.Errorf("%s has no empty %s", event, list)
		}
	}
	if !strings.Contains(string(now), `"jobs":[]`) {
		t.Errorf("%s has no empty jobs", now)
	}
}

// Of a job whose page is open an iteration is traced once for a plan, by whoever looks.
func TestTraced(t *testing.T) {
	r := start(t)
	r.set(func(a *wire.Answer) { a.Jobs[0].Granted = 7 })
	e := r.listen("/events?job=" + url.QueryEscape("a b"))
	for n := 1; n <= 3; n++ {
		until(e, "now", func(o live.Overview) bool { return len(o.Jobs) > 0 && o.Jobs[0].Iteration == 3+n })
		r.set(func(a *wire.Answer) { a.Jobs[0].Iteration++ })
	}
	until(e, "now", func(o live.Overview) bool { return o.Jobs[0].Iteration == 7 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) != 1 || r.asked[0].Verb != wire.TraceJob || r.asked[0].Iterations != 1 {
		t.Errorf("asked for %+v, want one iteration to be traced", r.asked)
	}
}

// Buttons become requests, for tokens that allow it; what makes no sense is refused in one line.
func TestSteer(t *testing.T) {
	r := start(t)
	for _, test := range []struct {
		path, body string
		status     int
		want       string // the request, or the error
	}{
		{"/jobs/a%20b/stop", "", 200, "stop a b"},
		{"/jobs/a%20b/park", "{}", 200, "park a b memory"},
		{"/jobs/a%20b/resume", "", 409, "job a b is not parked"},
		{"/jobs/a%20b/measure", "", 200, "trace a b 1"},
		{"/jobs/a%20b/priority", `{"priority": 5}`, 200, "priority a b 5"},
		{"/jobs/a%20b/priority", `{"priority": 0}`, 400, "priority 0: give 1 to "},
		{"/jobs/a%20b/priority", `{"priority": "x"}`, 400, "the body is not what is wanted"},
		{"/jobs/a%20b/priority", `{"other": 1}`, 400, "the body is not what is wanted"},
		{"/jobs/a%20b/priority", `{"priority": 2} x`, 400, "the body is not what is wanted: there is more after it"},
		{"/jobs/a%20b/priority", `{"priority": 1` + strings.Repeat(" ", 1<<13) + `}`, 400, "too large"},
		{"/jobs/a%20b/fly", "", 404, `"fly": give stop, park, resume, priority or measure`},
		{"/jobs/*/stop", "", 409, `the name "*"`},
		{"/budget", `{"budget": "2KiB"}`, 200, "budget 2048"},
		{"/budget", `{"budget": "none"}`, 200, "budget 0"},
		{"/budget", `{"budget": "5"}`, 400, "budget 5: 5 bytes are enough for no job"},
		{"/budget", `{"budget": "much"}`, 400, `budget "much": give a size such as 8GiB, or none`},
		{"/budget", ``, 400, `budget "": give a size such as 8GiB, or none`},
	} {
		if a := r.do("POST", test.path, test.body, false); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s with a token for looking: %s", test.path, a.Status)
		}
		r.mu.Lock()
		r.asked = nil
		r.mu.Unlock()
		a := r.do("POST", test.path, test.body, true)
		var said struct{ Error string }
		text, err := io.ReadAll(a.Body)
		if err == nil {
			err = json.Unmarshal(text, &said)
		}
		r.mu.Lock()
		got := ""
		for _, q := range r.asked {
			got = strings.TrimSpace(fmt.Sprint(q.Verb, " ", q.Job, " ", q.Place))
			if n := int64(q.Priority+q.Iterations) + int64(q.Budget); n > 0 || q.Verb == wire.SetBudget {
				got += fmt.Sprint(" ", n)
			}
			got = strings.Join(strings.Fields(got), " ")
		}
		if test.status != http.StatusOK {
			if a.StatusCode != http.StatusConflict && got != "" {
				t.Errorf("%s %s: the controller was asked %s", test.path, test.body, got)
			}
			got = said.Error
		}
		r.mu.Unlock()
		if err != nil || a.StatusCode != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %v, %s, %q; want %d and %q", test.path, test.body, err, a.Status, got, test.status,
				test.want)
		}
	}
}

// The files are there, and name nothing of elsewhere. A plan that there is not is an error in one line.
func TestFiles(t *testing.T) {
	r := start(t)
	for path, want := range map[string]string{"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css",
		"/uplot.js": "text/javascript", "/uplot.css": "text/css", "/uplot-LICENSE.txt": "text/plain",
		"/icon.svg": "image/svg+xml", "/jobs/nobody/plan": "application/json"} {
		a := r.do("GET", path, "", false)
		text, err := io.ReadAll(a.Body)
		if err != nil || !strings.HasPrefix(a.Header.Get("Content-Type"), want) || len(text) == 0 {
			t.Errorf("%s: %v, %s of %s, want %s", path, err, a.Status, a.Header.Get("Content-Type"), want)
		}
		if strings.HasSuffix(path, "/plan") != (a.StatusCode == http.StatusNotFound) {
			t.Errorf("%s: %s", path, a.Status)
		}
		if (path == "/" || path == "/page.js" || path == "/page.css") && strings.Contains(string(text), "//www.") {
			t.Errorf("%s names a place elsewhere", path)
		}
	}
}

// A viewer that never reads loses its place as soon as its connection takes no more, which is not much.
func TestViewersRead(t *testing.T) {
	r := start(t)
	r.page.patience = 50 * time.Millisecond
	c, err := net.Dial("tcp", r.url.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", r.url.Host,
		r.url.Query().Get("token"))
	viewers := func() int {
		r.page.mu.Lock()
		defer r.page.mu.Unlock()
		return r.page.viewers
	}
	for viewers() == 0 {
		runtime.Gosched()
	}
	for n := 0; viewers() > 0; n++ {
		r.set(func(a *wire.Answer) { a.Trouble = fmt.Sprint(n, strings.Repeat("x", 2000)) })
		r.page.refresh(t.Context())
	}
	if on, err := io.Copy(io.Discard, c); on > 1<<20 {
		t.Errorf("%d bytes were on their way, and then %v; want less than 1 MiB", on, err)
	}
}

// A page that nobody looks at, or that is full, does not do more for one viewer more.
func TestViewersAreLimited(t *testing.T) {
	p := New(bustest.New())
	var leaves []func()
	for range maxViewers {
		leave, ok := p.watch("a")
		if !ok {
			t.Fatal("a viewer is refused too early")
		}
		leaves = append(leaves, leave)
	}
	if _, ok := p.watch(""); ok {
		t.Errorf("viewer %d is let in", maxViewers+1)
	}
	for _, leave := range leaves {
		leave()
	}
	if p.viewers != 0 || len(p.watched) != 0 {
		t.Errorf("after all have left: %d viewers, %d jobs are watched", p.viewers, len(p.watched))
	}
}
