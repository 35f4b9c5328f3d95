package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"tensile/observe/web"
	"tensile/wire"
	"tensile/wire/bus"
)

// ObserveOptions say what MeasureObserve measures.
type ObserveOptions struct {
	Program string // the binary of tensile
	Dir     string // a folder for the controller's state; it exists, and is removed
	Device  string
	Model   string
	Batch   int // of each job; 0: the network's own
	Jobs    int // copies of the model
	Viewers int // the first looks at the overview, the others at the page of a job each
	Scrape  time.Duration
	Window  time.Duration // of one measurement
	Rounds  int           // each has a window without viewers and one with them
	// Progress is told the share of the rounds that are over; may be nil.
	Progress func(done float64)
}

// ObserveReport is what it costs a controller, and its jobs, to be looked at.
type ObserveReport struct {
	Device  string         `json:"device"`
	Model   string         `json:"model"`
	Jobs    int            `json:"jobs"`
	Viewers int            `json:"viewers"`
	Scrape  float64        `json:"scrape_every_seconds"`
	Rounds  []ObserveRound `json:"rounds"`
	// Of all rounds the median, the least and the most.
	Cost  [3]float64 `json:"cost_of_a_core"`     // processor time of the controller with viewers less that without
	Speed [3]float64 `json:"speed_with_viewers"` // iterations in a second with viewers, as a share of those without
	// Work is what an iteration costs the executors with viewers, in processor time, as a share of that without: unlike
	// Speed it says little of what else the machine does.
	Work [3]float64 `json:"work_with_viewers"`
	// Opening is processor time of the controller from when viewers come until each has seen the jobs.
	Opening [3]float64 `json:"opening_cpu_seconds"`
}

// ObserveRound is one window of each kind.
type ObserveRound struct {
	Unseen  ObserveWindow `json:"without_viewers"`
	Seen    ObserveWindow `json:"with_viewers"`
	Opening float64       `json:"opening_cpu_seconds"`
}

// ObserveWindow is what was measured in one.
type ObserveWindow struct {
	Wall       float64 `json:"seconds"`
	Controller float64 `json:"controller_cpu_seconds"`
	Executors  float64 `json:"executors_cpu_seconds"`
	Iterations int     `json:"iterations"` // of all jobs
	Scrapes    int     `json:"scrapes"`
	Events     int     `json:"events"` // that viewers read
}

// observed is a controller with jobs.
type observed struct {
	options ObserveOptions
	process *exec.Cmd
	bound   io.Closer     // its standard input: it ends with its executors when this is closed, as by our end
	said    bytes.Buffer  // its errors
	ended   chan struct{} // closed when it has
	conn    *bus.Conn
	kept    web.Kept
}

