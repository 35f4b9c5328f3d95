package page

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"tensile/executor/agent"
	"tensile/graph"
	"tensile/observe/live"
	"tensile/observe/web"
	"tensile/plan/compile"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

//go:embed static
var embedded embed.FS

// files are those of the page.
var files = func() fs.FS {
	sub, err := fs.Sub(embedded, "static")
	if err != nil {
		panic(err)
	}
	return sub
}()

// version is another for each change of the files: a page that has been open for long loads itself again.
var version = func() string {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		sum.Write(data)
		return err
	})
	if err != nil {
		panic(err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}()

// Mount mounts the page on a server.
func (p *Page) Mount(s *web.Server) {
	s.Handle("GET /", web.View, http.FileServerFS(files))
	s.Handle("GET /events", web.View, http.HandlerFunc(p.events))
	s.Handle("GET /jobs/{name}/plan", web.View, http.HandlerFunc(p.picture))
	s.Handle("POST /jobs/{name}/{verb}", web.Steer, http.HandlerFunc(p.steerJob))
	s.Handle("POST /budget", web.Steer, http.HandlerFunc(p.steerBudget))
}

// stream is a response of server-sent events. A browser may take so long to make room for one.
type stream struct {
	w        http.ResponseWriter
	c        *http.ResponseController
	patience time.Duration
}

func (s *stream) send(event string, data []byte) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return s.c.Flush()
}

// events tells a browser what there is and what is new, until it has gone.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("job")
	leave, ok := p.watch(name)
	if !ok {
		http.Error(w, "too many browsers look at this page: close some", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w, http.NewResponseController(w), p.patience}
	if s.send("hello", p.helloEvent(web.May(r) >= web.Steer)) != nil {
		return
	}
	var lines logLines
	if name != "" && wire.CheckName(name) == nil {
		if stop, err := wire.FollowLog(r.Context(), p.bus, name, lines.add); err == nil {
			defer stop()
		}
	}
	after := -1
	var shown *live.Measured
	var before []byte // the event that was sent last
	for {
		now, news := p.overview()
		var err error
		if len(before) == 0 || &before[0] != &now[0] { // a trace is news, too
			before, err = now, s.send("now", now)
		}
		if name != "" && err == nil {
			var detail []byte
			if detail, after = p.detail(name, after); detail != nil {
				err = s.send("job", detail)
			}
			if m := p.newestTraced(name); m != nil && m != shown && err == nil {
				shown, err = m, s.send("measured", encode(m))
			}
			if fresh := lines.take(); len(fresh) > 0 && err == nil {
				err = s.send("log", encode(fresh))
			}
		}
		if err != nil {
			return
		}
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

// logLines are the lines of a log that a browser has not been sent.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

// maxLines is how many lines a page shows of a log.
const maxLines = 200

func (l *logLines) add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == maxLines {
		l.lines = append(l.lines[:0], l.lines[1:]...)
	}
	l.lines = append(l.lines, string(line))
}

func (l *logLines) take() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, l.lines = l.lines, nil
	return lines
}

// pictures are those that were drawn last. One is drawn at a time.
type pictures struct {
	mu    sync.Mutex
	drawn []drawn
}

type drawn struct {
	layout *wire.Layout
	json   []byte
}

// maxDrawn is how many pictures are kept.
const maxDrawn = 8

