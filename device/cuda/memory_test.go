package cuda_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tensile/cost"
	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/internal/fakecuda"
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
	if full.Arena != 32*graph.MiB || full.Free >= 24*graph.MiB || full.Free < 23*graph.MiB || full.Total != facts.Memory {
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
	driver := fakecuda.New(fakecuda.Options{})
	d, err := cuda.New(driver, cuda.Options{Pinned: 3 * graph.MiB})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	g := devicetest.Tiny()
	var jobs []device.Job
	for err == nil {
		var j device.Job
		if j, err = d.Open(g, device.JobOptions{Name: "job"}); err == nil {
			jobs = append(jobs, j)
		}
	}
	if !strings.Contains(err.Error(), "the limit is 3MiB") || len(jobs) < 10 {
		t.Errorf("after %d jobs: %v", len(jobs), err)
	}
	if err := jobs[0].Close(); err != nil {
		t.Fatal(err)
	}
	before := driver.Calls()["cuMemHostRegister"]
	if jobs[0], err = d.Open(g, device.JobOptions{Name: "another"}); err != nil {
		t.Error(err)
	}
	if after := driver.Calls()["cuMemHostRegister"]; after != before {
		t.Errorf("memory was pinned %d times for a job in the place of another", after-before)
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