// MeasureObserve starts a controller and its executor as processes, has copies of a model train, and measures by turns
// what the controller's process and the jobs take without viewers of the page, and with viewers and a scraper of
// metrics. It wants Linux, which says what a process has taken.
func MeasureObserve(ctx context.Context, o ObserveOptions) (*ObserveReport, error) {
	s := &observed{options: o, ended: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	if err := s.submit(ctx); err != nil {
		return nil, err
	}
	r := &ObserveReport{Device: o.Device, Model: o.Model, Jobs: o.Jobs, Viewers: o.Viewers, Scrape: o.Scrape.Seconds()}
	for i := range o.Rounds {
		round, err := s.round(ctx, i%2 == 0)
		if err != nil {
			return nil, err
		}
		r.Rounds = append(r.Rounds, round)
		if o.Progress != nil {
			o.Progress(float64(i+1) / float64(o.Rounds))
		}
	}
	r.sum()
	return r, nil
}

// sum compares the windows.
func (r *ObserveReport) sum() {
	var cost, speed, work, opening []float64
	for _, round := range r.Rounds {
		without, with := round.Unseen, round.Seen
		cost = append(cost, with.Controller/with.Wall-without.Controller/without.Wall)
		opening = append(opening, round.Opening)
		if without.Iterations > 0 && with.Iterations > 0 {
			before, now := float64(without.Iterations), float64(with.Iterations)
			speed = append(speed, now/with.Wall/(before/without.Wall))
			if without.Executors > 0 {
				work = append(work, with.Executors/now/(without.Executors/before))
			}
		}
	}
	r.Cost, r.Speed, r.Work, r.Opening = spreadOf(cost), spreadOf(speed), spreadOf(work), spreadOf(opening)
}

// spreadOf is the median, the least and the most; zeros of nothing.
func spreadOf(all []float64) (s [3]float64) {
	if len(all) == 0 {
		return s
	}
	return [3]float64{median(slices.Clone(all)), slices.Min(all), slices.Max(all)}
}

// WriteTable prints the report for people.
func (r *ObserveReport) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s: %d %s train; %d viewers of the page and a scrape of the metrics every %g s\n", r.Device, r.Jobs,
		r.Model, r.Viewers, r.Scrape)
	fmt.Fprintln(t, "viewers\tseconds\tcontroller, % of a core\texecutors, % of a core\titerations/s\tscrapes\t"+
		"events\t")
	for _, round := range r.Rounds {
		for i, x := range [...]ObserveWindow{round.Unseen, round.Seen} {
			share := func(v float64) float64 { return 100 * v / x.Wall }
			fmt.Fprintf(t, "%d\t%.1f\t%.2f\t%.0f\t%.1f\t%d\t%d\t\n", i*r.Viewers, x.Wall, share(x.Controller),
				share(x.Executors), float64(x.Iterations)/x.Wall, x.Scrapes, x.Events)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	spread := func(v [3]float64, unit string, times float64) string {
		return fmt.Sprintf("%.2f%s (%.2f to %.2f)", times*v[0], unit, times*v[1], times*v[2])
	}
	_, err := fmt.Fprintf(w, "\nmedian (least to most) of %d rounds, with viewers against without:\n"+
		"  the controller takes %s of a core more, and %s of processor time when viewers come\n"+
		"  jobs do %s of the iterations in a second; an iteration takes %s of the processor time\n",
		len(r.Rounds), spread(r.Cost, " %", 100), spread(r.Opening, " s", 1), spread(r.Speed, " times", 1),
		spread(r.Work, " times", 1))
	return err
}

// start starts the controller and waits until it answers.
func (s *observed) start(ctx context.Context) (err error) {
	o := &s.options
	s.process = exec.Command(o.Program, "controller", "--state", o.Dir, "--device", o.Device, "--share", "--no-replan",
		"--memory-sharing", "none", "--bound")
	if s.bound, err = s.process.StdinPipe(); err != nil {
		return fmt.Errorf("start a controller: %w", err)
	}
	s.process.Stderr = &s.said
	s.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C is for this process, which ends it
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start a controller: %w", err)
	}
	go func() {
		defer close(s.ended)
		_ = s.process.Wait() // what it says tells why
	}()
	for {
		err := s.connect(ctx)
		if err == nil {
			return nil
		}
		if err := s.pause(ctx); err != nil {
			s.end()
			return err
		}
	}
}

// connect connects to a controller that may still be starting.
func (s *observed) connect(ctx context.Context) (err error) {
	if s.conn == nil {
		credentials, err := bus.ReadCredentials(filepath.Join(s.options.Dir, "client.json"))
		if err != nil {
			return err
		}
		if s.conn, err = bus.Connect(ctx, credentials, bus.ConnOptions{}); err != nil {
			s.conn = nil
			return err
		}
	}
	if s.kept, err = web.Read(s.options.Dir); err == nil {
		_, err = s.jobs(ctx)
	}
	return err
}

