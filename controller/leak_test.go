//go:build linux

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"tensile/controller"
	"tensile/device/sim"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/nettest"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/bus"
)

// shop is a controller on a server, with executors of simulated devices, all in this process.
type shop struct {
	t         *testing.T
	dir       string
	server    *bus.Server
	client    *bus.Conn
	graph     *graph.Graph
	executors sync.WaitGroup
	over      chan string // jobs that are over, once or more often
}

const kept = 10

func openShop(t *testing.T, share bool) *shop {
	facts, err := cost.Device("v100")
	must(t, err)
	s := &shop{t: t, dir: t.TempDir(), over: make(chan string, 1000)}
	s.graph, err = nettest.Build("mlp")
	must(t, err)
	s.server, err = bus.Start(bus.Options{Dir: s.dir, Listen: "127.0.0.1:0"})
	must(t, err)
	t.Cleanup(s.server.Close)
	d := sim.New(facts, sim.Options{})
	t.Cleanup(func() { d.Close() })
	conn, err := s.server.Connect(t.Context(), bus.ConnOptions{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		config := controller.Config{Policy: "none-live", NoReplan: true, KeepJobs: kept, OneExecutor: share}
		o := controller.Options{Config: config, PlanDevice: planner.Describe(d, planner.Roofline(facts)),
			Ready: func() { close(ready) },
			Launcher: controller.Launcher{Launch: func(name string, gone func(string, []string)) error {
				s.executors.Go(func() { gone(s.executor(ctx, name, sim.New(facts, sim.Options{})), nil) })
				return nil
			}}}
		if err := controller.Run(ctx, conn, o); !errors.Is(err, context.Canceled) {
			t.Errorf("the controller has ended: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		s.executors.Wait()
		conn.Close()
	})
	<-ready
	if share { // one that stays when it has no work
		d := sim.New(facts, sim.Options{})
		lab := make(chan string)
		go func() { lab <- s.executor(ctx, "lab", d) }()
		t.Cleanup(func() {
			cancel()
			<-lab
		})
	}
	s.client, err = bus.Connect(t.Context(), s.server.Credentials(bus.Client), bus.ConnOptions{})
	must(t, err)
	t.Cleanup(func() { s.client.Close() })
	_, err = s.client.Watch(t.Context(), wire.RecordKey("*"), func(_ string, value []byte) {
		if r, err := wire.DecodeAs[wire.Record](value); err == nil && r.State.Over() {
			s.over <- r.Spec.Name
		}
	})
	must(t, err)
	return s
}

// executor trains until the controller lets it leave, and says how it has ended.
func (s *shop) executor(ctx context.Context, name string, d *sim.Device) string {
	defer d.Close()
	conn, err := bus.Connect(ctx, s.server.Credentials(bus.Executor(name)), bus.ConnOptions{})
	if err == nil {
		defer conn.Close()
		err = agent.Run(ctx, agent.Options{Executor: name, Device: d, Host: agent.HostMaker(d), Bus: conn})
	}
	return fmt.Sprint(err)
}

// train submits jobs of names that nobody had, ten at a time, and waits until all are over and forgotten as far as they
// are to be.
func (s *shop) train(from, to int) {
	s.t.Helper()
	const together = 10
	for first := from; first < to; first += together {
		packed, err := wire.Pack(s.graph, nil)
		must(s.t, err)
		q := wire.Request{Verb: wire.Submit, Graphs: []wire.Packed{packed}}
		waits := make(map[string]bool)
		for i := range min(together, to-first) {
			name := fmt.Sprint("job", first+i)
			waits[name] = true
			q.Specs = append(q.Specs, wire.Spec{Name: name, Model: "mlp", Graph: s.graph.Digest(), Iterations: 20})
		}
		s.ask(q)
		for len(waits) > 0 {
			select {
			case name := <-s.over:
				delete(waits, name)
			case <-s.t.Context().Done():
				s.t.Fatalf("%v are not over", waits)
			}
		}
	}
	s.executors.Wait()
	if n := len(s.ask(wire.Request{Verb: wire.Jobs}).Jobs); n != kept {
		s.t.Errorf("%d jobs are remembered, want %d", n, kept)
	}
}

func (s *shop) ask(q wire.Request) wire.Answer {
	s.t.Helper()
	data, err := s.client.Ask(s.t.Context(), wire.ControlSubject, wire.Encode(q))
	must(s.t, err)
	a, err := wire.DecodeAs[wire.Answer](data)
	must(s.t, err)
	if a.Error != "" {
		s.t.Fatal(a.Error)
	}
	return a
}

// usage is what a process has.
type usage struct {
	goroutines, descriptors, files int
	heap, disk                     int64
}

func (s *shop) usage() (u usage) {
	s.t.Helper()
	for range 3 { // finalizers free more
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.heap, u.goroutines = int64(m.HeapAlloc), runtime.NumGoroutine()
	open, err := os.ReadDir("/proc/self/fd")
	must(s.t, err)
	u.descriptors = len(open)
	err = filepath.WalkDir(s.dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed just now
		}
		if err == nil && !e.IsDir() {
			u.files++
			if info, err := e.Info(); err == nil {
				u.disk += info.Size()
			}
		}
		return err
	})
	must(s.t, err)
	return u
}

// TestNothingIsLeft trains jobs, and then many more: goroutines, descriptors and files go back to where they were.
// Memory and disk do but for a margin for each job: caches and blocks of the store, which it compacts at 2 MiB, and,
// where each job has an executor of its own, the account of that, which the server never forgets.
func TestNothingIsLeft(t *testing.T) {
	long.Only(t)
	const few = 30
	many := long.Or(40, 200)
	for _, test := range []struct {
		name       string
		share      bool
		heap, disk int64 // bytes for each job
	}{
		{"share", true, 24 << 10, 12 << 10},
		{"isolate", false, 64 << 10, 12 << 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openShop(t, test.share)
			s.train(0, few)
			before := s.usage()
			s.train(few, few+many)
			after := s.usage()
			for after.goroutines > before.goroutines && t.Context().Err() == nil { // some are ending
				after = s.usage()
			}
			t.Logf("before %+v", before)
			t.Logf("after  %+v", after)
			if after.goroutines > before.goroutines || after.descriptors > before.descriptors ||
				after.files > before.files {
				t.Errorf("%d jobs leave goroutines, descriptors or files", many)
			}
			if n := (after.heap - before.heap) / int64(many); n > test.heap {
				t.Errorf("each job leaves %d bytes of memory, more than %d", n, test.heap)
			}
			if n := (after.disk - before.disk) / int64(many); n > test.disk {
				t.Errorf("each job leaves %d bytes on disk, more than %d", n, test.disk)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
