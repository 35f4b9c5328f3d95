package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tensile/device/lease"
	"tensile/device/lease/process"
	"tensile/device/lifelock"
	"tensile/executor"
	"tensile/executor/agent"
	"tensile/executor/sidecar"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/external"
	"tensile/scheduler"
	"tensile/wire"
	"tensile/wire/bus"
	"tensile/wire/clock"
)

// joinFlags say which job a script becomes, and whose.
type joinFlags struct {
	client   clientFlags
	name     string
	priority int
	memory   string
	anyway   bool
	report   string
	detached detached
}

// firstShare is the part of a budget that a script has until it has recorded what it does, unless --memory says more.
const firstShare = 4

// guest is a process of a command that is a job of a controller, and what it speaks to.
type guest struct {
	of       *commandJobs
	number   int
	job      string
	answer   wire.Answer // To its submission.
	lock     *lifelock.Lock
	lease    *leaseOf // Lease of the device's memory; nil: jobs share no memory.
	host     *sidecar.Host
	started  atomic.Bool // It has had its memory.
	asking   chan *external.Recorded
	stopping sync.Once
}

// commandJobs is a command of which each process that trains is a job of a controller. The first job is there before
// the command is started, and ends with it; it has the process of number 0. Each of the others ends with its process.
type commandJobs struct {
	flags   *joinFlags
	args    []string
	name    string
	claim   graph.Bytes // Of each process, until it has recorded an iteration.
	say     func(number int, line string)
	conn    *bus.Conn // Connection for requests.
	ours    bus.Credentials
	about   wire.Answer
	ctx     context.Context // Done when the command is to end.
	numbers numbers
	first   *guest

	failed  error      // It could not be started.
	ended   chan error // How it has ended, once; nil: it was not started.
	serving sync.WaitGroup

	mu      sync.Mutex
	guests  []*guest
	stopped bool // The first job was stopped, and with it all.
	over    bool // The command has ended.
}

