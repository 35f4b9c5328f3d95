//go:build linux

package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/wire"
)

var chaosSeed = flag.Uint64("chaos-seed", 0, "the first seed of TestChaos")

// chaosEach is how many seeds a cluster goes through, one after the other.
const chaosEach = 10

// chaosKind is a cluster that mishaps come to, and what jobs train there.
type chaosKind struct {
	name       string
	flags      []string // of the controller
	small      bool     // its disk is small, so that it can be filled
	torch      bool     // its scripts are of PyTorch
	job        []string // flags beyond those of the small job
	iterations int
	every      int // iterations between two checkpoints
	mishaps    []string
}

// anywhere are mishaps of every cluster.
var anywhere = []string{"kill executor", "kill executors", "kill controller", "kill controller and executor",
	"step clock", "stop executor", "stop controller", "damage store", "damage journal", "damage checkpoint"}

var chaosKinds = []chaosKind{
	{name: "arenas", flags: []string{"--memory-sharing", "none"}, iterations: 1000, every: 50,
		mishaps: append([]string{"kill script", "kill sidecar", "stop sidecar"}, anywhere...)},
	{name: "gates", flags: []string{"--memory-sharing", "gates"}, job: []string{"--batch", "32", "--image", "28"},
		iterations: 80, every: 10,
		mishaps: append([]string{"kill lease", "kill lease and executor", "stop lease"}, anywhere...)},
	{name: "full disk", flags: []string{"--memory-sharing", "none"}, small: true, iterations: 1000, every: 50,
		mishaps: append([]string{"fill disk", "fill disk and kill executor"}, anywhere...)},
	{name: "torch", flags: []string{"--memory-sharing", "none"}, torch: true, iterations: 1000, every: 50,
		mishaps: []string{"kill sidecar", "stop sidecar", "stop controller", "kill controller", "damage store",
			"damage journal"}},
}

// chaosTurn are the kinds of clusters in their order, then again from the first on: scripts of PyTorch take long.
var chaosTurn = []int{0, 1, 2, 0, 1, 2, 0, 1, 2, 3}

// Processes of controller, executors, leases and sidecars meet mishaps that follow from a seed, at points in the
// progress of jobs: they are killed or stopped, their disk is full, what they have written is damaged while they are
// away. After each seed all jobs have the bits of one that nothing disturbs, no executor is left, and no bytes are
// reserved. At the end of a cluster no process is left.
//
// A wall clock that steps is one that processes which begin later have: none reads it twice (wire/clock).
func TestChaos(t *testing.T) {
	long.Only(t)
	seeds := long.Rounds(0, 200) // make soak has 2,000
	came := new(tally)
	calms := make([]*calm, len(chaosKinds))
	t.Run("clusters", func(t *testing.T) {
		for first := *chaosSeed; first < *chaosSeed+seeds; first += chaosEach {
			i := chaosTurn[first/chaosEach%uint64(len(chaosTurn))]
			if calms[i] == nil {
				calms[i] = becalmed(t, chaosKinds[i].iterations, chaosKinds[i].job...)
			}
			t.Run(fmt.Sprintf("%s-%d", chaosKinds[i].name, first), func(t *testing.T) {
				t.Parallel()
				chaosOf(t, &chaosKinds[i], first, min(first+chaosEach, *chaosSeed+seeds), calms[i], came)
			})
		}
	})
	t.Logf("%d seeds: %s", seeds, came)
	for i, k := range chaosKinds {
		for _, what := range k.mishaps {
			if calms[i] != nil && seeds >= 200 && came.count[what] == 0 {
				t.Errorf("in %d seeds there was no %q", seeds, what)
			}
		}
	}
}

// tally counts mishaps that came to something.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func (t *tally) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = make(map[string]int)
	}
	t.count[what]++
}

func (t *tally) String() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(t.count)) {
		all = append(all, fmt.Sprint(t.count[what], " ", what))
	}
	return strings.Join(all, ", ")
}

