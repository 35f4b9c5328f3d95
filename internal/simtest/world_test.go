package simtest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/controller"
	"tensile/device"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/scheduler"
	"tensile/wire"
)

// world is a controller, executors, what a bus stores, and a network.
type world struct {
	t          *testing.T
	rng        *rand.Rand
	config     controller.Config
	own        *site   // the device of the controller's process
	sites      []*site // all devices on which jobs may train
	clock      time.Duration
	controller *controller.Machine
	processes  map[string]*process // by key
	mail       []func()            // on its way, in any order
	apart      bool                // some processes are on another host, with other checkpoints
	calm       bool                // nothing is lost or doubled, nobody dies any more
	lives      int

	records map[string]wire.Record
	graphs  map[graph.Digest]*graph.Graph
	layouts map[string]*wire.Layout // by object name
	dropped map[string]bool         // layouts that are of no use any more
	orders  map[string]wire.Orders
	results map[string]wire.Result // by key and object
	learnt  *wire.Learnt
	set     *wire.Settings
	devices map[string]wire.Device // that executors have brought

	disk *disk // with the checkpoints of all executors

	answers []wire.Answer
	reports []wire.Report
	events  []controller.Event
	names   int
	refused int      // second processes of an executor
	killed  int      // processes that did not answer
	resumed int      // jobs that began with a checkpoint
	unknown []func() // tell of processes that have ended without anybody's knowing

	ended    map[string]string                // lives that were started by hand and have ended, with their names
	ghosts   map[string]string                // others, of which a controller that is started later may hear late
	ranOn    map[string]*site                 // jobs, by name
	moved    int                              // jobs that went from one device to another
	leaders  *leadership                      // nil: there is one controller
	turned   map[string]bool                  // jobs of which they have heard that they are not
	accepted map[string]bool                  // jobs of which whoever submitted them has heard that they are taken
	asks     int64                            // the number of the newest request
	handed   map[graph.Digest]*graph.Graph    // to executors, which keep them
	asked    map[int64]func(wire.Answer)      // who hears the answer
	recorded map[graph.Digest][]time.Duration // the latencies of scripts' graphs
	scripts  bool                             // some jobs are scripts
	orphans  []*script                        // whose sidecars have ended
	hurt     map[string]bool                  // scripts that have died, or lost their sidecars
	played   int                              // iterations of scripts by plans
	sidecars map[string]bool                  // executors of scripts that the controller counts with
	cameFrom map[string]*site                 // executors that were started by hand, by name
	doubled  map[string]bool                  // names that two processes have had
	tenants  *tenants                         // nil: nobody has a share
	lines    map[string]*line                 // of replicas, by their keys; nil: no job is replicated
	slow     time.Duration                    // how many times as long as others the devices of this world take
}

// planning is the work of a set of plans: enough for most to be what more work would find. What is tested here is what
// becomes of plans, and a soak of thousands of seeds would plan for three quarters of its time.
const planning = 1_000_000

// host trains jobs a turn at a time.
type host interface {
	agent.Host
	Poll(ctx context.Context) (bool, error)
}

func newWorld(t *testing.T, seed uint64, share bool, open func() device.Device) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 91)), processes: map[string]*process{},
		records: map[string]wire.Record{},
		graphs:  map[graph.Digest]*graph.Graph{}, layouts: map[string]*wire.Layout{}, orders: map[string]wire.Orders{},
		results: map[string]wire.Result{}, devices: map[string]wire.Device{}, cameFrom: map[string]*site{},
		ranOn: map[string]*site{}, accepted: map[string]bool{}, turned: map[string]bool{},
		handed: map[graph.Digest]*graph.Graph{},
		slow:   1, sidecars: map[string]bool{},
		asked: map[int64]func(wire.Answer){}, recorded: map[graph.Digest][]time.Duration{}, hurt: map[string]bool{},
		dropped: map[string]bool{}, ended: map[string]string{},
		ghosts: map[string]string{}, doubled: map[string]bool{}}
	w.own = &site{w: w, open: open}
	w.sites = []*site{w.own}
	on := w.own.planner()
	w.disk = &disk{rng: w.rng, files: map[string]*bytes.Buffer{}, calm: &w.calm}
	w.config = controller.Config{Name: "own", Device: on.Identity, Align: on.Align, Out: on.Out, In: on.In,
		Sharing: on.Sharing,
		Policy:  "tensile", Options: scheduler.Options{Work: planning}, OneExecutor: share, Horizon: 1000,
		Watched: true}
	w.controller = controller.NewMachine(w.config)
	return w
}

// send puts a message on its way.
func (w *world) send(deliver func()) {
	if !w.calm && w.rng.IntN(10) == 0 {
		return
	}
	w.mail = append(w.mail, deliver)
	if !w.calm && w.rng.IntN(10) == 0 {
		w.mail = append(w.mail, deliver)
	}
}

// surely puts a message on its way that can not be lost.
func (w *world) surely(deliver func()) { w.mail = append(w.mail, deliver) }

func (w *world) deliver() {
	at := w.rng.IntN(len(w.mail))
	message := w.mail[at]
	w.mail = slices.Delete(w.mail, at, at+1)
	message()
}

func (w *world) step(in controller.Input) {
	w.clock += time.Millisecond
	if w.leaders != nil {
		w.leaders.hear(in)
		return
	}
	w.carryOut(w.controller.Step(w.clock, in))
	if in.Tick != nil && w.tenants != nil {
		w.tenants.there = training(w.controller)
	}
}

// check holds what must be true at any moment.
func (w *world) check() {
	w.t.Helper()
	if w.leaders == nil || !w.leaders.midway() {
		for _, at := range w.sites {
			at.check()
			at.checkHost()
		}
	}
	if w.lines != nil {
		w.checkSiblings()
	}
}

// pass lets time pass.
func (w *world) pass(ticks int) {
	for range ticks {
		w.clock += time.Duration(1+w.rng.IntN(4)) * time.Second
		w.step(controller.Input{Tick: &controller.Tick{}})
	}
}
