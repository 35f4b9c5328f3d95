package draft

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/scheduler"
)

// slowLimit is Limits.Peak slot by slot: each lane carries what is ready, the earliest first, and the time for
// recomputations goes to storage after storage, with a look at every gap.
func slowLimit(d *Draft, longer time.Duration) graph.Bytes {
	n := len(d.steps)
	latest := func(slot int) time.Duration {
		at := d.period
		for _, step := range d.steps[slot%n:] {
			at -= d.latency[step.Op]
		}
		return at + time.Duration(slot/n)*d.period
	}
	free := d.period - d.starts[0]
	for _, step := range d.steps {
		free -= d.latency[step.Op]
	}
	type load struct {
		bytes graph.Bytes
		from  time.Duration
	}
	carry := func(l cost.Link, by time.Duration, loads []load) float64 {
		var sum float64
		for _, x := range loads {
			sum += float64(x.bytes)
		}
		if l.Rate <= 0 {
			return sum
		}
		least := sum
		for _, x := range loads {
			var before float64
			for _, y := range loads {
				if y.from < x.from {
					before += float64(y.bytes)
				}
			}
			least = min(least, before+float64(l.Rate)/1e9*float64(by-x.from+longer))
		}
		return least
	}
	bound := scheduler.WorkingSetOf(*d.job, 1).Bytes
	for slot, kept := range d.curve.Slots() {
		var outs, ins []load
		type again struct{ bytes, time float64 }
		var remade []again
		var clean, idle float64
		for _, x := range d.gaps {
			at, ok := d.Covers(x, slot)
			if !ok {
				continue
			}
			shift := time.Duration(at/n) * d.period
			bytes := d.bytes[x.storage]
			idle += float64(bytes)
			if d.clean(x) {
				clean += float64(bytes)
			} else {
				outs = append(outs, load{bytes, d.end(x.made) - shift})
			}
			ins = append(ins, load{bytes, -(latest(x.to) - shift)})
			least := math.Inf(1)
			for op := range d.g.Ops {
				if makes := d.makes.list(op); d.pure[op] && slices.Contains(makes, x.storage) && !x.Arrival() {
					var all graph.Bytes
					for _, s := range makes {
						all += d.bytes[s]
					}
					least = min(least, float64(d.latency[op])*float64(bytes)/float64(all))
				}
			}
			if !math.IsInf(least, 1) {
				remade = append(remade, again{float64(bytes), least})
			}
		}
		slices.SortFunc(remade, func(a, b again) int { return cmp.Compare(a.time*b.bytes, b.time*a.bytes) })
		away := min(clean+carry(d.out, latest(slot), outs), carry(d.in, -d.end(slot), ins))
		left := float64(longer + free)
		for _, x := range remade {
			part := 1.0
			if x.time > left {
				part = left / x.time
			}
			away, left = away+part*x.bytes, left-part*x.time
		}
		bound = max(bound, kept-graph.Bytes(min(idle, away)))
	}
	return bound
}

// plain is the plan of a job that keeps all, by which NewLimits finds the order of its ops.
func plain(g *graph.Graph, order []graph.OpID) *plan.Plan {
	p := &plan.Plan{}
	for _, op := range order {
		p.Steps = append(p.Steps, plan.Step{Op: op})
	}
	return p
}

// TestLimits compares the bounds with slow ones, and each direction with the other: the bound at the least time for a
// budget is within the budget, and that of any less time is not.
func TestLimits(t *testing.T) {
	tight := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 71))
		s, _ := unaligned(rng)
		order := EarlyUpdates(s.Request.Jobs[0].Graph)
		d := s.Draft(0, FirstSteps(order), Style{})
		l, err := NewLimits(&s.Request, 0, plain(d.g, order), scheduler.Watch{})
		if err != nil {
			t.Fatal(err)
		}
		_, kept := d.Peak()
		last := kept
		for _, eps := range []float64{0, 0.001, 0.02, 0.1, 0.5, 3, 100} {
			got, want := below(t, l, eps), slowLimit(d, time.Duration(math.Ceil(eps*float64(d.period))))
			const rounding = 16
			if got > want || got < want-rounding {
				t.Fatalf("seed %d, %v times longer: bound %d, want %d", seed, eps, got, want)
			}
			if got > last {
				t.Fatalf("seed %d, %v times longer: bound %d, and %d in less time", seed, eps, got, last)
			}
			last = got
		}
		for range 5 {
			budget := l.floor + graph.Bytes(rng.Int64N(int64(max(1, kept-l.floor))))
			eor := least(t, l, budget)
			ns := 1 / float64(d.period)
			if below(t, l, eor-1+ns) > budget || eor > 1 && below(t, l, max(0, eor-1-2*ns)) <= budget {
				t.Fatalf("seed %d: %d bytes take %v: %d, in less time %d", seed, budget, eor, below(t, l, eor-1+ns),
					below(t, l, eor-1-2*ns))
			}
			if eor > 1 {
				tight++
			}
		}
		if got := least(t, l, l.floor-1); !math.IsInf(got, 1) {
			t.Fatalf("seed %d: less than a step works on takes %v", seed, got)
		}
	}
	if t.Logf("%d budgets take time", tight); tight < 500 {
		t.Errorf("%d budgets take time", tight)
	}
}

// Limits can be stopped.
func TestLimitsStop(t *testing.T) {
	s, _ := unaligned(rand.New(rand.NewPCG(1, 71)))
	p := plain(s.Request.Jobs[0].Graph, GraphOrder(s.Request.Jobs[0].Graph))
	stop := scheduler.Watch{Every: 1, Stop: func(int64) bool { return true }}
	if _, err := NewLimits(&s.Request, 0, p, stop); !errors.Is(err, scheduler.ErrStopped) {
		t.Errorf("stopped at once: %v", err)
	}
	stopped := false
	stop.Stop = func(int64) bool { return stopped }
	l, err := NewLimits(&s.Request, 0, p, stop)
	if err != nil {
		t.Fatal(err)
	}
	stopped = true
	if _, err := l.Peak(0); !errors.Is(err, scheduler.ErrStopped) {
		t.Errorf("stopped in a bound of memory: %v", err)
	}
	if _, err := l.EOR(l.floor); !errors.Is(err, scheduler.ErrStopped) {
		t.Errorf("stopped in a bound of time: %v", err)
	}
}

func below(t *testing.T, l *Limits, eps float64) graph.Bytes {
	t.Helper()
	b, err := l.Peak(eps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func least(t *testing.T, l *Limits, budget graph.Bytes) float64 {
	t.Helper()
	eor, err := l.EOR(budget)
	if err != nil {
		t.Fatal(err)
	}
	return eor
}
