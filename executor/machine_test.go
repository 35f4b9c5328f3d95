package executor

import (
	"strings"
	"testing"

	"tensile/device"
	"tensile/plan"
	"tensile/program"
)

// Events that cannot be are bugs of the device or of the host.
func TestEventsThatCannotBe(t *testing.T) {
	p := &program.Program{Plan: &plan.Plan{}}
	for _, k := range []program.Kind{program.Kernel, program.Out, program.Kernel} {
		add(&p.Body, k, p.Plan)
	}
	events := map[string]device.Event{
		"of another section":    {Section: &p.Prologue},
		"of a past iteration":   {Section: &p.Body, Iteration: -1},
		"of one not yet issued": {Section: &p.Body, Iteration: 2},
		"out of range":          {Section: &p.Body, Index: 3},
		"of a negative index":   {Section: &p.Body, Index: -1},
		"a second time":         {Section: &p.Body, Index: 0},
	}
	for name, e := range events {
		t.Run(name, func(t *testing.T) {
			m := NewMachine("lenet", 0, 3)
			m.Step(0, Input{Program: p})
			m.Step(1, Input{Event: &device.Event{Section: &p.Body, Index: 0, End: 1}})
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, "executor: ") || !strings.Contains(text, "job lenet") {
					t.Errorf("panic %q, want one that names package and job", text)
				}
			}()
			m.Step(2, Input{Event: &e})
		})
	}
}