// pause waits for a moment. Its error says that there is nothing to wait for any more.
func (s *observed) pause(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-s.ended:
		return fmt.Errorf("the controller has ended: %s", strings.TrimSpace(s.said.String()))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// jobs asks for all jobs.
func (s *observed) jobs(ctx context.Context) ([]wire.Record, error) {
	data, err := s.conn.Ask(ctx, wire.ControlSubject, wire.Encode(wire.Request{Verb: wire.Jobs}))
	if err != nil {
		return nil, err
	}
	a, err := wire.DecodeAs[wire.Answer](data)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a.Jobs, err
}

// submit submits the jobs, and waits until each has trained.
func (s *observed) submit(ctx context.Context) error {
	o := &s.options
	args := []string{"submit", fmt.Sprintf("%s:%d", o.Model, o.Jobs), "--iterations", strconv.Itoa(1 << 24), "--state",
		o.Dir}
	if o.Batch > 0 {
		args = append(args, "--batch", strconv.Itoa(o.Batch))
	}
	if said, err := exec.CommandContext(ctx, o.Program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("submit the jobs: %w: %s", err, bytes.TrimSpace(said))
	}
	for {
		jobs, err := s.jobs(ctx)
		if err != nil {
			return err
		}
		ready := 0
		for i := range jobs {
			if jobs[i].State.Over() {
				return fmt.Errorf("job %s is %s: %s", jobs[i].Spec.Name, jobs[i].State, jobs[i].Reason)
			}
			if jobs[i].State == wire.JobRunning && jobs[i].Iteration > 0 {
				ready++
			}
		}
		if ready == o.Jobs {
			return nil
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// round measures both ways, one after the other.
func (s *observed) round(ctx context.Context, unseenFirst bool) (r ObserveRound, err error) {
	for i := range 2 {
		if (i == 0) == unseenFirst {
			r.Unseen, err = s.window(ctx)
		} else {
			r.Seen, r.Opening, err = s.seen(ctx)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// seen measures with viewers and a scraper.
func (s *observed) seen(ctx context.Context) (w ObserveWindow, opening float64, err error) {
	jobs, err := s.jobs(ctx)
	if err != nil {
		return w, 0, err
	}
	before, err := s.taken(s.process.Process.Pid)
	if err != nil {
		return w, 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e := &eyes{kept: s.kept, failed: cancel}
	defer e.close()
	for i := range s.options.Viewers {
		job := ""
		if i > 0 {
			job = jobs[(i-1)%len(jobs)].Spec.Name
		}
		if err := e.look(ctx, job); err != nil {
			return w, 0, err
		}
	}
	after, err := s.taken(s.process.Process.Pid)
	if err != nil {
		return w, 0, err
	}
	e.events.Store(0)
	e.scrape(ctx, s.options.Scrape)
	w, err = s.window(ctx)
	w.Events, w.Scrapes = int(e.events.Load()), int(e.scrapes.Load())
	return w, after - before, err
}

// window measures for a while.
func (s *observed) window(ctx context.Context) (w ObserveWindow, err error) {
	begin, err := s.reading(ctx)
	if err != nil {
		return w, err
	}
	select {
	case <-time.After(s.options.Window):
	case <-s.ended:
		return w, s.pause(ctx)
	case <-ctx.Done():
		return w, context.Cause(ctx)
	}
	end, err := s.reading(ctx)
	return ObserveWindow{Wall: end.Wall - begin.Wall, Controller: end.Controller - begin.Controller,
		Executors: end.Executors - begin.Executors, Iterations: end.Iterations - begin.Iterations}, err
}

// began is what times in readings are counted from.
var began = time.Now()

// reading is what was taken until now.
func (s *observed) reading(ctx context.Context) (w ObserveWindow, err error) {
	jobs, err := s.jobs(ctx)
	if err != nil {
		return w, err
	}
	for i := range jobs {
		w.Iterations += jobs[i].Iteration
	}
	w.Wall = time.Since(began).Seconds()
	controller := s.process.Process.Pid
	if w.Controller, err = s.taken(controller); err != nil {
		return w, err
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", controller))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // of a thread that has ended
		}
		for _, child := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return w, fmt.Errorf("%s: %w", list, err)
			}
			taken, err := s.taken(pid)
			if err != nil {
				return w, err
			}
			w.Executors += taken
		}
	}
	return w, err
}

// taken is what a process has had of all processors, in seconds.
func (s *observed) taken(pid int) (float64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // behind the name
	fields := strings.Fields(string(rest))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: it has %d fields behind the name", path, len(fields))
	}
	ticks := 0.0
	for _, f := range fields[11:13] { // in user mode, in the kernel
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		ticks += float64(n)
	}
	const perSecond = 100 // on all of Linux's architectures that Go knows
	return ticks / perSecond, nil
}

// end has the controller end with its executors, and waits for that.
func (s *observed) end() {
	if s.conn != nil {
		s.conn.Close()
	}
	_ = s.bound.Close() // it may have ended
	late := time.AfterFunc(5*time.Minute, func() { _ = s.process.Process.Kill() })
	defer late.Stop()
	<-s.ended
}
