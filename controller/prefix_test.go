package controller

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/datadriven"

	"tensile/models/graphtest"
	"tensile/wire"
)

// A controller may be killed between any two of the writes of a step. Whatever the first of them were, the one after it
// goes on from what is stored: no job is at an executor that had ended and of which all is gone.
func TestEveryPrefix(t *testing.T) {
	type line struct{ line, input string }
	begin := []line{{"new budget=8192", ""}, {"submit", "a restarts=2\nb checkpoints restarts=2"},
		{"planned ticket=1", "a arena=1024\nb arena=1024"},
		{"status executor=x1 number=1 life=1 orders=1", "a id=1 state=running epoch=1 arena=1024"},
		{"status executor=x2 number=1 life=1 orders=1", "b id=2 state=running epoch=1 arena=1024 iteration=3"}}
	for _, last := range []line{{"ended executor=x1 why=killed", ""}, {"ended executor=x2 why=killed", ""},
		{"status executor=x1 number=2 life=1 orders=1 dead=1", ""},
		{"status executor=x2 number=2 life=2 orders=1 dead=1", ""},
		{"ask verb=park job=b place=disk", ""}, {"stop job=a", ""}} {
		for k, steps := 0, 1; k <= steps; k++ {
			s := &script{graph: graphtest.New(rand.New(rand.NewPCG(1, 1)), graphtest.Options{Ops: 3})}
			play := func(l line) {
				command, args, err := datadriven.ParseLine(l.line)
				if err != nil {
					t.Fatal(err)
				}
				s.command(t, &datadriven.TestData{Cmd: command, CmdArgs: args, Input: l.input})
			}
			for _, l := range begin {
				play(l)
			}
			forgotten := make(map[string]bool)
			s.through = func(outputs []Output) []Output {
				steps = len(outputs)
				for _, o := range outputs[:min(k, steps)] {
					if o.Forget != "" {
						forgotten[o.Forget] = true
					}
				}
				return outputs[:min(k, steps)]
			}
			play(last)
			s.through = nil
			s.restart(t)
			for _, r := range s.m.Records() {
				if r.Executor != "" && !r.State.Over() && forgotten[r.Executor] {
					t.Errorf("%s: killed after write %d of %d, job %s is %s at executor %s, of which all is gone",
						last.line, k, steps, r.Spec.Name, r.State, r.Executor)
				}
			}
			for _, name := range s.m.orphans() { // both have ended
				s.now++
				s.do(s.m.Step(s.now, Input{Ended: &ExecutorEnd{Executor: name, Why: "killed"}}))
			}
			play(line{"tick after=2m", ""})
			for _, r := range s.m.Records() {
				if r.State == wire.JobUnknown || len(r.Held) > 0 {
					t.Errorf("%s: killed after write %d of %d, job %s is %s at executor %s and holds %v", last.line, k,
						steps, r.Spec.Name, r.State, r.Executor, r.Held)
				}
			}
		}
	}
}
