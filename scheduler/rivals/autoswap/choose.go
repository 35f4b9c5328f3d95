package autoswap

import (
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler/rivals/bayes"
)

// Options are the settings of AutoSwap. The zero value is the recommended one.
type Options struct {
	Score    Score       // "": BO
	Smallest graph.Bytes // variables of no more than that stay; 0: 1 MB, as in the paper; below 0: none stays for that
}

func (o Options) score() Score {
	if o.Score == "" {
		return BO
	}
	return o.Score
}

// check refuses a score that there is none of.
func (o Options) check() error {
	if !slices.Contains(Scores(), o.score()) {
		return fmt.Errorf("autoswap's score %q: choose one of %v, or none for %s", o.Score, Scores(), BO)
	}
	return nil
}

func (o Options) smallest() graph.Bytes {
	if o.Smallest == 0 {
		return 1e6
	}
	return max(0, o.Smallest)
}

// Choice is what AutoSwap decides for an iteration.
type Choice struct {
	Swaps   []Swap        // by access; without those that never leave
	Load    graph.Bytes   // the largest
	Time    time.Duration // of an iteration, predicted
	Weights []float64     // the weights of the mixture, in the order AOA, DOA, WDOA, SWDOA; nil: nothing was picked
}

// Within chooses swaps so that the load is within a limit, at the least time that the score finds. It returns false if
// the load cannot be: see Iteration.Least. count is told of the work in steps of some nanoseconds, and may panic.
func (it *Iteration) Within(limit graph.Bytes, o Options, count func(steps int)) (*Choice, bool) {
	c := newChooser(it, o, count)
	if _, load := it.Peak(); load <= limit {
		return &Choice{Load: load, Time: it.Length()}, true
	}
	if _, load := it.Least(o); load > limit {
		return nil, false
	}
	return c.search(func(order []int) (choice *Choice, cost float64, enough bool) {
		s := c.schedule(c.pick(order, limit))
		if !s.limit(limit) {
			panic(fmt.Sprintf("autoswap: swaps that fit into %v do not as scheduled", limit))
		}
		choice = s.choice()
		return choice, float64(choice.Time), choice.Time <= c.Length()
	}), true
}

// WithoutOverhead chooses swaps so that the load is as low as it gets at no overhead: within the least limit, of those
// that the scores lead to, for which an iteration takes no longer than without swaps (table II).
func (it *Iteration) WithoutOverhead(o Options, count func(steps int)) *Choice {
	c := newChooser(it, o, count)
	return c.search(func(order []int) (choice *Choice, cost float64, enough bool) {
		choice = c.withoutOverhead(order)
		return choice, float64(choice.Load), false
	})
}

// chooser chooses for one iteration.
type chooser struct {
	*Iteration
	*scored // the candidates
	options Options
	count   func(steps int) // work; it may panic to end it
}

func newChooser(it *Iteration, o Options, count func(steps int)) *chooser {
	slot, _ := it.Peak()
	pauses := it.candidates(slot, o.smallest(), make([]bool, len(it.Pauses)))
	count(len(it.Pauses) + 8*len(it.Took) + len(pauses)*len(pauses))
	return &chooser{it, it.score(pauses, it.Load), o, count}
}

// search returns the best choice by the score: for the mixture by Bayesian optimisation, which begins with the four
// scores alone, so that it is no worse than any of them, and goes on with random weights (IV-C).
func (c *chooser) search(choose func(order []int) (choice *Choice, cost float64, enough bool)) *Choice {
	const evaluations = 30 // "after updating about 30 times, the weights become stable"
	var best *Choice
	var least float64
	try := func(weights []float64) (cost float64, enough bool) {
		choice, cost, enough := choose(c.order(c.Iteration, weights))
		if best == nil || cost < least {
			best, least = choice, cost
			best.Weights = weights
		}
		return cost, enough || len(c.pauses) < 2
	}
	if s := c.options.score(); s != BO {
		try(weightsOf(s))
		return best
	}
	var first [][]float64
	for _, s := range basic {
		first = append(first, weightsOf(s))
	}
	low, high := slices.Repeat([]float64{-1}, len(basic)), slices.Repeat([]float64{1}, len(basic))
	bayes.Minimize(low, high, try, bayes.Options{Evaluations: evaluations, First: first})
	return best
}

// pick takes candidates in an order until the load fits, each off the load between its accesses (IV-D). If all of them
// are not enough, the peak has moved, and pauses over the new one follow, those of the highest SWDOA first: below the
// paper's load_min, "we can still achieve it by swapping variables not only from the candidate variables" (VI-B1).
func (c *chooser) pick(order []int, limit graph.Bytes) []bool {
	n := len(c.Took)
	load := newLoad(c.Load)
	picked := make([]bool, len(c.Pauses))
	for _, i := range order {
		if _, most := load.Peak(); most <= limit {
			return picked
		}
		c.count(16)
		picked[i] = true
		load.removePause(&c.Pauses[i], n)
	}
	for {
		slot, most := load.Peak()
		if most <= limit {
			return picked
		}
		more := c.candidates(slot, c.options.smallest(), picked)
		c.count(len(c.Pauses) + 8*n + len(more)*len(more))
		if len(more) == 0 {
			panic(fmt.Sprintf("autoswap: %v in slot %d, with a limit of %v and nothing to swap", most, slot, limit))
		}
		s := c.Iteration.score(more, load.Slots())
		for _, i := range s.order(c.Iteration, weightsOf(SWDOA)) {
			if at, most := load.Peak(); most <= limit || !c.Pauses[i].crosses(at, n) {
				break
			}
			picked[i] = true
			load.removePause(&c.Pauses[i], n)
		}
	}
}

// withoutOverhead returns the choice for the least limit that costs no time. With k candidates picked the load is as
// LOAD' says, above what the selection takes it for where copies are under way. That is a limit for which k are picked
// if less than k do not reach it.
func (c *chooser) withoutOverhead(order []int) *Choice {
	_, before := c.Peak() // the load with those picked so far
	best := &Choice{Load: before, Time: c.Length()}
	n := len(c.Took)
	load := newLoad(c.Load)
	picked := make([]bool, len(c.Pauses))
	for _, i := range order {
		c.count(len(c.Pauses) + 8*n)
		picked[i] = true
		load.removePause(&c.Pauses[i], n)
		s := c.schedule(picked)
		if _, most := peakOf(s.load); most < before && most < best.Load {
			if choice := s.choice(); choice.Time <= c.Length() {
				best = choice
			}
		}
		_, before = load.Peak()
	}
	return best
}

// choice is what a schedule comes to.
func (s *schedule) choice() *Choice {
	_, load := peakOf(s.load)
	return &Choice{Swaps: slices.DeleteFunc(slices.Clone(s.swaps), func(x Swap) bool { return !x.Away() }), Load: load,
		Time: s.time()}
}
