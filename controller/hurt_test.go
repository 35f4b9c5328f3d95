package controller

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"tensile/models/graphtest"
	"tensile/wire"
)

// A job of which what is stored is damaged is held: its executor goes on with it and its memory stays reserved, while
// the other jobs are planned for without it; whatever becomes of it then, it is in nobody's way.
func TestHurtIsHeld(t *testing.T) {
	for _, fate := range []struct {
		line, input string
		state       wire.JobState
	}{
		{"status executor=x1 number=2 life=1 orders=1", "a id=1 state=running epoch=1 arena=1024 iteration=4",
			wire.JobRunning},
		{"status executor=x1 number=2 life=1 orders=1", "a id=1 state=finished epoch=1", wire.JobFinished},
		{"report job=a executor=x1 epoch=1 iteration=4 times=3", "", wire.JobRunning},
		{"ended executor=x1 why=killed", "", wire.JobQueued},
		{"stop job=a", "", wire.JobStopping},
		{"ask verb=park job=a place=disk", "", wire.JobParking},
		{"ask verb=budget budget=4096", "", wire.JobRunning},
	} {
		s := &script{graph: graphtest.New(rand.New(rand.NewPCG(1, 1)), graphtest.Options{Ops: 3})}
		play := func(line, input string) {
			command, args, err := datadriven.ParseLine(line)
			if err != nil {
				t.Fatal(err)
			}
			answer := s.command(t, &datadriven.TestData{Cmd: command, CmdArgs: args, Input: input})
			t.Logf("%s\n%s", line, answer)
		}
		play("new budget=8192", "")
		play("submit", "a restarts=2 checkpoints\nb restarts=2 checkpoints")
		play("planned ticket=1", "a arena=1024\nb arena=1024")
		play("status executor=x1 number=1 life=1 orders=1", "a id=1 state=running epoch=1 arena=1024")
		play("status executor=x2 number=1 life=1 orders=1", "b id=2 state=running epoch=1 arena=1024")
		s.hurt = map[string]string{"a": "its graph cannot be read"}
		play("restart", "")
		if why := s.m.Records()[0].Reason; !strings.HasPrefix(why, "is held: its graph cannot be read; ") {
			t.Errorf("job a: %q", why)
		}
		if got := s.m.ownDomain.reservedBytes(); got != 1024 {
			t.Errorf("%s is reserved for job a", got)
		}
		if o := s.orders["x1"]; len(o.Jobs) != 1 || o.Jobs[0].Epoch != 1 || o.Leave {
			t.Errorf("the orders of job a's executor are %+v", o)
		}
		play(fate.line, fate.input)
		play("submit", "c")
		if s.asked == nil || len(s.asked.Jobs) != 2 || s.asked.Jobs[0].Spec.Name != "b" {
			t.Errorf("after %s plans are asked for %+v", fate.line, s.asked)
		}
		play("tick after=2m", "")
		for _, r := range s.m.Records() {
			if r.Spec.Name == "a" && r.State != fate.state && r.State != wire.JobUnknown {
				t.Errorf("after %s job a is %s: %s", fate.line, r.State, r.Reason)
			}
		}
	}
}
