package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/device/lease"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/plan/compile"
	"tensile/scheduler/planner"
)

// The ways to share memory of the papers beside ours.
const (
	temporally  = "temporal" // one job after the other, iteration by iteration, without a pause
	withMPS     = "mps"      // arenas of their own; in unified memory, if they do not fit
	byZico      = "zico"
	byWaterwave = "waterwave"
)

// pageFault is what a page of unified memory costs beside its copy. It is calibrated by one number: two ResNet-50 that
// take 70 % of a V100's memory each are 8 times as slow as one that has half of the device (Zico, section 3.1). That is
// more than a fault of 25 us, with which they are 3.8 times as slow: 175 us are what another page takes to make room.
const pageFault = 285 * time.Microsecond

// sceneNoise is by how much kernels vary, both ways. Without noise copies of a network keep in step, as no device
// keeps them.
const sceneNoise = .05

// trained is what a job trains.
type trained struct {
	model     string
	optimizer autodiff.Optimizer
	batch     int
	copies    int // of it, jobs of their own; 0: 1
}

// arenaKey is what decides how large the arena of a job is.
type arenaKey struct {
	model     string
	optimizer autodiff.Optimizer
	batch     int
}

// scene is jobs on a device of a paper, whose plans move nothing and free all after its last use.
type scene struct {
	*shared
	bench    *sharingBench
	figure   string
	capacity graph.Bytes
	networks []trained
	arenas   graph.Bytes // of all jobs together
	least    graph.Bytes // together by gates
	ways     map[string]*sharedRun
}

// sharingFacts returns a device of a paper.
func sharingFacts(device string) cost.Facts {
	f, err := cost.Device(device)
	if err != nil {
		panic("bench: " + err.Error())
	}
	return f
}

// scene plans jobs for a device, whose memory is all that they may have.
func (b *sharingBench) scene(figure, device string, capacity graph.Bytes, networks ...trained) (*scene, error) {
	f := sharingFacts(device)
	m := &shared{ctx: b.ctx, options: ShareOptions{Facts: f, Iterations: b.options.Iterations},
		simulated: sim.Options{Noise: sceneNoise, Seed: 1}}
	s := &scene{shared: m, bench: b, figure: figure, networks: networks, ways: make(map[string]*sharedRun)}
	d := m.device()
	m.planner = planner.Describe(d, planner.Roofline(d.Facts()))
	m.planner.Gates = true
	s.capacity = m.paged(capacity)
	var spread graph.Bytes
	for _, n := range networks {
		name := fmt.Sprintf("%s:%d", n.model, max(1, n.copies))
		tasks, err := task.Load([]string{name}, n.settings())
		if err != nil {
			return nil, err
		}
		one, err := m.planner.FirstRequest(tasks[:1])
		if err != nil {
			return nil, err
		}
		one.Policy = "none-live"
		planned, err := planner.Plan(b.ctx, one)
		if err != nil {
			return nil, err
		}
		p := planned.Programs[0]
		groups, err := compile.ProveGroups(p, m.planner.Page, 0)
		if err != nil {
			return nil, err
		}
		base, peak := groups.Groups().Base.Count(), groups.Groups().Peak()
		spread = max(spread, graph.Bytes(peak-base)*m.planner.Page)
		m.set.Jobs = append(m.set.Jobs, name)
		for _, t := range tasks {
			m.tasks, m.programs = append(m.tasks, t), append(m.programs, p)
			s.least += graph.Bytes(base) * m.planner.Page
			s.arenas += p.Program().Arena
		}
	}
	s.least += spread
	for i := range m.tasks {
		if i > 0 && m.tasks[i].Graph == m.tasks[i-1].Graph {
			m.solo = append(m.solo, m.solo[i-1])
			continue
		}
		run, err := m.train(m.programs[i:i+1], m.tasks[i:i+1], executor.Sharing{}, 0)
		if err != nil {
			return nil, err
		}
		m.solo = append(m.solo, run.iteration[0])
	}
	return s, nil
}

func (n trained) settings() task.Settings {
	return task.Settings{Batch: n.batch, Optimizer: n.optimizer}
}

// sharing returns how a way shares memory on a host.
func (s *scene) sharing(way string) executor.Sharing {
	sharing := executor.Sharing{Lease: newRecorder(lease.Options{Still: -1})}
	if way != byGates {
		sharing.Method = way
	}
	return sharing
}

// fits reports whether the jobs can train in a way at the capacity.
func (s *scene) fits(way string) bool {
	return way == withMPS || way == ownArenas || s.least <= s.capacity
}

// run trains the jobs in a way, once.
func (s *scene) run(way string) (*sharedRun, error) {
	if run := s.ways[way]; run != nil {
		return run, nil
	}
	run, err := s.trainBy(way)
	s.ways[way] = run
	return run, err
}

func (s *scene) trainBy(way string) (*sharedRun, error) {
	switch {
	case way == temporally:
		run := &sharedRun{touched: min(s.least, s.capacity)}
		for _, alone := range s.solo { // equal shares of the time
			run.iteration = append(run.iteration, alone*time.Duration(len(s.solo)))
		}
		return run, nil
	case way == withMPS && s.arenas > s.capacity:
		s.memory, s.simulated.Fault = s.capacity, pageFault
		run, err := s.train(s.programs, s.tasks, executor.Sharing{}, 0)
		s.memory, s.simulated.Fault = 0, 0
		if err != nil {
			return nil, err
		}
		run.touched = s.capacity
		return run, nil
	case way == withMPS:
		return s.run(ownArenas)
	case way == ownArenas:
		return s.train(s.programs, s.tasks, executor.Sharing{}, 0)
	}
	return s.train(s.programs, s.tasks, s.sharing(way), s.capacity)
}

