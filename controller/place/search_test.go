package place

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/controller/plans"
	"tensile/internal/long"
	"tensile/scheduler/planner"
)

// lab has devices with jobs at random, and what each would answer: no slowdown is below the lower bound.
type lab struct {
	prospects []*Prospect
	answers   []*Promise
}

func newLab(rng *rand.Rand) *lab {
	l := &lab{}
	for range 1 + rng.IntN(6) {
		if n := len(l.prospects); n > 0 && rng.IntN(3) == 0 { // one that is alike
			at := rng.IntN(n)
			l.prospects, l.answers = append(l.prospects, l.prospects[at]), append(l.answers, l.answers[at])
			continue
		}
		p := &Prospect{Facts: len(l.prospects), TimeAlone: time.Duration(1 + rng.IntN(3)), HasWaiting: rng.IntN(8) == 0,
			TooSmall: rng.IntN(10) == 0}
		for range rng.IntN(3) {
			p.Slowdowns = append(p.Slowdowns, 1+rng.Float64())
		}
		for range len(p.Slowdowns) + 1 {
			p.Jobs = append(p.Jobs, plans.Candidate{})
			p.Demands = append(p.Demands, planner.Demand{Weight: 1 + rng.Float64(), Least: 1})
		}
		p.Demands[len(p.Demands)-1].Weight = 1
		a := &Promise{Lacks: 1}
		if !p.TooSmall && rng.IntN(5) > 0 {
			a.Job = &plans.PlannedJob{Slowdown: 1 + rng.Float64(), Alone: p.TimeAlone}
			for i, s := range p.Slowdowns {
				a.Others += p.Demands[i].Weight * (1 + rng.Float64() - s)
			}
		}
		l.prospects, l.answers = append(l.prospects, p), append(l.answers, a)
	}
	return l
}

// Not all devices are asked, and the one that is chosen is that which would be if all were: the first by name of those
// by whose plans the sum of weighted slowdowns grows least.
func TestBestOfFew(t *testing.T) {
	asked, all := 0, 0
	for seed := range uint64(long.Rounds(2000, 100000)) {
		l := newLab(rand.New(rand.NewPCG(seed, 7)))
		s := &Search{Offers: make([]Offer, len(l.prospects)), Weight: 1}
		unknown := append(l.prospects, nil)[rand.New(rand.NewPCG(seed, 8)).IntN(len(l.prospects)+1)]
		whole := &Search{Offers: make([]Offer, len(l.prospects)), Weight: 1}
		for i, p := range l.prospects {
			whole.Offers[i] = Offer{p, l.answers[i]}
			if p != unknown {
				s.Offers[i].Prospect = p
			}
		}
		for next := s.Next(); next >= 0; next = s.Next() {
			if s.Offers[next].Promise != nil {
				t.Fatalf("seed %d: device %d is asked twice", seed, next)
			}
			s.Offers[next] = Offer{l.prospects[next], l.answers[next]}
			asked++
		}
		all += len(l.prospects)
		if got, want := s.Best(), whole.Best(); got != want {
			t.Fatalf("seed %d: device %d is best, of all it is %d", seed, got, want)
		}
	}
	if asked*10 > all*9 {
		t.Errorf("%d of %d devices were asked", asked, all)
	}
}

// A job that fits nowhere waits where it lacks least, but not where it can never run.
func TestNearest(t *testing.T) {
	s := &Search{Offers: []Offer{{Promise: &Promise{Lacks: 7}}, {Promise: &Promise{Lacks: 3, Never: true}}, {},
		{Promise: &Promise{Lacks: 5}}, {Promise: &Promise{Lacks: 5}}, {Promise: &Promise{Lacks: math.MaxInt64}}}}
	if got := s.LeastLacking(); got != 3 {
		t.Errorf("device %d is nearest", got)
	}
	s.Offers = slices.Delete(s.Offers, 3, 6)
	if got := s.LeastLacking(); got != 0 {
		t.Errorf("device %d is nearest of two", got)
	}
	s.Offers = s.Offers[1:]
	if got := s.LeastLacking(); got != -1 {
		t.Errorf("device %d is nearest, and it can never run there", got)
	}
}