// chaos is a cluster that goes from mishap to mishap.
type chaos struct {
	*cluster
	kind     *chaosKind
	came     *tally
	disk     string // that is small, or ""
	rng      *rand.Rand
	seed     uint64
	families []*family         // controllers, the newest last
	log      *printed          // of the newest controller
	saved    map[string]string // files of the jobs of this seed
	script   *scriptJob        // a script among these, or nil
	alone    string            // what a script of PyTorch prints that is not joined
	hurt     map[string]bool   // jobs of this seed of which a checkpoint was damaged
	stopped  []*os.Process     // processes that were stopped
	clockOff time.Duration     // how far the wall clock is off
}

type scriptJob struct {
	name    string
	sidecar *family
	process *os.Process // of the script; nil: it ends by itself
	says    *printed    // by lines, of which an iteration prints one
	want    string      // what it prints alone
}

// printed is what a command prints, read as it comes, so that it waits for no reader.
type printed struct {
	mu    sync.Mutex
	lines []string
	end   chan struct{} // is closed when there is no more
}

func (h *printed) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// listen reads what a command prints from now on.
func (p *family) listen() *printed {
	h := &printed{end: make(chan struct{})}
	go func() {
		defer close(h.end)
		for p.lines.Scan() {
			h.mu.Lock()
			h.lines = append(h.lines, stamp.ReplaceAllString(p.lines.Text(), ""))
			h.mu.Unlock()
		}
	}()
	p.wait = sync.OnceValue(func() error {
		<-h.end
		return p.command.Wait()
	})
	return h
}

func chaosOf(t *testing.T, k *chaosKind, first, end uint64, want *calm, came *tally) {
	dir := t.TempDir()
	c := &chaos{kind: k, came: came}
	if k.small {
		c.disk = needs.SmallDisk(t, 16<<20)
		dir = c.disk
	}
	c.cluster = &cluster{budget: 8 * graph.MiB, state: filepath.Join(dir, "state"), files: t.TempDir(),
		patient: k.small}
	c.cluster.family, c.log = &family{t: t, dir: dir}, new(printed)
	defer func() {
		for _, p := range c.stopped {
			p.Signal(syscall.SIGCONT)
		}
		if t.Failed() {
			log := c.log.all()
			t.Logf("seed %d has failed: go test ./cmd/tensile -run Chaos -chaos-seed=%d -long=1 runs it alone, "+
				"-chaos-seed=%d -long=%d as here; the controller's log:\n%s", c.seed, c.seed, first, c.seed-first+1,
				strings.Join(log[max(0, len(log)-60):], "\n"))
		}
	}()
	c.begin()
	for c.seed = first; c.seed < end; c.seed++ {
		start := time.Now()
		did := c.meets(want)
		t.Logf("seed %d: %s (%v)", c.seed, strings.Join(did, ", "), time.Since(start).Round(time.Second/10))
		if t.Failed() {
			return
		}
	}
	c.signal(syscall.SIGTERM)
	if err := c.wait(); err != nil {
		t.Errorf("the controller ends with %v; stderr: %s", err, &c.stderr)
	}
	for _, f := range c.families {
		f.vanishes()
	}
}

// begin starts a controller, whose log is kept.
func (c *chaos) begin() {
	c.t.Helper()
	args := append([]string{"controller", "--state", c.state, "--budget", fmt.Sprint(int64(c.budget)), "--threshold",
		"100", "--keep", "4", "--silence", "3s"}, c.kind.flags...)
	c.cluster.family = start(c.t, c.dir, args...)
	c.families = append(c.families, c.cluster.family)
	c.line("^controller of ")
	c.log = c.listen()
}

// killController ends the controller, and does what is to be done meanwhile, before the next one begins.
func (c *chaos) killController(meanwhile func()) {
	c.signal(syscall.SIGKILL)
	c.wait()
	meanwhile()
	c.free() // a controller does not start on a full disk
	c.begin()
}

