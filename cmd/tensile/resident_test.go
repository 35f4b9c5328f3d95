//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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

	"tensile/graph"
	"tensile/internal/lifelock"
	"tensile/lease/process"
	"tensile/report"
)

// looksVariable names a file. The process of a lease then looks at the memory of the executors whenever one of them
// says that it has given pages back, and writes there what it saw.
const looksVariable = "TENSILE_TEST_LOOKS"

// looks is what the executors took of the machine.
type looks struct {
	Looks int           `json:"looks"`
	Most  graph.Bytes   `json:"most"` // resident in all arenas together
	Mean  graph.Bytes   `json:"mean"`
	Each  []graph.Bytes `json:"each"`  // the most in an arena
	Other graph.Bytes   `json:"other"` // the most in the executors' processes beside arenas: Home, heaps, libraries

	sum graph.Bytes
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
	path string
	mu   sync.Mutex
	pids []int // of executors, in the order in which they came
	seen looks
}

// watchLease is the command lease with a watcher before it.
func watchLease(path string) {
	var folder string
	var linger time.Duration
	f := flag.NewFlagSet("lease", flag.ExitOnError)
	f.StringVar(&folder, "folder", "", "")
	f.DurationVar(&linger, "linger", 0, "")
	f.Parse(os.Args[2:])
	_, err := lifelock.Take(folder, "watcher")
	if _, held := errors.AsType[*lifelock.HeldError](err); held {
		return // executors may start one each
	}
	orDie(err)
	orDie(os.Chdir(folder)) // paths of sockets are short
	orDie(os.MkdirAll("inner", 0o700))
	orDie(os.Symlink("../clients", "inner/clients"))
	listener, err := net.Listen("unix", "socket")
	orDie(err)
	w := &watcher{path: path}
	go func() {
		for {
			conn, err := listener.Accept()
			orDie(err)
			go w.serve(conn.(*net.UnixConn))
		}
	}()
	orDie(process.Serve(context.Background(), "inner", process.ServeOptions{Linger: linger}))
}

// orDie ends the process of a lease that cannot go on.
func orDie(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve passes on what an executor and the lease say to each other.
func (w *watcher) serve(client *net.UnixConn) {
	defer client.Close()
	raw, err := client.SyscallConn()
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
	server, err := net.Dial("unix", "inner/socket")
	for ; err != nil; server, err = net.Dial("unix", "inner/socket") {
		time.Sleep(time.Millisecond) // it is about to listen
	}
	go func() {
		defer client.Close()
		for lines := bufio.NewReader(server); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			w.mu.Lock()
			client.Write(line) // the lease finds out if it has ended
			w.mu.Unlock()
		}
	}()
	defer server.Close()
	for lines := bufio.NewReader(client); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var said struct {
			Told struct{ Passed json.RawMessage }
		}
		if err := json.Unmarshal(line, &said); err == nil && said.Told.Passed != nil {
			w.look()
		}
		if _, err := server.Write(line); err != nil {
			return
		}
	}
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
	w.seen.sum += arenas
	w.seen.Most, w.seen.Other = max(w.seen.Most, arenas), max(w.seen.Other, others)
	w.seen.Mean = w.seen.sum / graph.Bytes(w.seen.Looks)
	text, err := json.Marshal(w.seen)
	if err == nil {
		err = os.WriteFile(w.path, text, 0o600)
	}
	orDie(err)
}

// residentOf is how much of the machine an executor takes, for an arena that is backed in part, and else. The mappings
// of that are the only ones for which large pages are advised, as long as no checkpoints are taken.
func residentOf(pid int) (arena, other graph.Bytes) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return 0, 0 // it has ended
	}
	defer file.Close()
	var rss graph.Bytes
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "Rss:":
			kib, _ := strconv.Atoi(words[1])
			rss = graph.Bytes(kib) * graph.KiB
		case "VmFlags:":
			if slices.Contains(words, "hg") {
				arena += rss
			} else {
				other += rss
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

// Two processes take no more of the machine for their arenas than the lease has, which is the least memory that plan
// says they need, whenever one has given pages back. Their bits are those of jobs with an arena each.
func TestResidentTogether(t *testing.T) {
	jobs := slices.Concat(strings.Fields(*residentJobs), []string{"--no-calibrate", "--json"})
	options := func(o ...string) []string { return append(slices.Clone(jobs), o...) }
	plan := slices.Clone(jobs)
	if i := slices.Index(plan, "--iterations"); i >= 0 {
		plan = slices.Delete(plan, i, i+2)
	}
	var planned report.Plan
	document(t, tensile(t, t.TempDir(), slices.Concat([]string{"plan"}, plan, []string{"--memory-sharing", "gates"})...),
		&planned)
	least := planned.Gates.Least
	run := func(environment []string, o ...string) *report.Training {
		p := startWith(t, t.TempDir(), environment, append([]string{"run"}, options(append(o, "--checkpoint",
			"none")...)...)...)
		text := p.ends(0, "")
		p.nothing()
		var r report.Training
		document(t, []byte(text), &r)
		return &r
	}
	path := filepath.Join(t.TempDir(), "looks")
	shared := run([]string{looksVariable + "=" + path}, "--memory-sharing", "gates", "--budget",
		fmt.Sprint(int64(least)))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var seen looks
	document(t, text, &seen)
	if seen.Most > least || seen.Most < least/2 {
		t.Errorf("%s are resident at most, want up to the %s that are needed, and not much less", seen.Most, least)
	}
	if iterations := shared.Jobs[0].Iterations * len(shared.Jobs); seen.Looks < 2*iterations {
		t.Errorf("%d looks in %d iterations are too few to show much", seen.Looks, iterations)
	}
	if *residentAlone {
		alone := run(nil, "--memory-sharing", "none", "--policy", "none-live")
		for i, j := range alone.Jobs {
			if *j.Digest != *shared.Jobs[i].Digest {
				t.Errorf("job %s has the bits %s, and %s with an arena of its own", j.Job, *shared.Jobs[i].Digest, *j.Digest)
			}
		}
	}
	var arenas graph.Bytes
	for _, j := range shared.Jobs {
		arenas += j.VanillaLive
		t.Logf("%s: arena %s, %s without a plan", j.Job, j.Arena, j.VanillaLive)
	}
	t.Logf("resident: at most %s of the %s that are needed, %.3f, on average %s, in %d looks; in each arena at most %s; "+
		"the least is %.3f of arenas without a plan; beside arenas at most %s", seen.Most, least,
		float64(seen.Most)/float64(least), seen.Mean, seen.Looks, seen.Each, float64(least)/float64(arenas), seen.Other)
}
