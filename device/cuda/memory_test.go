package cuda_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// TestOutOfMemory reserves more than the device has, and less afterwards.
func TestOutOfMemory(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	facts.Memory = 64 * graph.MiB
	d := open(t, fakecuda.New(fakecuda.Options{Facts: facts}))
	defer closed(t, d)
	g := devicetest.Tiny()
	first, err := d.Open(g, device.JobOptions{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Reserve(40 * graph.MiB); err != nil {
		t.Fatal(err)
	}
	second, err := d.Open(g, device.JobOptions{Name: "second"})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Reserve(32 * graph.MiB)
	full, ok := errors.AsType[*device.OutOfMemoryError](err)
	if !ok {
		t.Fatalf("got error %v, want an OutOfMemoryError", err)
	}
	if full.Arena != 32*graph.MiB || full.Free >= 24*graph.MiB || full.Free < 23*graph.MiB ||
		full.Total != facts.Memory {
		t.Errorf("got %+v", full)
	}
	for _, word := range []string{"second", "32MiB", "64MiB", "cuMemAlloc"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %q", word, err)
		}
	}
	if err := second.Reserve(16 * graph.MiB); err != nil {
		t.Errorf("a smaller arena: %v", err)
	}
	for _, j := range []device.Job{first, second} {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPinned bounds the host memory that is pinned. What jobs give back is used again.
func TestPinned(t *testing.T) {
	const most = 100
	g := devicetest.Tiny()
	_, kept := program.HostSlots(g)
	driver := fakecuda.New(fakecuda.Options{})
	d, err := cuda.New(driver, cuda.Options{Pinned: most * kept})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	var jobs []device.Job
	for err == nil {
		var j device.Job
		if j, err = d.Open(g, device.JobOptions{Name: "job"}); err == nil {
			jobs = append(jobs, j)
		}
	}
	if limit := (most * kept).String(); !strings.Contains(err.Error(), "the limit is "+limit) || len(jobs) != most {
		t.Errorf("after %d jobs: %v", len(jobs), err)
	}
	first := jobs[0]
	keep := keepAll(t, d)
	p := keep.Program()
	if err := errors.Join(first.Load(keep), first.Reserve(p.Arena)); err != nil {
		t.Fatal(err)
	}
	if err := first.Load(swapped(t, d)); err == nil ||
		!strings.Contains(err.Error(), "load a program of job job: pin ") {
		t.Errorf("a program that spills more than can be pinned: %v", err)
	}
	first.Issue(&p.Prologue, 0, len(p.Prologue.Commands), 0, true) // of the program that is bound still
	for left := len(p.Prologue.Commands); left > 0; {
		events, err := d.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		left -= len(events)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	before := driver.Calls()["cuMemHostRegister"]
	if jobs[0], err = d.Open(g, device.JobOptions{Name: "another"}); err != nil {
		t.Error(err)
	}
	if after := driver.Calls()["cuMemHostRegister"]; after != before {
		t.Errorf("memory was pinned %d times for a job in place of another", after-before)
	}
}

// TestSpilledInHome has a job give back in Home what its plan copies out, and go on.
func TestSpilledInHome(t *testing.T) {
	d, err := cuda.New(fakecuda.New(fakecuda.Options{}), cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	j, err := d.Open(devicetest.Tiny(), device.JobOptions{Name: "job"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	home, p := d.Pinned(), swapped(t, d)
	for range 2 {
		if err := errors.Join(j.Load(p), j.Reserve(p.Program().Arena)); err != nil {
			t.Fatal(err)
		}
		if got := d.Pinned(); got <= home {
			t.Errorf("%s are pinned for a plan that copies out, %s in Home", got, home)
		}
		if err := j.Reserve(0); err != nil || d.Pinned() != home {
			t.Errorf("%s are pinned in Home, want %s, error %v", d.Pinned(), home, err)
		}
	}
}

// TestSnapshotOutlivesDevice reads a snapshot when job and device are closed, and releases it twice.
func TestSnapshotOutlivesDevice(t *testing.T) {
	d := fake(t, 1)
	g := devicetest.Tiny()
	j, err := d.Open(g, device.JobOptions{Name: "job"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := j.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	gone, err := j.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan struct{})
	go func() {
		gone.Release()
		close(freed)
	}()
	<-freed
	w := g.Storages[slices.IndexFunc(g.Storages, func(s graph.Storage) bool { return s.Name == "w1" })]
	fill(s.Content(w.ID), 1)
	want := slices.Clone(s.Content(w.ID))
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	closed(t, d)
	if got := s.Content(w.ID); len(got) != 30 || !slices.Equal(got, want) {
		t.Errorf("the snapshot holds %v, want %v", got, want)
	}
	s.Release()
	s.Release()
}

// A job is closed when ops of it are on a stream, behind which others wait for the loader: its memory is given back
// when those have ended.
func TestCloseBehindLoader(t *testing.T) {
	b := graph.NewBuilder("behind")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{4})
	sum := b.Persistent("w", graph.Parameter, graph.Shape{4}, graph.Init{})
	for _, name := range []string{"first", "second"} {
		sum = b.Op(name, graph.Add, graph.Attrs{}, sum, sum)[0]
	}
	b.Output(b.Op("last", graph.Add, graph.Attrs{}, sum, x)[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	driver := fakecuda.New(fakecuda.Options{Seed: 1})
	d := open(t, driver)
	defer closed(t, d)
	s := sit(t, d, devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{}))
	ended := past{}
	s.j.Issue(&s.p.Prologue, 0, len(s.p.Prologue.Commands), 0, true)
	ended.wait(t, d, s, &s.p.Prologue, 0)
	before := driver.Calls()["cuLaunchKernel"]
	s.j.Issue(&s.p.Body, 0, len(s.p.Body.Commands), 0, false)
	if n := driver.Calls()["cuLaunchKernel"] - before; n != 2 {
		t.Errorf("%d ops are on the stream, want the 2 that need no input", n)
	}
	if err := s.j.Close(); err != nil {
		t.Error(err)
	}
}
