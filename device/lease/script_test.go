package lease

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestMachine plays the scripts in testdata to a machine, by datadriven. The commands, whose answer is what the
// machine says and then who holds how much:
//
//	new [capacity=N] [overtakes=N] [still=DURATION]   a new machine
//	join job=J base=N peak=N [weight=N]
//	first | next | last | only job=J rest=N hold=N     a Want of that group of an iteration
//	again job=J hold=N                                 the newest Want once more
//	passed job=J hold=N
//	leave job=J
//	rejoin job=J base=N peak=N hold=N [seniority=N rest=N]
//	capacity pages=N [number=N]
//	wait time=DURATION                                 and a tick
//	show                                               all that the machine knows
//
// Further arguments ask=N and seen=N stand for other numbers than the right ones.
func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, s.command)
	})
}

type script struct {
	m     *Machine
	now   time.Duration
	asks  map[Job]int64
	seen  map[Job]int64
	wants map[Job]Want
}

func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	number := func(key string) (n int) {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &n)
		}
		return n
	}
	duration := func(key string) (v time.Duration) {
		if d.HasArg(key) {
			var text string
			d.ScanArgs(t, key, &text)
			var err error
			if v, err = time.ParseDuration(text); err != nil {
				t.Fatal(err)
			}
		}
		return v
	}
	var name string
	if d.HasArg("job") {
		d.ScanArgs(t, "job", &name)
	}
	job := Job(name)
	ask := func() int64 {
		s.asks[job]++
		if d.HasArg("ask") {
			return int64(number("ask"))
		}
		return s.asks[job]
	}
	var in Input
	switch d.Cmd {
	case "new":
		s.m = NewMachine(Options{Overtakes: number("overtakes"), Still: duration("still")})
		s.now, s.asks, s.seen, s.wants = 0, map[Job]int64{}, map[Job]int64{}, map[Job]Want{}
		if d.HasArg("capacity") {
			in.Capacity = &Capacity{Pages: number("capacity")}
		}
	case "join":
		in.Join = &Join{Job: job, Ask: ask(), Base: number("base"), Peak: number("peak"), Weight: number("weight")}
	case "first", "next", "last", "only":
		in.Want = &Want{Job: job, Ask: ask(), First: d.Cmd == "first" || d.Cmd == "only",
			Last: d.Cmd == "last" || d.Cmd == "only", Rest: number("rest"), Hold: number("hold")}
		s.wants[job] = *in.Want
	case "again":
		w := s.wants[job]
		w.Hold = number("hold")
		in.Want = &w
	case "passed":
		in.Passed = &Passed{Job: job, Seen: s.seen[job], Hold: number("hold")}
		if d.HasArg("seen") {
			in.Passed.Seen = int64(number("seen"))
		}
	case "leave":
		in.Leave = &Leave{job}
	case "rejoin":
		in.Rejoin = &Rejoin{Join: Join{Job: job, Ask: 1, Base: number("base"), Peak: number("peak")},
			Hold: number("hold"), Rest: number("rest"), Seniority: int64(number("seniority"))}
		s.asks[job], s.seen[job] = 1, 1
	case "capacity":
		in.Capacity = &Capacity{Pages: number("pages"), Number: int64(number("number"))}
	case "wait":
		s.now += duration("time")
	case "show":
		return s.m.String()
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	in.Now = s.now
	var b strings.Builder
	for _, out := range s.m.Step(in) {
		fmt.Fprintln(&b, out)
		if out.Kind == Grant {
			s.seen[out.Job] = out.Ask
		}
	}
	total, _, _ := s.m.sums()
	fmt.Fprintf(&b, "%d of %d:", total, s.m.capacity)
	for _, k := range s.m.joined {
		fmt.Fprintf(&b, " %s %d", k.Job, k.hold)
	}
	return b.String() + "\n"
}