// meets submits jobs, lets mishaps come to them, and wants them to end as if there had been none. It returns what
// happened.
func (c *chaos) meets(want *calm) (did []string) {
	c.t.Helper()
	c.rng = rand.New(rand.NewPCG(c.seed, 38))
	c.saved, c.script, c.hurt = make(map[string]string), nil, make(map[string]bool)
	var mishaps []string
	for range 1 + c.rng.IntN(3) {
		mishaps = append(mishaps, c.kind.mishaps[c.rng.IntN(len(c.kind.mishaps))])
	}
	flags := append([]string{"--checkpoint", fmt.Sprint(c.kind.every, "it"), "--restarts", "20"}, c.kind.job...)
	for i := range 1 + c.rng.IntN(3) {
		name := fmt.Sprintf("s%d.%d", c.seed, i)
		c.saved[name] = c.saves(name, fmt.Sprint(c.kind.iterations), flags...)
	}
	if name := fmt.Sprintf("s%d.script", c.seed); c.kind.torch {
		c.script = c.joinTorch(name)
	} else if slices.ContainsFunc(mishaps, isOfScript) {
		c.script = &scriptJob{name: name}
		var pid int
		c.script.sidecar, pid = c.joinJob(name)
		c.script.process = processOf(pid)
		c.script.says = c.script.sidecar.listen()
	}
	for _, what := range mishaps {
		at := c.point()
		did = append(did, c.mishap(what)+" "+at)
	}
	c.resume()
	names := slices.Sorted(maps.Keys(c.saved))
	if s := c.script; s != nil {
		if s.process != nil {
			s.process.Kill() // it may have ended
		}
		s.sidecar.wait()
		if got := strings.Join(s.says.all(), "\n") + "\n"; s.want != "" && got != s.want {
			c.t.Errorf("the script printed\n%s\nwant\n%s\nstderr:\n%s", got, s.want, &s.sidecar.stderr)
		}
		names = append(names, s.name)
	}
	jobs := c.until("all jobs to be over", func(jobs map[string]wire.Record) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !jobs[name].State.Over() })
	})
	for name, path := range c.saved {
		c.whole(jobs[name], path, want)
		os.Remove(path)
	}
	c.until("all executors to leave, and all bytes to be free", func(jobs map[string]wire.Record) bool {
		for _, r := range jobs {
			if r.Claim > 0 || len(r.Held) > 0 {
				return false
			}
		}
		return len(executors(c.t, c.dir)) == 0
	})
	return did
}

// joinTorch joins a script of PyTorch, and waits until it trains.
func (c *chaos) joinTorch(name string) *scriptJob {
	c.t.Helper()
	python := needs.Torch(c.t)
	script, err := filepath.Abs(torchScript)
	if err != nil {
		c.t.Fatal(err)
	}
	packages, err := filepath.Abs("../../python")
	if err != nil {
		c.t.Fatal(err)
	}
	s := &scriptJob{name: name, want: c.torchAlone(python)}
	s.sidecar = startWith(c.t, c.t.TempDir(), []string{"PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=1"}, "join", "--state", c.state, "--name", name, "--memory", "512KiB",
		"--", python, script, "cnn")
	s.says = s.sidecar.listen()
	for len(s.says.all()) == 0 {
		select {
		case <-s.says.end:
			c.t.Fatalf("the script ends: %v; stderr:\n%s", s.sidecar.wait(), &s.sidecar.stderr)
		case <-time.After(pause):
		}
	}
	return s
}

// torchAlone is what the script prints that is not joined.
func (c *chaos) torchAlone(python string) string {
	c.t.Helper()
	if c.alone == "" {
		out, stderr, status := trainTorch(c.t, python, torchScript, "cnn", "plain")
		if status != 0 {
			c.t.Fatalf("alone: status %d, stderr:\n%s", status, stderr)
		}
		c.alone = out
	}
	return c.alone
}

// resume lets processes go on that were stopped, and frees the disk.
func (c *chaos) resume() {
	for _, p := range c.stopped {
		p.Signal(syscall.SIGCONT) // it may have been killed
	}
	c.stopped = nil
	c.free()
}
