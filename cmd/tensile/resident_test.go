//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tensile/device/lease/process"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/observe/report"
	"tensile/wire"
)

// looksVariable names a file. The process of a lease then looks at the memory of the executors whenever one of them
// says that it has given pages back, and writes there what it saw.
const looksVariable = "TENSILE_TEST_LOOKS"

// looks is what the executors took of the machine.
type looks struct {
	Looks int           `json:"looks"`
	Most  graph.Bytes   `json:"most"`  // resident in all arenas together
	Each  []graph.Bytes `json:"each"`  // the most in an arena
	Other graph.Bytes   `json:"other"` // the most in the executors' processes beside arenas: Home, heaps, libraries
	Sum   graph.Bytes   `json:"sum"`   // over looks
}

func init() {
	command = func() {
		if path := os.Getenv(looksVariable); path != "" && len(os.Args) > 1 && os.Args[1] == "lease" {
			watchLease(path)
			return
		}
		main()
	}
}

// watcher stands between executors and their lease. While it looks, no grant gets through: what it sees then is at most
// what the lease has granted.
type watcher struct {
	net.Listener
	path string
	mu   sync.Mutex
	pids []int // of executors, in the order in which they came
	seen looks
}

// watchLease is the command lease with a watcher before it.
func watchLease(path string) {
	var name string
	var linger time.Duration
	f := flag.NewFlagSet("lease", flag.ExitOnError)
	f.StringVar(&name, "name", "", "")
	f.DurationVar(&linger, "linger", 0, "")
	for _, unused := range []string{"log", "log-format", "log-level"} {
		f.String(unused, "", "")
	}
	f.Parse(os.Args[2:])
	listener, err := process.Listen(name)
	if _, held := errors.AsType[*process.HeldError](err); held {
		return // executors may start one each
	}
	orDie(err)
	w := &watcher{Listener: listener, path: path}
	if text, err := os.ReadFile(path); err == nil { // of one that was killed
		_ = json.Unmarshal(text, &w.seen)
		w.seen.Each = nil
	}
	process.Serve(context.Background(), name, w, process.ServeOptions{Linger: linger})
}

// orDie ends the process of a lease that cannot go on.
func orDie(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Accept returns the next connection, on which all is seen.
func (w *watcher) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	orDie(err)
	raw.Control(func(fd uintptr) {
		peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		orDie(err)
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Contains(w.pids, int(peer.Pid)) {
			w.pids, w.seen.Each = append(w.pids, int(peer.Pid)), append(w.seen.Each, 0)
		}
	})
	return &watched{Conn: conn, lines: bufio.NewReader(conn), w: w}, nil
}

// watched is the connection of an executor, read by whole lines.
type watched struct {
	net.Conn
	lines *bufio.Reader
	rest  []byte // of a line
	w     *watcher
}

func (c *watched) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		line, err := c.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		var said struct {
			Told struct{ Passed json.RawMessage }
		}
		if err := json.Unmarshal(line, &said); err == nil && said.Told.Passed != nil {
			c.w.look()
		}
		c.rest = line
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *watched) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.Conn.Write(b)
}

// look sums what is resident.
func (w *watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var arenas, others graph.Bytes
	for i, pid := range w.pids {
		arena, other := residentOf(pid)
		arenas, others = arenas+arena, others+other
		w.seen.Each[i] = max(w.seen.Each[i], arena)
	}
	w.seen.Looks++
	w.seen.Sum += arenas
	w.seen.Most, w.seen.Other = max(w.seen.Most, arenas), max(w.seen.Other, others)
	text, err := json.Marshal(w.seen)
	orDie(err)
	orDie(os.WriteFile(w.path+".new", text, 0o600))
	orDie(os.Rename(w.path+".new", w.path)) // it may be killed
}

