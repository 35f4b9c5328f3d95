package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"tensile/device/cuda"
	"tensile/device/devicetest"
	"tensile/internal/fakecuda"
	"tensile/program"
)

// failing trains a little on a driver, with a snapshot on the way, and closes everything. It returns all errors.
func failing(t *testing.T, driver cuda.Driver) (err error) {
	d, err := cuda.New(driver, cuda.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, err = train(t, d, keepAll(t, d), 1); err != nil {
		return err
	}
	_, err = train(t, d, devicetest.Build(t, d, devicetest.Tiny(), devicetest.Swapped(devicetest.Tiny()),
		program.Options{Poison: true}), 3)
	return err
}

// TestFailures fails each call of the driver in a short training, once as an error of that call alone and once for good.
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
	step := 1
	if testing.Short() || raceEnabled {
		step = 17
	}
	for _, code := range []cuda.Code{cuda.InvalidValue, cuda.OutOfMemory, cuda.LaunchFailed} {
		for k := 1; k <= calls; k += step {
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
			named := strings.Contains(err.Error(), "op ") || strings.Contains(err.Error(), " of ")
			if e.Call == "cuLaunchKernel" && !named {
				t.Errorf("call %d fails: the error names no op: %v", k, err)
			}
		}
	}
}