// batches names the batch of each job.
func (s *scene) batches() string {
	var all []string
	for _, n := range s.networks {
		all = append(all, fmt.Sprint(n.batch))
	}
	return strings.Join(all, "+")
}

// row is what came out in one way. Its measure is the throughput, against that of temporal sharing.
func (s *scene) row(way string) (*SharingRow, error) {
	r := &SharingRow{Figure: s.figure, Device: s.options.Facts.Name, Batch: s.batches(),
		Demand: float64(s.arenas) / float64(s.capacity), Measure: "throughput vs temporal",
		ShareRow: ShareRow{Jobs: strings.Join(s.set.Jobs, " "), Sharing: way, Capacity: s.capacity, Least: s.least,
			MSRAll: 1 - float64(s.capacity)/float64(s.arenas)}}
	if !s.fits(way) {
		r.Measure = "does not fit"
		return r, nil
	}
	run, err := s.run(way)
	if err != nil {
		return nil, err
	}
	spatial, err := s.run(ownArenas)
	if err != nil {
		return nil, err
	}
	beside := s.throughput(spatial)
	r.Touched, r.Gate, r.Alternating = run.touched, run.gate, s.throughput(run)
	r.EOR, r.EORTogether, r.Spatial = 1/r.Alternating, beside/r.Alternating, r.Alternating/beside
	if mps := s.ways[withMPS]; mps != nil {
		r.MPS = r.Alternating / s.throughput(mps)
	}
	r.Value = r.Alternating
	if s.fits(byGates) {
		gates, err := s.run(byGates)
		if err != nil {
			return nil, err
		}
		r.Gates = pointer(s.throughput(gates))
	}
	return r, nil
}

func pointer(v float64) *float64 { return &v }

// rows are those of some ways. MPS comes first, so that the others can be compared with it.
func (s *scene) rows(ways ...string) (all []SharingRow, err error) {
	if slices.Contains(ways, withMPS) {
		if _, err := s.run(withMPS); err != nil {
			return nil, err
		}
	}
	for _, way := range ways {
		r, err := s.row(way)
		if err != nil {
			return nil, err
		}
		all = append(all, *r)
	}
	return all, nil
}

// drawn returns the memory that the jobs held, over the time of a number of iterations of each job alone.
func (s *scene) drawn(way string, rounds int) SharingCurve {
	run := s.ways[way]
	p := report.SharingPanel{Capacity: s.capacity, From: run.first,
		Name: fmt.Sprintf("%s: %s, throughput %.2f of temporal", way, s.capacity, s.throughput(run))}
	for _, alone := range s.solo {
		p.For += time.Duration(rounds) * alone
	}
	p.Jobs = heldByJobs(s.tasks, s.programs, run.holds, s.planner.Page)
	return SharingCurve{Name: s.figure, Panel: p}
}

// arena is that of one job.
func (b *sharingBench) arena(device string, n trained) (graph.Bytes, error) {
	key := arenaKey{n.model, n.optimizer, n.batch}
	b.mutex.Lock()
	size, known := b.arenas[key]
	b.mutex.Unlock()
	if known {
		return size, nil
	}
	tasks, err := task.Load([]string{n.model}, n.settings())
	if err != nil {
		return 0, err
	}
	d := sim.New(sharingFacts(device), sim.Options{})
	one, err := planner.Describe(d, planner.Roofline(d.Facts())).FirstRequest(tasks)
	if err != nil {
		return 0, err
	}
	one.Policy = "none-live"
	planned, err := planner.Schedule(b.ctx, one)
	if err != nil {
		return 0, err
	}
	size = planned.Arena
	b.mutex.Lock()
	b.arenas[key] = size
	b.mutex.Unlock()
	return size, nil
}

// largestWithin returns the network with the largest batch whose arena is at most some bytes. Arenas grow in a line.
func (b *sharingBench) largestWithin(device string, n trained, limit graph.Bytes) (trained, error) {
	low, high := trained{}, trained{}
	var at, next graph.Bytes
	n.batch = 8
	for {
		size, err := b.arena(device, n)
		if err != nil {
			return n, err
		}
		if size <= limit {
			low, at = n, size
		} else {
			high, next = n, size
		}
		switch {
		case high.batch > 0 && low.batch == 0 && n.batch == 1:
			return n, fmt.Errorf("%s needs %s with a batch of 1, and is to have %s", n.model, size, limit)
		case high.batch > 0 && high.batch-low.batch == 1:
			return low, nil
		case high.batch == 0:
			n.batch = max(n.batch+1, int(float64(n.batch)*min(16, float64(limit)/float64(size)*1.02)))
		case low.batch == 0:
			n.batch = max(1, n.batch/2)
		default:
			share := float64(limit-at) / float64(next-at)
			n.batch = low.batch + int(share*float64(high.batch-low.batch))
			n.batch = min(max(n.batch, low.batch+1), high.batch-1)
		}
	}
}
