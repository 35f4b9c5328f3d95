package executor

import (
	"strings"
	"testing"

	"tensile/device"
	"tensile/plan"
	"tensile/plan/program"
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

// Of two who want to be told of iterations, the one who wants more is told of all of them, whoever asks last.
func TestTracedTwice(t *testing.T) {
	p := &program.Program{Plan: &plan.Plan{}}
	add(&p.Body, program.Kernel, p.Plan)
	m := NewMachine("lenet", 0, 6)
	m.Step(0, Input{Program: p})
	m.Step(0, Input{Trace: 4})
	m.Step(0, Input{Trace: 1})
	told := 0
	for i := range 6 {
		for _, out := range m.Step(1, Input{Event: &device.Event{Section: &p.Body, Iteration: i, End: 1}}) {
			if out.Trace != nil {
				told++
			}
		}
	}
	if told != 4 {
		t.Errorf("told of %d iterations, want 4", told)
	}
}