// residentOf is how much of the machine an executor takes, for an arena that is backed in part, and else. An arena is
// what large pages are advised for from an address on where one can begin; other memory begins behind a guard page.
func residentOf(pid int) (arena, other graph.Bytes) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return 0, 0 // it has ended
	}
	defer file.Close()
	var from, to, end uint64 // of a mapping, and of the last part of an arena
	var rss graph.Bytes
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "Rss:":
			kib, _ := strconv.Atoi(words[1])
			rss = graph.Bytes(kib) * graph.KiB
		case "VmFlags:":
			const large = 2 << 20
			if slices.Contains(words, "hg") && (from%large == 0 || from == end) {
				arena, end = arena+rss, to
			} else {
				other += rss
			}
		default:
			if !strings.HasSuffix(words[0], ":") {
				fmt.Sscanf(words[0], "%x-%x", &from, &to)
			}
		}
	}
	return arena, other
}

var (
	residentJobs = flag.String("resident-jobs", "mlp lenet --batch 32 --iterations 20",
		"what TestResidentTogether trains: arguments of tensile run")
	residentAlone = flag.Bool("resident-alone", true, "compare with the bits of jobs with an arena each")
)

// seenAt is what the process of a lease has seen.
func seenAt(t *testing.T, path string) (seen looks) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document(t, text, &seen)
	return seen
}

// Two processes take no more of the machine for their arenas than the lease has, which is the least memory that plan
// says they need, whenever one has given pages back. Their bits are those of jobs with an arena each.
func TestResidentTogether(t *testing.T) {
	long.Only(t)
	jobs := slices.Concat(strings.Fields(*residentJobs), []string{"--no-calibrate", "--json"})
	without := func(flag string) []string {
		if i := slices.Index(jobs, flag); i >= 0 {
			return slices.Concat(jobs[:i], jobs[i+2:])
		}
		return jobs
	}
	var planned report.Plan
	document(t, tensile(t, t.TempDir(), slices.Concat([]string{"plan"}, without("--iterations"),
		[]string{"--memory-sharing", "gates"})...), &planned)
	least := planned.Gates.Least
	run := func(environment, jobs []string, o ...string) *report.Training {
		p := startWith(t, t.TempDir(), environment, slices.Concat([]string{"run"}, jobs, o,
			[]string{"--checkpoint", "none"})...)
		text := p.ends(0, "")
		p.nothing()
		var r report.Training
		document(t, []byte(text), &r)
		return &r
	}
	path := filepath.Join(t.TempDir(), "looks")
	shared := run([]string{looksVariable + "=" + path}, jobs, "--memory-sharing", "gates", "--budget",
		fmt.Sprint(int64(least)))
	seen := seenAt(t, path)
	if seen.Most > least || seen.Most < least/2 {
		t.Errorf("%s are resident at most, want up to the %s that are needed, and not much less", seen.Most, least)
	}
	if iterations := shared.Jobs[0].Iterations * len(shared.Jobs); seen.Looks < 2*iterations {
		t.Errorf("%d looks in %d iterations are too few to show much", seen.Looks, iterations)
	}
	if *residentAlone {
		alone := run(nil, without("--budget"), "--memory-sharing", "none", "--policy", "none-live")
		for i, j := range alone.Jobs {
			if *j.Digest != *shared.Jobs[i].Digest {
				t.Errorf("job %s has the bits %s, and %s with an arena of its own", j.Job, *shared.Jobs[i].Digest,
					*j.Digest)
			}
		}
	}
	var arenas graph.Bytes
	for _, j := range shared.Jobs {
		arenas += j.VanillaLive
		t.Logf("%s: arena %s, %s without a plan", j.Job, j.Arena, j.VanillaLive)
	}
	t.Logf("resident: at most %s of the %s that are needed, %.3f, on average %s, in %d looks; in each arena at most "+
		"%s; the least is %.3f of arenas without a plan; beside arenas at most %s", seen.Most, least,
		float64(seen.Most)/float64(least), seen.Sum/graph.Bytes(seen.Looks), seen.Looks, seen.Each,
		float64(least)/float64(arenas), seen.Other)
}

