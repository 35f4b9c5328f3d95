package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// crowd trains two jobs side by side, one of which takes a snapshot and gets a larger arena and another program in the
// end, closes the other in the middle of a body, and the device in the middle of the first one's. It returns all
// errors.
func crowd(t *testing.T, driver cuda.Driver) (err error) {
	d, err := cuda.New(driver, cuda.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	g := devicetest.Tiny()
	r := &trainer{g: g, outputs: outcome{}}
	left := make(map[device.Job]int)
	issue := func(j device.Job, s *program.Section, iteration int, drain bool) {
		left[j] += len(s.Commands)
		j.Issue(s, 0, len(s.Commands), iteration, drain)
	}
	wait := func(j device.Job) error {
		for left[j] > 0 {
			events, err := d.Next(t.Context(), nil)
			if err != nil {
				return err
			}
			for _, e := range events {
				left[e.Job]--
			}
		}
		return nil
	}
	swapped := devicetest.Build(t, d, g, devicetest.Swapped(g), compile.Options{Snapshot: true})
	keep := devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{Snapshot: true})
	p := swapped.Program()
	var jobs []device.Job
	for _, name := range []string{"first", "second"} {
		j, err := d.Open(g, device.JobOptions{Name: name, Input: r.input,
			Output: func(int, graph.StorageID, []float32) {}})
		if err != nil {
			return err
		}
		for _, s := range g.Storages {
			if s.Role.Persistent() {
				fill(j.Host(s.ID), uint64(s.ID))
			}
		}
		if err := j.Load(swapped); err != nil {
			return err
		}
		if err := j.Reserve(p.Arena); err != nil {
			return err
		}
		issue(j, &p.Prologue, 0, true)
		issue(j, &p.Body, 0, false)
		jobs = append(jobs, j)
	}
	first, second := jobs[0], jobs[1]
	s, err := first.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	issue(first, &p.Snapshot, 1, true)
	issue(first, &p.Body, 1, false)
	if err := wait(first); err != nil {
		return err
	}
	issue(second, &p.Body, 1, false)
	if err := second.Close(); err != nil {
		return err
	}
	issue(first, &p.Epilogue, 2, true)
	if err := wait(first); err != nil {
		return err
	}
	if err := first.Load(keep); err != nil {
		return err
	}
	p = keep.Program()
	if err := first.Reserve(p.Arena); err != nil {
		return err
	}
	issue(first, &p.Prologue, 2, true)
	issue(first, &p.Body, 2, false)
	return nil
}

// TestFailuresOfMany fails calls of the driver while two jobs train, of which one takes a snapshot and changes its
// program.
func TestFailuresOfMany(t *testing.T) {
	whole := fakecuda.New(fakecuda.Options{})
	if err := crowd(t, whole); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, n := range whole.Calls() {
		calls += n
	}
	step := long.Or(29, 6)
	for k := 1; k <= calls; k += step {
		for _, code := range []cuda.Code{cuda.InvalidValue, cuda.OutOfMemory, cuda.LaunchFailed} {
			driver := fakecuda.New(fakecuda.Options{Seed: uint64(k), Fail: fakecuda.Failure{Call: k, Code: code}})
			err := crowd(t, driver)
			if err == nil {
				made := 0
				for _, n := range driver.Calls() {
					made += n
				}
				if made >= k {
					t.Errorf("call %d of %d fails with %d: got no error", k, made, code)
				}
				continue
			}
			if e, ok := errors.AsType[*cuda.Error](err); !ok || e.Code != code {
				t.Errorf("call %d fails with %d: got error %v", k, code, err)
			}
			if strings.Contains(err.Error(), "left at Close") {
				t.Errorf("call %d fails with %d: %v", k, code, err)
			}
		}
	}
	t.Logf("%d calls", calls)
}