// picture draws the plan of a job.
func (p *Page) picture(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	p.mu.Lock()
	record, layout, link := p.history.Layout(name)
	p.mu.Unlock()
	if layout == nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("job %s has no plan", name))
		return
	}
	text, err := p.pictureOf(r.Context(), &record, layout, link)
	if err != nil {
		refuse(w, http.StatusInternalServerError, fmt.Errorf("the plan of job %s: %w", name, err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// pictureOf returns the picture of a plan. One picture is drawn at a time, and any number are sent.
func (p *Page) pictureOf(ctx context.Context, r *wire.Record, l *wire.Layout, link wire.Rates) ([]byte, error) {
	p.pictures.mu.Lock()
	defer p.pictures.mu.Unlock()
	if text := p.pictures.find(l); text != nil {
		return text, nil
	}
	c, err := p.draw(ctx, r, l, link)
	if err != nil {
		return nil, err
	}
	text := encode(c)
	p.pictures.drawn = append(p.pictures.drawn[max(0, len(p.pictures.drawn)+1-maxDrawn):], drawn{l, text})
	return text, nil
}

func (p *pictures) find(l *wire.Layout) []byte {
	for _, d := range p.drawn {
		if d.layout == l {
			return d.json
		}
	}
	return nil
}

func (p *Page) draw(ctx context.Context, r *wire.Record, l *wire.Layout, link wire.Rates) (*live.Picture, error) {
	g, err := p.graph(ctx, r.Spec.Graph)
	if err != nil {
		return nil, err
	}
	proven, err := agent.Prove(g, r.Spec.Name, l.Plan.Epoch, l, 1, compile.Options{})
	if err != nil {
		return nil, err
	}
	before, err := planner.Before(ctx, g, l.Plan)
	if err != nil {
		return nil, err
	}
	c := live.PictureOf(proven.Program(), before, link)
	if l.Reasons != nil {
		c.Explain(l.Reasons)
	}
	return c, nil
}

// change is the body of a POST.
type change struct {
	Priority int    `json:"priority"`
	Budget   string `json:"budget"` // a size such as 8GiB; none: no limit
}

// decode reads the body of a POST, which may be empty.
func decode(w http.ResponseWriter, r *http.Request) (c change, ok bool) {
	if r.ContentLength == 0 {
		return c, true
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<12))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more after it")
		}
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("the body is not what is wanted: %w", err))
		return c, false
	}
	return c, true
}

// steerJob has the controller change something about a job.
func (p *Page) steerJob(w http.ResponseWriter, r *http.Request) {
	c, ok := decode(w, r)
	if !ok {
		return
	}
	q := wire.Request{Job: r.PathValue("name")}
	switch verb := r.PathValue("verb"); verb {
	case "stop":
		q.Verb = wire.Stop
	case "park":
		q.Verb, q.Place = wire.Park, wire.InMemory
	case "resume":
		q.Verb = wire.Resume
	case "measure":
		q.Verb, q.Iterations = wire.TraceJob, 1
	case "priority":
		if q.Verb, q.Priority = wire.SetWeight, c.Priority; c.Priority < 1 || c.Priority > scheduler.MaxWeight {
			refuse(w, http.StatusBadRequest, fmt.Errorf("priority %d: give 1 to %d", c.Priority, scheduler.MaxWeight))
			return
		}
	default:
		refuse(w, http.StatusNotFound, fmt.Errorf("%q: give stop, park, resume, priority or measure", verb))
		return
	}
	p.steer(w, r, q)
}

// steerBudget has the controller change its budget.
func (p *Page) steerBudget(w http.ResponseWriter, r *http.Request) {
	c, ok := decode(w, r)
	if !ok {
		return
	}
	q := wire.Request{Verb: wire.SetBudget}
	if c.Budget != "none" {
		var err error
		if q.Budget, err = graph.ParseBytes(c.Budget); err != nil {
			refuse(w, http.StatusBadRequest, fmt.Errorf("budget %q: give a size such as 8GiB, or none", c.Budget))
			return
		}
		if q.Budget < graph.KiB {
			refuse(w, http.StatusBadRequest, fmt.Errorf("budget %s: %d bytes are enough for no job: give a unit, such "+
				"as 8GiB", c.Budget, int64(q.Budget)))
			return
		}
	}
	p.steer(w, r, q)
}

// steer asks for a change as the administrator does.
func (p *Page) steer(w http.ResponseWriter, r *http.Request, q wire.Request) {
	err := checkJob(q.Job)
	if err == nil {
		_, err = p.ask(r.Context(), q)
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	p.Changed()
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte("{}\n"))
}

// checkJob returns the error of a name that no job has; "" is of none.
func checkJob(name string) error {
	if name == "" {
		return nil
	}
	return wire.CheckName(name)
}

// refuse answers with an error in one line.
func refuse(w http.ResponseWriter, status int, err error) {
	if errors.Is(err, context.Canceled) {
		return // nobody is there any more
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(encode(map[string]string{"error": err.Error()}))
}