// job has the processes of a command become jobs of a controller, and is their sidecar until they end.
func (f *joinFlags) job(ctx context.Context, args []string, stderr io.Writer) error {
	if f.priority < 1 || f.priority > scheduler.MaxWeight {
		return fmt.Errorf("--priority %d: give 1 to %d", f.priority, scheduler.MaxWeight)
	}
	name := cmp.Or(f.name, nameOf(args))
	if err := wire.CheckName(name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	credentials, err := f.client.read()
	if err != nil {
		return err
	}
	conn, err := bus.Connect(ctx, credentials, bus.ConnOptions{})
	if err != nil {
		return err
	}
	defer conn.Close()
	about, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
	if err != nil {
		return err
	}
	claim, err := f.claim(about.Budget)
	if err != nil {
		return err
	}
	c := &commandJobs{flags: f, args: args, name: name, claim: claim, conn: conn, ours: credentials, about: about,
		ctx: ctx, say: func(number int, line string) { sayOf(stderr, name, number, line) }}
	if c.first, err = c.submit(0, c.start); err != nil {
		return err
	}
	f.detached.begun(submittedWith(c.first.answer.Jobs[0], claim))
	err = c.first.serve()
	switch {
	case c.ended == nil:
		err = cmp.Or(c.failed, err, errors.New("the script was not started: its job was stopped before"))
	default:
		if _, told := errors.AsType[*agent.InterruptedError](err); err != nil && !told {
			c.say(0, fmt.Sprintf("%v: the script trains on without us", err))
		}
		err = exitOf(args[0], <-c.ended)
	}
	c.serving.Wait()
	var r joinReport
	for _, g := range c.guests {
		if summary, joined := g.host.Summary(); joined {
			r.add(g.job, g.number, summary)
		}
	}
	return errors.Join(err, r.tell(stderr), r.write(f.report))
}

func submittedWith(r wire.Record, claim graph.Bytes) string {
	return fmt.Sprintf("%s, with %s until it has recorded an iteration", submitted(r), claim)
}

// submit submits the job of a process. start starts the command, unless that has been done.
func (c *commandJobs) submit(number int, start func(held []*os.File) error) (*guest, error) {
	job := processName(c.name, number)
	claim := external.Claim(c.claim)
	answer, err := request(c.ctx, c.conn, []newJob{{graph: claim, latency: make([]time.Duration, len(claim.Ops)),
		spec: wire.Spec{Name: job, Model: filepath.Base(script(c.args)), Graph: claim.Digest(),
			Priority: c.flags.priority, Script: true}}})
	if err != nil {
		return nil, err
	}
	c.say(0, submittedWith(answer.Jobs[0], c.claim))
	g := &guest{of: c, number: number, job: job, answer: answer, asking: make(chan *external.Recorded, 1)}
	g.host = sidecar.NewHost(sidecar.HostOptions{Note: g.say, Now: clock.Now, Record: g.record,
		Start: func() ([]*os.File, error) {
			g.started.Store(true)
			held, err := g.lifeFiles()
			if err == nil {
				err = start(held)
			}
			return held, err
		}})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guests = append(c.guests, g)
	return g, nil
}

// say says a line of the process, which is also in its job's log: that of the first has all that the command prints.
func (g *guest) say(line string) {
	g.of.say(g.number, line)
	if g.number > 0 {
		g.host.Log(line)
	}
}

// lifeFiles returns files that show that the process lives: what it has stays its own when this process is gone.
func (g *guest) lifeFiles() (files []*os.File, err error) {
	if g.lock != nil {
		files = append(files, g.lock.File())
	}
	if g.lease != nil {
		lock, err := g.lease.File()
		if err != nil {
			return nil, err
		}
		files = append(files, lock)
	}
	return files, nil
}

// start starts the command, and admits its processes.
func (c *commandJobs) start(held []*os.File) error {
	j, err := scriptCommand{args: c.args, held: held}.startJoining()
	if err != nil {
		c.failed = err
		return err
	}
	c.flags.detached.follow(c.first.host.Log)
	c.ended = make(chan error, 1)
	passing := j.passOn(c.ctx, c.listens)
	over, end := context.WithCancel(context.Background())
	var admitting sync.WaitGroup
	c.serving.Go(func() {
		for conn := range j.door.Joined() {
			admitting.Go(func() {
				if g := c.admit(over, conn); g != nil {
					c.serving.Go(func() { g.watch(over, conn, j.process.Pid) })
				} else {
					conn.Close()
				}
			})
		}
		err := c.flags.detached.ended(<-j.ended)
		passing()
		c.mu.Lock()
		c.over = true
		c.mu.Unlock()
		end()
		admitting.Wait()
		c.first.host.Exit(sidecar.Exit{Err: err})
		c.ended <- err
	})
	return nil
}

// admit has a process that has come be the job of its number, and returns that. What cannot be planned for by itself is
// no job: a line says so, unless it is the first, and nil is returned when it says no more.
func (c *commandJobs) admit(over context.Context, conn *net.UnixConn) *guest {
	defer context.AfterFunc(over, func() { _ = conn.CloseRead() })() // all that was said is read, and no more
	r := external.NewReader(conn, external.Script)
	m, err := r.Next()
	hello, ok := m.(external.Hello)
	if err != nil || !ok {
		return nil
	}
	number := c.numbers.next(hello)
	if number == 0 {
		c.first.host.Join(conn, r, hello)
		return c.first
	}
	if !hello.Group {
		if err := tell(conn, sidecar.Rest); err != nil { // from its next step on, until its job has its memory
			return nil
		}
	}
	next, err := r.Next()
	if err != nil {
		return nil
	}
	passive, _ := next.(external.Passive)
	stopped := c.ends()
	var g *guest
	if !passive.Always && !hello.Group && !stopped {
		g, err = c.submit(number, func([]*os.File) error { return nil })
		stopped = err != nil && c.ctx.Err() != nil
	}
	switch {
	case stopped:
		err = tell(conn, external.Stop{})
	case passive.Always:
		c.say(number, "it is no job, and trains without a plan beside the jobs: "+passive.Why)
	case hello.Group:
		c.say(number, "it is no job, and trains without a plan beside the jobs: others of its group "+
			"(torch.distributed) would wait when it does")
	case err != nil:
		c.say(number, fmt.Sprintf("it is no job, and trains without a plan beside the jobs: %v", err))
	default:
		g.host.Join(conn, r, hello, next)
		c.serving.Go(func() {
			if err := g.serve(); err != nil {
				g.say(fmt.Sprintf("%v: it trains on without us", err))
			}
		})
		return g
	}
	for err == nil {
		_, err = r.Next()
	}
	return nil
}

// listens reports whether a process can be told to end.
func (c *commandJobs) listens() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.guests, func(g *guest) bool { return g.host.Listens() })
}

