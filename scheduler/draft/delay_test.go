package draft

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// TestDelays shows that a plan with delays (TENSILE, III-B) begins each copy of a swap when it was booked, by the
// planned times of the steps; that nothing else differs from the plan without; and that its program holds the copies
// so.
func TestDelays(t *testing.T) {
	held, early := 0, 0
	for seed := range uint64(500) {
		s, style := randomJobs(rand.New(rand.NewPCG(seed, 68)), 1)
		style.Delays = true
		d := s.Drafts(GraphOrder, style)[0]
		SwapFreely([]*Draft{d}, 0)
		booked := map[time.Duration]bool{} // begins of copies, in one iteration
		for _, x := range d.gaps {
			if x.kind == swap && !x.Arrival() {
				booked[(x.send+d.period)%d.period], booked[x.fetch%d.period] = true, true
			}
		}
		p, _ := proven(t, seed, d)
		d.style.Delays = false
		plain, _ := proven(t, seed, d)
		for i, m := range p.Moves {
			next := d.latency[d.steps[(m.After+1)%len(d.steps)].Op]
			switch begin := d.end(m.After) + m.Delay; {
			case m.Delay == 0:
			case m.Delay >= next:
				t.Fatalf("seed %d: a delay of %v, beyond the next step, which takes %v", seed, m.Delay, next)
			case booked[(begin+d.period)%d.period]:
				held++
			case m.Delay == next-1 && d.start(m.After+1) > d.end(m.After):
				early++ // the next step waits for an input
			default:
				t.Fatalf("seed %d: %s of storage %d after %d begins at %v, which is not booked", seed, m.Kind,
					m.Storage, m.After,
					begin)
			}
			if m.Delay = 0; m != plain.Moves[i] {
				t.Fatalf("seed %d: move %d is %+v with delays and %+v without", seed, i, m, plain.Moves[i])
			}
		}
		checkHolds(t, seed, d, p)
	}
	if t.Logf("%d copies held, %d begin early", held, early); held < 1000 || early == 0 {
		t.Errorf("%d copies held, %d begin early", held, early)
	}
}

// checkHolds compares the delays of a plan's moves with the holds of its commands, which come in the same order.
func checkHolds(t *testing.T, seed uint64, d *Draft, p *plan.Plan) {
	t.Helper()
	l, err := compile.Place(d.g, p, d.align)
	if err != nil {
		t.Fatal(err)
	}
	var holds []time.Duration
	for _, c := range compile.Compile(d.g, p, l, compile.Options{}).Body.Commands {
		if c.Kind == program.In || c.Kind == program.Out {
			holds = append(holds, c.Hold)
		}
	}
	for _, m := range p.Moves {
		if m.Kind == plan.Drop {
			continue
		}
		if m.Delay != holds[0] {
			t.Fatalf("seed %d: a delay of %v is a hold of %v", seed, m.Delay, holds[0])
		}
		holds = holds[1:]
	}
}
