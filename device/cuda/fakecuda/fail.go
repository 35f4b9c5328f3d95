package fakecuda

import (
	"fmt"
	"maps"

	"tensile/device/cuda"
)

// Failure is a call that fails instead of doing anything. A code from 700 to 719 is sticky: every later call fails,
// too.
type Failure struct {
	Call int // counted from 1, all calls that Calls counts together; 0: none
	Code cuda.Code
}

// Codes of CUDA that the device has no names for.
const (
	invalidHandle     cuda.Code = 400
	unjoinedCapture   cuda.Code = 904
	captureIsolation  cuda.Code = 905
	alreadyRegistered cuda.Code = 712
	notRegistered     cuda.Code = 713
	misalignedAddress cuda.Code = 716
	notSupported      cuda.Code = 801
)

type failing struct {
	calls map[string]int
	count int // of all calls

	failed *cuda.Error // what was found while operations were carried out; the next synchronizing call returns it
	dead   *cuda.Error // what every call returns
}

// Calls returns how often each function of CUDA's driver was called so far. A Watch counts as a cuEventSynchronize;
// Next, Run and Now count as nothing.
func (d *Driver) Calls() map[string]int { return maps.Clone(d.calls) }

// begin counts a call and returns the error with which it fails at once.
func (d *Driver) begin(call string) error {
	d.calls[call]++
	d.count++
	if d.dead != nil {
		return refuse(call, d.dead.Code, "%s", d.dead.Text)
	}
	if d.count != d.options.Fail.Call {
		return nil
	}
	code := d.options.Fail.Code
	err := refuse(call, code, "call %d fails as it was told to", d.count)
	if code >= 700 && code < 720 {
		d.dead = err
	}
	return err
}

// hasFailed reports whether the call that is to fail has been made.
func (d *Driver) hasFailed() bool { return d.options.Fail.Call > 0 && d.count >= d.options.Fail.Call }

// enter is begin for calls that need a device.
func (d *Driver) enter(call string) error {
	if err := d.begin(call); err != nil {
		return err
	}
	switch {
	case d.isClosed:
		return refuse(call, cuda.InvalidContext, "the driver is closed")
	case !d.isOpen:
		return refuse(call, cuda.NotInitialized, "Open comes before every other call")
	case !d.isEntered:
		return refuse(call, cuda.InvalidContext, "Enter comes before every call that needs a device")
	}
	return nil
}

// found keeps the first thing that has gone wrong on the device. Nothing is carried out after it.
func (d *Driver) found(code cuda.Code, format string, args ...any) {
	if d.failed == nil {
		d.failed = refuse("", code, format, args...)
	}
}

// settle ends a synchronizing call: what was found is its error, and that of every later call.
func (d *Driver) settle(call string) error {
	if d.dead == nil {
		d.dead = d.failed
	}
	if d.dead == nil {
		return nil
	}
	return refuse(call, d.dead.Code, "%s", d.dead.Text)
}

func refuse(call string, code cuda.Code, format string, args ...any) *cuda.Error {
	return &cuda.Error{Call: call, Code: code, Text: fmt.Sprintf(format, args...)}
}
