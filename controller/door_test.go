package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/bustest"
)

// door is a whole controller on a bus, on virtual time. Bob has a job there, at an executor that does as it is told.
// All others send what they like.
type door struct {
	t       *testing.T
	rng     *rand.Rand
	bus     *asking
	options Options
	end     func()
	ended   chan error
	log     strings.Builder
	number  map[string]int64 // of the newest status, by executor
	bob     wire.Record      // as it was when it began
	names   int
	packed  []wire.Packed           // graphs of the newest spec
	last    string                  // what was sent
	brought map[string]*wire.Device // by their executors, which are called as they are

	sent, read map[string]int // messages, by sender, and those among them that are messages
}

// asking is a bus that tells who asks.
type asking struct {
	*bustest.Bus
	mu    sync.Mutex
	serve func(user string, data []byte, reply func([]byte))
}

func (b *asking) Serve(_ string, each func(user string, data []byte, reply func([]byte))) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.serve = each
	return func() {}, nil
}

// as asks as a user, and hears the answer whenever it comes.
func (b *asking) as(user string, data []byte) <-chan []byte {
	answers := make(chan []byte, 1)
	b.mu.Lock()
	serve := b.serve
	b.mu.Unlock()
	serve(user, data, func(answer []byte) { answers <- answer })
	return answers
}

func newDoor(t *testing.T, seed uint64) *door {
	link := cost.Link{Rate: 100e6, Latency: time.Microsecond}
	d := &door{t: t, rng: rand.New(rand.NewPCG(seed, 38)), bus: &asking{Bus: bustest.New()},
		number:  map[string]int64{},
		brought: map[string]*wire.Device{}, sent: map[string]int{}, read: map[string]int{}}
	c := Config{Device: "model", Align: 64, Out: link, In: link, Policy: "tensile", Budget: 40_000, SettleReports: 1,
		Options: scheduler.Options{Work: 20_000, Pack: "greedy"}}
	d.options = Options{Config: c, PlanDevice: plannerOf(c, profile).Device,
		Log:      slog.New(slog.NewTextHandler(&d.log, nil)),
		Launcher: Launcher{Credentials: func(executor string) string { return executor }},
		Describe: func(b *wire.Device) (planner.Device, error) {
			on := planner.Describe(sim.New(b.Facts, sim.Options{}), planner.Roofline(b.Facts))
			on.Identity, on.Align, on.Page = b.Identity, b.Align, b.Page
			return on, nil
		}}
	return d
}

// begin starts a controller. A panic of its loop is told as its end.
func (d *door) begin() {
	ctx, cancel := context.WithCancel(d.t.Context())
	ready := make(chan struct{})
	o := d.options
	o.Ready = func() { close(ready) }
	d.ended = make(chan error, 1)
	go func() {
		defer func() {
			if bug := recover(); bug != nil {
				d.ended <- fmt.Errorf("panic: %v\n%s", bug, debug.Stack())
			}
		}()
		d.ended <- Run(ctx, d.bus, o)
	}()
	d.end = cancel
	select {
	case <-ready:
	case err := <-d.ended:
		d.t.Fatalf("the controller does not start: %v", err)
	}
}

func (d *door) stop() {
	d.end()
	if err := <-d.ended; !errors.Is(err, context.Canceled) {
		d.t.Fatal(err)
	}
}

func (d *door) put(key string, m wire.Message) {
	if err := d.bus.Put(d.t.Context(), key, wire.Encode(m)); err != nil {
		d.t.Fatal(err)
	}
}

// pack keeps a graph for the request that is made.
func (d *door) pack(g *graph.Graph) graph.Digest {
	var latency []time.Duration
	if g.Opaque() {
		latency = make([]time.Duration, len(g.Ops))
	}
	packed, err := wire.Pack(g, latency)
	if err != nil {
		d.t.Fatal(err)
	}
	d.packed = []wire.Packed{packed}
	return g.Digest()
}

// open starts a controller, and bob's job; then the others come.
func (d *door) open() {
	d.begin()
	d.put(wire.StatusKey("bobs"), d.status("bobs"))
	synctest.Wait()
	spec := d.spec()
	for spec.Script {
		spec = d.spec()
	}
	spec.Name = "bob"
	answer := d.bus.as("bob", wire.Encode(wire.Request{Verb: wire.Submit, Specs: []wire.Spec{spec}, Graphs: d.packed}))
	for range 10 {
		d.pass()
	}
	if a, err := wire.DecodeAs[wire.Answer](<-answer); err != nil || a.Error != "" {
		d.t.Fatalf("bob's job is refused: %s, %v", a.Error, err)
	}
	d.bob = d.jobs()["bob"]
	if d.bob.State != wire.JobRunning || d.bob.Executor != "bobs" {
		d.t.Fatalf("bob's job is %s at %q: %s", d.bob.State, d.bob.Executor, d.bob.Reason)
	}
}

