package correct

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// reported are ops of two kinds that take a line of what was predicted, give or take some, and every tenth of them was
// interrupted.
func reported(n int, factors map[string]float64, summand time.Duration, noise float64) []Report {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	reports := make([]Report, n)
	for i := range reports {
		r := &reports[i]
		r.Class = []string{"linear", "relu"}[rng.IntN(2)]
		r.Predicted = time.Duration(20e3 * math.Pow(100, rng.Float64()))
		r.Measured = time.Duration((factors[r.Class]*float64(r.Predicted) +
			float64(summand)) * math.Exp(noise*rng.NormFloat64()))
		if i%10 == 9 {
			r.Measured *= 20
		}
	}
	return reports
}

// Factors and summand are found from 32 reports, whatever some outliers say: of a board that is throttled, of a host
// that launches faster or slower, of both.
func TestFit(t *testing.T) {
	const us = time.Microsecond
	for _, test := range []struct {
		name         string
		linear, relu float64
		summand      time.Duration
	}{
		{"as predicted", 1, 1, 0},
		{"throttled", 3, 1, 0},
		{"a faster host", 1, 1, -12 * us},
		{"a slower host", 1, 1, 20 * us},
		{"a faster device and host", 0.5, 0.7, -5 * us},
	} {
		factors := map[string]float64{"linear": test.linear, "relu": test.relu}
		l := Fit(reported(32, factors, test.summand, 0.02))
		var before, after float64
		for _, r := range reported(500, factors, test.summand, 0) {
			if now := l.Apply(r.Class, r.Predicted); float64(r.Measured) < 5*float64(now) { // no outlier
				before += math.Abs(math.Log(float64(r.Predicted)/float64(r.Measured))) / 450
				after += math.Abs(math.Log(float64(now)/float64(r.Measured))) / 450
			}
		}
		t.Logf("%s: %+v, error %.3f, corrected %.3f", test.name, l, before, after)
		if after > 0.08 {
			t.Errorf("%s: the corrected error is %.3f, it was %.3f", test.name, after, before)
		}
	}
}

// A summand tells what a factor can not.
func TestFitNeedsTheSummand(t *testing.T) {
	reports := reported(200, map[string]float64{"linear": 1, "relu": 1}, -14*time.Microsecond, 0)
	l := Fit(reports)
	if d := l.Summand + 14*time.Microsecond; d.Abs() > 2*time.Microsecond || math.Abs(l.Factor-1) > 0.05 {
		t.Errorf("got %+v, want a factor of 1 and -14us", l)
	}
}

// Nothing reported changes nothing, one report moves a part of the way, and no latency gets to 0.
func TestFitOfFew(t *testing.T) {
	l := Fit(nil)
	if got := l.Apply("relu", 50); got != 50 {
		t.Errorf("no reports make 50 %d", got)
	}
	l = Fit([]Report{{Class: "relu", Predicted: 1000, Measured: 3000}, {Class: "relu", Measured: 5}})
	if got := l.Apply("relu", 1000); got <= 1100 || got >= 3000 {
		t.Errorf("one report of 3000 makes 1000 %d", got)
	}
	if got := l.Apply("linear", 1000); got <= 1000 || got >= 2500 {
		t.Errorf("one report of another kind makes 1000 %d", got)
	}
	low := Line{Summand: -time.Second}
	if got := low.Apply("relu", 80); got != 10 {
		t.Errorf("a summand of -1s makes 80 %d, want 10", got)
	}
}

func TestToward(t *testing.T) {
	a := Line{}
	b := Line{Summand: 40, Factor: 4, Classes: map[string]float64{"relu": 9}}
	for _, test := range []struct {
		part               float64
		linear, relu, none time.Duration
	}{{0, 100, 100, 100}, {0.5, 220, 320, 220}, {1, 440, 940, 440}} {
		l := a.MoveToward(b, test.part)
		if x, y := l.Apply("linear", 100), l.Apply("relu", 100); x != test.linear || y != test.relu {
			t.Errorf("%v of the way: 100 is %d and %d, want %d and %d", test.part, x, y, test.linear, test.relu)
		}
		// of other ops: what is known of relu stays
		kept := l.MoveToward(Line{Summand: l.Summand, Factor: l.Factor}, 0.5)
		if got, want := kept.Classes["relu"], l.Classes["relu"]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%v of the way: the factor %v became %v", test.part, want, got)
		}
	}
}

// After 32 reports p95 is what one in twenty takes longer than, whatever was predicted of it.
func TestFitSpread(t *testing.T) {
	for _, noise := range []float64{0.02, 0.3} {
		var late, n float64
		for draw := range 50 {
			rng := rand.New(rand.NewPCG(2, uint64(draw)))
			reports := make([]Report, 332)
			for i := range reports {
				p := time.Duration(20e3 * math.Pow(100, rng.Float64()))
				reports[i] = Report{Class: "relu", Predicted: p, P95: p * 11 / 10,
					Measured: time.Duration(1.5 * float64(p) * math.Exp(noise*rng.NormFloat64()))}
			}
			l := Fit(reports[:32])
			for _, r := range reports[32:] {
				if n++; r.Measured > l.P95("relu", r.Predicted, r.P95) {
					late++
				}
			}
		}
		t.Logf("noise %v: %.3f took no longer than p95", noise, 1-late/n)
		if share := late / n; share < 0.03 || share > 0.07 {
			t.Errorf("noise %v: %.3f took longer than their p95", noise, share)
		}
	}
	l := Fit([]Report{{Class: "relu", Predicted: 10, P95: 20, Measured: 11}})
	if l.Spread != 0 {
		t.Errorf("one report makes the spread %v", l.Spread)
	}
}
