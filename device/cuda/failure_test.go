package cuda_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/internal/long"
	"tensile/plan/compile"
)

// failing trains a little on a driver, gets memory for a snapshot, and closes everything. It returns all errors.
func failing(t *testing.T, driver cuda.Driver) (err error) {
	d, err := cuda.New(driver, cuda.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	g := devicetest.Tiny()
	plan := devicetest.Build(t, d, g, devicetest.Swapped(g), compile.Options{Poison: true})
	if _, err = train(t, d, plan, 2); err != nil {
		return err
	}
	j, err := d.Open(g, device.JobOptions{Name: "second"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	s, err := j.Snapshot()
	if err != nil {
		return err
	}
	s.Release()
	return nil
}

// TestFailures fails each call of the driver in a short training, once for that call alone and once for good.
func TestFailures(t *testing.T) {
	whole := fakecuda.New(fakecuda.Options{})
	if err := failing(t, whole); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, n := range whole.Calls() {
		calls += n
	}
	t.Logf("%d calls: %v", calls, whole.Calls())
	step := long.Or(17, 1)
	for k := 1; k <= calls; k += step {
		for _, code := range []cuda.Code{cuda.InvalidValue, cuda.LaunchFailed} {
			driver := fakecuda.New(fakecuda.Options{Fail: fakecuda.Failure{Call: k, Code: code}})
			err := failing(t, driver)
			e, ok := errors.AsType[*cuda.Error](err)
			if !ok || e.Code != code || !strings.Contains(err.Error(), e.Call) {
				t.Errorf("call %d fails with %d: got error %v", k, code, err)
				continue
			}
			if strings.Contains(err.Error(), "left at Close") {
				t.Errorf("call %d fails with %d: %v", k, code, err)
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			if slices.Contains(put, e.Call) && !named.MatchString(first) {
				t.Errorf("call %d fails: the error names no op or copy: %s", k, first)
			}
		}
	}
}

// put are the calls that put something on a stream, and named is what their errors begin with.
var (
	put = []string{"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD32Async", "cuStreamWaitEvent",
		"cuEventRecord"}
	named = regexp.MustCompile(`^open the cuda device: measure the link: |` +
		`^cuda: job job, iteration [0-9]+: (op|in of|out of|poison of) [a-z0-9. ]+: cu`)
)