// ends reports whether all processes are to end.
func (c *commandJobs) ends() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped || c.ctx.Err() != nil
}

// lingers is how long a command goes on whose process has ended before the memory of its job is given back: most end
// with it.
const lingers = time.Second

// watch tells the host of the end of its process.
func (g *guest) watch(over context.Context, conn *net.UnixConn, command int) {
	err := sidecar.AwaitEnd(over, conn, command)
	if g.number > 0 {
		if err != nil {
			g.host.HearOut(over)
		}
		g.host.Exit(sidecar.Exit{Said: true})
		if !g.started.Load() {
			g.stop()
		}
		return
	}
	if err != nil { // it ends with its command, or its end cannot be seen
		return
	}
	select {
	case <-time.After(lingers):
		g.host.ReportGone()
	case <-over.Done():
	}
}

// stop has the job stopped, by the controller if it can be reached.
func (g *guest) stop() {
	g.stopping.Do(func() {
		ctx := context.WithoutCancel(g.of.ctx)
		if _, err := ask(ctx, g.of.conn, wire.Request{Verb: wire.Stop, Job: g.job}); err != nil {
			g.host.Stop(g.job)
		}
	})
}

// stopAll stops the other jobs when the first one is stopped, which is that of the command.
func (c *commandJobs) stopAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.stopped || c.ctx.Err() != nil { // those that are interrupted all know
		return
	}
	c.stopped = true
	for _, g := range c.guests[1:] {
		c.serving.Go(g.stop)
	}
}

// firstHost is the host of the first job.
type firstHost struct {
	*sidecar.Host
	stopAll func()
}

func (h firstHost) Stop(job string) {
	h.stopAll()
	h.Host.Stop(job)
}

func (h firstHost) Remove(job string) {
	h.stopAll()
	h.Host.Remove(job)
}

// claim is what the script has at first.
func (f *joinFlags) claim(budget graph.Bytes) (graph.Bytes, error) {
	switch {
	case f.memory != "":
		return parseBytes("--memory", f.memory)
	case budget == 0:
		return 0, errors.New("the controller has no budget of which the script could have a part: say with --memory " +
			"what it needs, such as --memory 4GiB")
	}
	return max(1, budget/firstShare), nil
}

// script is the word of a command line that names what is run.
func script(args []string) string {
	for _, word := range args {
		if strings.HasSuffix(word, ".py") {
			return word
		}
	}
	return args[0]
}

// nameOf is the name of a job for a command line.
func nameOf(args []string) string { return strings.TrimSuffix(filepath.Base(script(args)), ".py") }

// longestAlone is how long a sidecar whose script has ended waits for a controller that is away.
const longestAlone = 10 * time.Second

