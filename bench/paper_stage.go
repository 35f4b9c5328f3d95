package bench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tensile/controller"
	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// By how much the simulated device departs from the latencies that first plans assume, and from itself: the standard
// deviation of the logarithm of what each kind of op and each op is off by, and the share by which a kernel varies.
const (
	mispredicted = 0.1
	noise        = 0.02
)

// stage is a scene with one seed.
type stage struct {
	ctx        context.Context
	device     func() device.Device // that runs are on, with as much memory as is needed
	settings   task.Settings
	iterations int
	whole      bool // time is real, and jobs end after their iterations; otherwise all train until each has done them
	scene      PaperScene
	names      []string // in the order in which the jobs come

	tasks     []task.Task
	all, live graph.Bytes // vanilla peaks of all jobs together
	vanilla   *trial
	paper     graph.Bytes // what tensile-paper needs as it stops by itself

	tried []tried // for least
}

// outcome is the result of a contender on a stage, per phase.
type outcome struct {
	budget graph.Bytes // 0: none
	why    string      // there is none
	phases map[string]figures
	same   *bool // all losses and weights are those without a plan; nil: there are none
}

// stage is a scene with one seed in virtual time.
func (o *PaperOptions) stage(ctx context.Context, scene PaperScene, repeat int) *stage {
	f := o.Facts
	f.Memory = 0
	return &stage{ctx: ctx, settings: o.Settings, iterations: o.Iterations, scene: scene, names: scene.order(repeat),
		device: func() device.Device {
			return sim.New(f, sim.Options{Noise: noise, Mispredicted: mispredicted, Seed: uint64(repeat) + 1})
		}}
}

// load builds the tasks with rewrites.
func (s *stage) load(rewrites []string) ([]task.Task, error) {
	settings := s.settings
	settings.Batch, settings.Passes = s.scene.Batch, rewrites
	return task.Load(s.names, settings)
}

// request asks for first plans of tasks.
func (s *stage) request(tasks []task.Task, gates bool) (scheduler.Request, error) {
	d := s.device()
	on := planner.Describe(d, planner.Roofline(d.Facts()))
	on.Gates = gates
	return on.FirstRequest(tasks)
}

// prepare measures what the others are compared with.
func (s *stage) prepare() (err error) {
	if s.tasks, err = s.load(nil); err != nil {
		return err
	}
	r, err := s.request(s.tasks, false)
	if err != nil {
		return err
	}
	peaks, err := planner.Vanilla(s.ctx, r)
	if err != nil {
		return err
	}
	for i := range peaks.All {
		s.all, s.live = s.all+peaks.All[i], s.live+peaks.Live[i]
	}
	r.Policy = paperPolicy
	planned, err := planner.Schedule(s.ctx, r)
	if err != nil {
		return err
	}
	s.paper = planned.Least
	s.vanilla, err = s.try(s.tasks, controller.Config{Policy: "none-live"})
	return err
}

// budget finds a contender's budget; 0: none.
func (s *stage) budget(c *contender) (graph.Bytes, error) {
	switch c.goal {
	case paperPeak:
		return s.paper, nil
	case leastMemory:
		return s.leastBudget(c.overhead)
	case shareOfLive:
		return s.live * graph.Bytes(c.share) / 100, nil
	}
	return 0, nil
}

// tried is what plans of policy tensile within a budget come to.
type tried struct {
	budget graph.Bytes
	eor    float64 // predicted; +Inf: there are none
}

// leastBudget is the least budget within which plans of policy tensile are predicted to take no more than an overhead,
// as bisection finds it, to a 128th of live memory. What was tried for one overhead counts for the others; one
// goroutine at a time may ask.
func (s *stage) leastBudget(overhead float64) (graph.Bytes, error) {
	r, err := s.request(s.tasks, false)
	if err != nil {
		return 0, err
	}
	r.Policy = "tensile"
	curve := planner.Curve{Request: r, Live: s.live}
	low, _ := r.WorkingSets()   // below which nothing is planned
	high := s.live + s.live/128 // within which nothing has to be moved
	for {
		for _, t := range s.tried {
			if t.eor <= 1+overhead {
				high = min(high, t.budget)
			}
		}
		for _, t := range s.tried {
			if t.eor > 1+overhead && t.budget < high {
				low = max(low, t.budget)
			}
		}
		if high-low <= max(1, s.live/128) {
			return high, nil
		}
		t := tried{budget: low + (high-low)/2, eor: math.Inf(1)}
		switch p, err := curve.At(s.ctx, t.budget); {
		case err == nil:
			t.eor = p.EOR
		case !errors.Is(err, scheduler.ErrNoPlan):
			return 0, err
		}
		s.tried = append(s.tried, t)
	}
}

// measure has a contender train the jobs within a budget; 0: none.
func (s *stage) measure(c *contender, budget graph.Bytes) (_ *outcome, err error) {
	tasks := s.tasks
	if c.passes != nil {
		if tasks, err = s.load(c.passes); err != nil {
			return nil, err
		}
	}
	config := controller.Config{Policy: c.policy, Budget: budget, MemorySharing: wire.NoSharing}
	if c.gates {
		config.MemorySharing = wire.Gates
	}
	vanilla := s.vanilla
	if s.whole { // what else a machine does is the same for two runs side by side at best
		if vanilla, err = s.try(s.tasks, controller.Config{Policy: "none-live"}); err != nil {
			return nil, err
		}
	}
	t, err := s.try(tasks, config)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", c.name, err)
	}
	o := &outcome{budget: budget, why: t.refused, phases: make(map[string]figures)}
	if o.why != "" {
		return o, nil
	}
	for _, phase := range []string{wholeRun, coldStart, updated} {
		o.phases[phase] = t.figures(phase, vanilla)
	}
	o.same = t.hasSameBits(vanilla)
	return o, nil
}