// pass lets a moment of virtual time pass, in which bob's executor is heard.
func (d *door) pass() {
	d.put(wire.StatusKey("bobs"), d.status("bobs"))
	time.Sleep(time.Duration(100+d.rng.IntN(1000)) * time.Millisecond)
	synctest.Wait()
}

func (d *door) jobs() map[string]wire.Record {
	answer := d.bus.as("", wire.Encode(wire.Request{Verb: wire.Jobs}))
	synctest.Wait()
	a, err := wire.DecodeAs[wire.Answer](<-answer)
	if err != nil {
		d.t.Fatalf("the list of jobs cannot be read: %v", err)
	}
	// Who has the device open is believed that it is full: then there is less for new jobs.
	if a.Budget > d.options.Budget || a.Budget <= 0 || len(a.Tenants) > 0 {
		d.t.Fatalf("after %s the budget is %s, was %s; shares are %v", d.last, a.Budget, d.options.Budget, a.Tenants)
	}
	records := make(map[string]wire.Record)
	for _, r := range a.Jobs {
		records[r.Spec.Name] = r
	}
	return records
}

// check holds that the controller lives, has made no bug known, and that bob has what he had.
func (d *door) check() {
	d.t.Helper()
	sent := d.last
	select {
	case err := <-d.ended:
		d.t.Fatalf("after %s the controller ended: %v", sent, err)
	default:
	}
	if text := d.log.String(); strings.Contains(text, "bug ended") {
		d.t.Fatalf("after %s: %s", sent, text[strings.Index(text, "bug ended"):])
	}
	d.log.Reset()
	was, is := d.bob, d.jobs()["bob"]
	if !reflect.DeepEqual(is.Spec, was.Spec) || is.State != wire.JobRunning || is.Executor != "bobs" ||
		is.Incarnation != was.Incarnation || is.Restarts != 0 || is.Checkpoint != nil || is.Result != nil ||
		is.Arena == 0 || is.Claim < is.Arena || is.Iteration > int(d.number["bobs"])+1 {
		d.t.Fatalf("after %s bob's job was\n%+v, and is\n%+v", sent, was, is)
	}
}

// Messages of each kind of sender, changed at random, neither end a controller, nor any plan, nor do they change what
// another tenant has. A controller after it starts with what is stored.
func TestDoor(t *testing.T) {
	const each = 100 // messages in a world
	rounds := long.Rounds(300, 20_000)
	sent, read := map[string]int{}, map[string]int{}
	states, plans, elsewhere := map[wire.JobState]int{}, 0, 0
	for seed := range (rounds + each - 1) / each {
		synctest.Test(t, func(t *testing.T) {
			d := newDoor(t, seed)
			defer d.bus.Close()
			defer func() { d.end() }()
			d.open()
			for i := range each {
				who := &senders[d.rng.IntN(len(senders))]
				if i%4 == 0 { // they do as they are told now and then, so that they have something
					d.put(wire.StatusKey("adas"), d.status("adas"))
					for _, x := range slices.Sorted(maps.Keys(d.brought)) {
						d.put(wire.StatusKey(x), d.status(x))
					}
				}
				data := d.change(wire.Encode(who.message(d)))
				d.last = fmt.Sprintf("message %d of seed %d, of a %s: %s\n", i, seed, who.name, data)
				who.send(d, data)
				d.pass()
				if d.sent[who.name]++; readable(data) {
					d.read[who.name]++
				}
				d.check()
			}
			for _, r := range d.jobs() {
				if states[r.State]++; r.On != "" && r.PlansMade > 0 {
					elsewhere++
				}
				plans += r.PlansMade
			}
			d.stop()
			d.begin()
			d.pass()
			d.last = fmt.Sprintf("a restart of seed %d", seed)
			d.check()
			d.stop()
			for name := range d.sent {
				sent[name], read[name] = sent[name]+d.sent[name], read[name]+d.read[name]
			}
		})
	}
	t.Logf("%d plans of jobs, %d of them on devices that were brought; they are %v", plans, elsewhere, states)
	if plans < 2*int(rounds/each) || elsewhere < int(rounds/each)/2 {
		t.Errorf("only %d plans, and %d jobs on devices that were brought", plans, elsewhere)
	}
	for _, s := range senders {
		t.Logf("%s: %d messages, %d could be read", s.name, sent[s.name], read[s.name])
		if read[s.name] < sent[s.name]/10 || read[s.name] > sent[s.name]*9/10 {
			t.Errorf("of %d messages of a %s %d could be read", sent[s.name], s.name, read[s.name])
		}
	}
}
