package controller

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/datadriven"

	"tensile/models/graphtest"
)

// A job whose executor is lost may not fit alone any more: the budget has become smaller since it was admitted.
func TestLostIsFresh(t *testing.T) {
	s := &script{graph: graphtest.New(rand.New(rand.NewPCG(1, 1)), graphtest.Options{Ops: 3})}
	for _, c := range []struct{ line, input string }{
		{"new budget=8192", ""}, {"submit", "a restarts=2"}, {"planned ticket=1", "a arena=4096"},
		{"status executor=x1 number=1 orders=1", "a id=1 state=running epoch=1 arena=4096"}, {"restart budget=2048",
			""},
		{"planned ticket=1 why=too_much", ""}, {"ended executor=x1 why=killed", ""}, {"tick after=3s", ""},
	} {
		command, args, err := datadriven.ParseLine(c.line)
		if err != nil {
			t.Fatal(err)
		}
		answer := s.command(t, &datadriven.TestData{Cmd: command, CmdArgs: args, Input: c.input})
		t.Logf("%s\n%s", c.line, answer)
	}
	if p := s.asked; len(p.Jobs) != 1 || p.Admitted != 0 || !p.Jobs[0].Unchecked {
		t.Errorf("what is asked for is %+v", p)
	}
}