// Executors that share memory by gates are killed at random, one or all, and the process of their lease, and the
// controller. All jobs come to the bits of one that nothing disturbs, and the arenas that were there whenever a process
// had given pages back never took more of the machine than the budget.
func TestClusterGatesKills(t *testing.T) {
	long.Only(t)
	n := int(long.Rounds(0, 2)) // kills of each way
	iterations := 40 + 50*n
	c := startCluster(t, 16*graph.MiB)
	path := c.submitMedium("calm", iterations)
	r := c.in(wire.JobFinished, "calm")
	c.end()
	want := &calm{iterations, read(t, path), r.Result.Losses}
	rng := rand.New(rand.NewPCG(*killSeed, 23))
	kinds := []string{"executor", "executors", "lease", "lease and executor", "controller"}
	rng.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
	for _, sharing := range []string{"gates", "zico", "waterwave"} {
		var kills []string
		for range n { // in turn, so that each kind is among those of the three
			kills, kinds = append(kills, kinds[0]), append(kinds[1:], kinds[0])
		}
		t.Run(sharing, func(t *testing.T) { clusterGatesKills(t, sharing, kills, rng, want) })
	}
}

// submitMedium submits a job that survives many kills, and returns where it saves its weights.
func (c *cluster) submitMedium(name string, iterations int) string {
	path := filepath.Join(c.files, name+".safetensors")
	c.tell(append(append([]string{"submit"}, medium...), "--name", name, "--iterations", fmt.Sprint(iterations),
		"--save", path, "--checkpoint", "10it", "--restarts", "50")...)
	return path
}

func clusterGatesKills(t *testing.T, sharing string, kills []string, rng *rand.Rand, want *calm) {
	path := filepath.Join(t.TempDir(), "looks")
	t.Setenv(looksVariable, path)
	flags := []string{"--memory-sharing", sharing, "--threshold", "100"}
	c := startCluster(t, 8*graph.MiB, flags...)
	saved := make(map[string]string)
	for _, name := range []string{"a", "b", "c"} {
		saved[name] = c.submitMedium(name, want.iterations)
	}
	counts := make(map[string]int)
	for _, what := range kills {
		before := c.jobs()
		jobs := c.until("a job to train", func(now map[string]wire.Record) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(name string) bool {
				return now[name].State == wire.JobRunning && now[name].Iteration > before[name].Iteration
			}) || countActive(now) == 0
		})
		if countActive(jobs) == 0 {
			break
		}
		more := rng.IntN(5)
		c.until("a kill anywhere in an iteration", func(map[string]wire.Record) bool {
			more--
			return more < 0
		})
		counts[what]++
		victims := executors(t, c.dir)
		names := slices.Sorted(maps.Keys(victims))
		if strings.HasPrefix(what, "lease") {
			for _, pid := range leases(t, c.state) {
				syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		if strings.HasSuffix(what, "executor") && len(names) > 0 {
			names = names[rng.IntN(len(names)):][:1]
		}
		if strings.Contains(what, "executor") {
			for _, name := range names {
				syscall.Kill(victims[name], syscall.SIGKILL)
			}
		}
		if what == "controller" {
			c.signal(syscall.SIGKILL)
			c.ends(-1, "")
			c = c.restart(flags...)
		}
	}
	jobs := c.until("all jobs to be over", func(jobs map[string]wire.Record) bool { return countActive(jobs) == 0 })
	starts := int64(0)
	for name, path := range saved {
		c.whole(jobs[name], path, want)
		starts += jobs[name].Incarnation
	}
	seen := seenAt(t, path)
	if seen.Most > c.budget || seen.Most == 0 {
		t.Errorf("the arenas of the executors took %s at most, of %s", seen.Most, c.budget)
	}
	t.Logf("seed %d: %d incarnations, after kills of %v; the arenas took at most %s of %s, in %d looks", *killSeed,
		starts, counts, seen.Most, c.budget, seen.Looks)
	c.end()
}

// leases returns the processes of leases that executors of a controller have started.
func leases(t *testing.T, state string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		text, _ := os.ReadFile(path) // it may have ended
		args := strings.Split(string(text), "\x00")
		if len(args) > 3 && args[1] == "lease" && strings.HasPrefix(args[3], leaseLogs(state)+"/") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}