// serve is the executor of the job, until the controller lets it go.
func (g *guest) serve() error {
	c := g.of
	name, credentials := g.answer.Jobs[0].Executor, bus.Credentials{}
	if err := json.Unmarshal([]byte(g.answer.Credentials), &credentials); err != nil {
		return fmt.Errorf("the credentials of executor %s: %w", name, err)
	}
	credentials.URL, credentials.CA = c.ours.URL, c.ours.CA // which reach the controller from here
	log := slog.New(sayHandler(g.say))
	o := agent.Options{Executor: name, Life: rand.Text(), Alone: longestAlone, Interrupt: c.ctx.Done(), Notice: log,
		Log:    log,
		Device: scriptDevice{identity: c.about.Device, link: c.about.Link},
		Host: func(observer func(executor.Event)) agent.Host {
			g.host.Observer = observer
			if g.number == 0 {
				return firstHost{g.host, c.stopAll}
			}
			return g.host
		}}
	running, cancel := context.WithCancelCause(context.WithoutCancel(c.ctx))
	defer cancel(nil)
	state := c.flags.client.state
	leases := hostLeases{logs: leaseLogs(state), log: g.say, failed: cancel}
	var err error
	if o.Place, err = process.Place(); err != nil {
		return err
	}
	if c.flags.client.credentials == "" {
		if g.lock, err = lifelock.Take(executorsIn(state), name); err != nil {
			return err
		}
		defer g.lock.Leave()
		if err := g.lock.Sign(agent.ProcessName(), time.Now(), o.Life); err != nil {
			return err
		}
	}
	o.Lease = func(l *wire.Lease, answer func(...lease.Output)) (agent.HostLease, error) {
		opened, err := leases.client(l, answer)
		if err != nil {
			return nil, err
		}
		g.lease = opened
		return opened, nil
	}
	conn, err := bus.Connect(c.ctx, credentials, bus.ConnOptions{Log: g.say})
	if err != nil {
		return err
	}
	defer conn.Close()
	o.Bus = conn
	go g.hand(running)
	return agent.Run(running, o)
}

// record has the job planned for by what the script has recorded last.
func (g *guest) record(r *external.Recorded) {
	select {
	case <-g.asking: // which nobody has asked for yet
	default:
	}
	g.asking <- r
}

// hand asks the controller to plan for what the script has recorded, again and again while it is away.
func (g *guest) hand(ctx context.Context) {
	var next *external.Recorded
	again := make(<-chan time.Time)
	for {
		select {
		case <-ctx.Done():
			return
		case next = <-g.asking:
		case <-again:
		}
		if next == nil {
			continue
		}
		refused, err := g.ask(ctx, next)
		switch {
		case refused != "":
			g.say("the controller does not plan for what was recorded: " + refused)
			next = nil
		case err != nil:
			again = time.After(time.Second)
		default:
			next = nil
		}
	}
}

// ask asks it once. The error is of a controller that is away.
func (g *guest) ask(ctx context.Context, r *external.Recorded) (refused string, err error) {
	packed, err := wire.Pack(r.Graph, r.Latency)
	if err != nil {
		return err.Error(), nil
	}
	data, err := g.of.conn.Ask(ctx, wire.ControlSubject, wire.Encode(wire.Request{Verb: wire.SetGraph, Job: g.job,
		Graph: r.Graph.Digest(), Graphs: []wire.Packed{packed}, Held: r.Held, Least: g.host.Least()}))
	if err != nil {
		return "", err
	}
	a, err := wire.DecodeAs[wire.Answer](data)
	if err == nil && a.Trouble != "" {
		return "", errors.New(a.Error)
	}
	return a.Error, err
}

// scriptDevice is what a script trains on, as its controller knows it.
type scriptDevice struct {
	identity string
	link     wire.Rates
}

func (d scriptDevice) Name() string       { return "script" }
func (d scriptDevice) Identity() string   { return d.identity }
func (d scriptDevice) Align() graph.Bytes { return 1 } // addresses are the script's own
func (d scriptDevice) Now() time.Duration { return clock.Now() }
func (d scriptDevice) Facts() cost.Facts {
	return cost.Facts{Out: cost.Link{Rate: d.link.Out}, In: cost.Link{Rate: d.link.In}}
}
