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
	"os"
	"path/filepath"
	"strings"
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

// guest is a script that is a job of a controller, and what it speaks to.
type guest struct {
	args     []string
	conn     *bus.Conn // Connection for requests.
	job      string
	say      func(string)
	held     []*os.File // Locks that show that the script is alive.
	lease    *leaseOf   // Lease of the device's memory; nil: jobs share no memory.
	host     *sidecar.Host
	detached *detached
	failed   error      // it could not be started
	ended    chan error // how the command has ended, once; nil: it was not started
	asking   chan *external.Recorded
}

// job has a script become a job of a controller, and is its sidecar until it ends.
func (f *joinFlags) job(ctx context.Context, args []string, stderr io.Writer) error {
	say := func(text string) { fmt.Fprintln(stderr, "tensile:", text) }
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
	g := external.Claim(claim)
	answer, err := request(ctx, conn, []newJob{{graph: g, latency: make([]time.Duration, len(g.Ops)),
		spec: wire.Spec{Name: name, Model: filepath.Base(script(args)), Graph: g.Digest(), Priority: f.priority,
			Script: true}}})
	if err != nil {
		return err
	}
	record := answer.Jobs[0]
	line := fmt.Sprintf("%s, with %s until it has recorded an iteration", submitted(record), claim)
	say(line)
	f.detached.begun(line)
	ours := bus.Credentials{}
	if err := json.Unmarshal([]byte(answer.Credentials), &ours); err != nil {
		return fmt.Errorf("the credentials of executor %s: %w", record.Executor, err)
	}
	ours.URL, ours.CA = credentials.URL, credentials.CA // which reach the controller from here
	guest := &guest{args: args, conn: conn, job: name, say: say, detached: &f.detached,
		asking: make(chan *external.Recorded, 1)}
	err = guest.serve(ctx, f, ours, &about, record.Executor)
	summary, joined := guest.host.Summary()
	for _, line := range summaryLines(summary, joined) {
		say(line)
	}
	var r joinReport
	r.add(summary)
	return errors.Join(err, r.write(f.report))
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

// serve is the executor of the script, until the controller lets it go; the error is the command's.
func (g *guest) serve(ctx context.Context, f *joinFlags, credentials bus.Credentials, about *wire.Answer,
	name string) error {
	log := slog.New(sayHandler(g.say))
	g.host = sidecar.NewHost(sidecar.HostOptions{Start: g.start, Note: g.say, Now: clock.Now,
		Record: g.record})
	o := agent.Options{Executor: name, Life: rand.Text(), Alone: longestAlone, Interrupt: ctx.Done(), Notice: log,
		Log:    log,
		Device: scriptDevice{identity: about.Device, link: about.Link},
		Host: func(observer func(executor.Event)) agent.Host {
			g.host.Observer = observer
			return g.host
		}}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	leases := hostLeases{logs: leaseLogs(f.client.state), log: g.say, failed: cancel}
	var err error
	if o.Place, err = process.Place(); err != nil {
		return err
	}
	if f.client.credentials == "" {
		lock, err := lifelock.Take(executorsIn(f.client.state), name)
		if err != nil {
			return err
		}
		defer lock.Leave()
		if err := lock.Sign(agent.ProcessName(), time.Now(), o.Life); err != nil {
			return err
		}
		g.held = append(g.held, lock.File())
	}
	o.Lease = func(l *wire.Lease, answer func(...lease.Output)) (agent.HostLease, error) {
		opened, err := leases.client(l, answer)
		if err != nil {
			return nil, err
		}
		g.lease = opened
		return opened, nil
	}
	conn, err := bus.Connect(ctx, credentials, bus.ConnOptions{Log: g.say})
	if err != nil {
		return err
	}
	defer conn.Close()
	o.Bus = conn
	go g.hand(running)
	err = agent.Run(running, o)
	if g.ended == nil {
		return cmp.Or(g.failed, err, errors.New("the script was not started: its job was stopped before"))
	}
	if _, told := errors.AsType[*agent.InterruptedError](err); err != nil && !told {
		g.say(fmt.Sprintf("%v: the script trains on without us", err))
	}
	return exitOf(g.args[0], <-g.ended)
}

// start starts the script. It holds all that shows that it lives: what it has stays its own when this process is gone.
func (g *guest) start() (sidecar.Script, error) {
	held := g.held
	if g.lease != nil {
		lock, err := g.lease.File()
		if err != nil {
			g.failed = err
			return sidecar.Script{}, err
		}
		held = append(held, lock)
	}
	_, s, err := scriptCommand{args: g.args, held: held}.startJoining()
	if err != nil {
		g.failed = err
		return s, err
	}
	g.detached.follow(g.host.Log)
	g.ended = make(chan error, 1)
	ended := make(chan error, 1)
	go func(from <-chan error, to chan<- error) {
		err := g.detached.ended(<-from)
		to <- err
		ended <- err
	}(s.Ended, g.ended)
	s.Ended = ended
	return s, nil
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
	data, err := g.conn.Ask(ctx, wire.ControlSubject, wire.Encode(wire.Request{Verb: wire.SetGraph, Job: g.job,
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
