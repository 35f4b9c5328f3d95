package correct

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Report is an op that was measured after it was predicted.
type Report struct {
	Class     string // ops that are likely to be wrong by the same factor: a kind
	Predicted time.Duration
	P95       time.Duration // predicted as well; 0: it was not
	Measured  time.Duration
}

// Line is by what predictions of a device are wrong: measured = factor*predicted + summand. The summand is what each op costs on
// this host beside what it was predicted with, and below zero where launches are faster; each class may have a factor of its own.
// The zero value leaves predictions as they are.
type Line struct {
	Summand time.Duration
	Factor  float64            // of classes of which nothing is known; 0: 1
	Classes map[string]float64 // instead, by class
	Spread  float64            // the logarithm of p95 over p50, relative to what was predicted; 0: 1
}

// least is the part of a predicted latency, scaled by its factor, that a summand below zero leaves.
const least = 1.0 / 8

// Apply corrects a predicted latency.
func (l *Line) Apply(class string, predicted time.Duration) time.Duration {
	f := cmp.Or(l.Classes[class], l.Factor, 1)
	return max(1, time.Duration(math.Round(line(f, float64(predicted), float64(l.Summand)))))
}

// P95 corrects a predicted 95th percentile.
func (l *Line) P95(class string, predicted, p95 time.Duration) time.Duration {
	wide := math.Pow(float64(p95)/float64(predicted), cmp.Or(l.Spread, 1))
	return time.Duration(math.Round(min(float64(l.Apply(class, predicted))*wide, math.MaxInt64/2)))
}

func line(factor, predicted, summand float64) float64 {
	return max(factor*predicted+summand, factor*predicted*least)
}

// Toward moves a line a part of the way to another, in the logarithm of its factors.
func (l *Line) Toward(to Line, part float64) Line {
	mix := func(a, b float64) float64 { return a * math.Pow(b/a, part) }
	m := Line{
		Summand: l.Summand + time.Duration(math.Round(part*float64(to.Summand-l.Summand))),
		Factor:  mix(cmp.Or(l.Factor, 1), cmp.Or(to.Factor, 1)),
		Classes: make(map[string]float64),
		Spread:  mix(cmp.Or(l.Spread, 1), cmp.Or(to.Spread, 1)),
	}
	for class, f := range l.Classes {
		m.Classes[class] = mix(f, cmp.Or(to.Classes[class], f))
	}
	for class, f := range to.Classes {
		m.Classes[class] = mix(cmp.Or(l.Classes[class], l.Factor, 1), f)
	}
	return m
}

// Evidence against which reports have to tell: so many reports of no error at all for the factor of all, and so many of the factor
// of all for that of a class.
const (
	doubt      = 1
	classDoubt = 2
)

// Fit finds the line of reports. Medians make it: what a few reports say that were interrupted does not move it. Reports of
// nothing leave it as it is, and few reports move it less than many. Of very many it takes some.
func Fit(reports []Report) Line {
	r := make([]pair, 0, min(len(reports), enough))
	for i := range min(len(reports), enough) {
		report := &reports[i*len(reports)/min(len(reports), enough)]
		if report.Predicted > 0 && report.Measured > 0 {
			p := pair{report.Class, float64(report.Predicted), float64(report.Measured), 0}
			if report.P95 > report.Predicted {
				p.wide = math.Log(float64(report.P95) / p.predicted)
			}
			r = append(r, p)
		}
	}
	l := fit(r)
	l.Spread = spread(r, &l)
	return l
}

func fit(r []pair) Line {
	if len(r) == 0 {
		return Line{}
	}
	small := shortest(r)
	best, least := fitFactors(r, 0), math.Inf(1)
	for step := -steps; step <= 2*steps; step++ {
		s := small * float64(step) / steps
		l := fitFactors(r, s)
		wrong := math.Abs(s) / small // a summand is to be worth it
		for _, p := range r {
			wrong += min(math.Abs(p.wrong(&l)), math.Log(limit))
		}
		if wrong < least-1e-9 || wrong < least+1e-9 && math.Abs(s) < math.Abs(float64(best.Summand)) {
			best, least = l, min(wrong, least)
		}
	}
	return best
}

// spread is by which power of p95 over p50 reports were late that a line did not know: that power which one in twenty
// exceeds. Of fewer than twenty that can not be said.
func spread(r []pair, l *Line) float64 {
	var late []float64
	for i, p := range r {
		if p.wide == 0 {
			continue
		}
		without := l
		if len(r) <= few {
			other := fitFactors(slices.Delete(slices.Clone(r), i, i+1), float64(l.Summand))
			without = &other
		}
		late = append(late, p.wrong(without)/p.wide)
	}
	at := 0.95*float64(len(late)+1) - 1
	if at < 0 || at > float64(len(late)-1) {
		return 0
	}
	slices.Sort(late)
	below := int(at)
	v := late[below]
	if below+1 < len(late) {
		v += (at - float64(below)) * (late[below+1] - v)
	}
	return max(v, 0.05)
}

const (
	enough = 256 // reports
	few    = 64  // reports, of which one makes a difference
)

// steps is into how many parts the shortest latencies are divided, one of which a summand is a multiple of.
const steps = 16

// pair is a report in numbers. wide is the logarithm of its p95 over its p50; 0: unknown.
type pair struct {
	class                     string
	predicted, measured, wide float64
}

// wrong is the logarithm of what was measured over what the line says.
func (p *pair) wrong(l *Line) float64 {
	return math.Log(p.measured / line(cmp.Or(l.Classes[p.class], l.Factor, 1), p.predicted, float64(l.Summand)))
}

// shortest is the order of the shortest predicted latencies: a tenth are below.
func shortest(r []pair) float64 {
	v := make([]float64, len(r))
	for i, p := range r {
		v[i] = p.predicted
	}
	slices.Sort(v)
	return v[len(v)/10]
}

// fitFactors finds factors for a summand.
func fitFactors(r []pair, summand float64) Line {
	ratios := make([]weighted, len(r))
	classes := make(map[string][]weighted)
	for i, p := range r {
		rest := max(p.measured-summand, p.measured*least)
		ratios[i] = weighted{math.Log(rest / p.predicted), min(1, p.predicted/p.measured)}
	}
	all := medianOf(slices.Clone(ratios)) * shrink(len(r), doubt)
	for i, p := range r {
		classes[p.class] = append(classes[p.class], weighted{ratios[i].value - all, ratios[i].weight})
	}
	l := Line{Summand: time.Duration(math.Round(summand)), Factor: math.Exp(all), Classes: make(map[string]float64, len(classes))}
	for class, v := range classes {
		l.Classes[class] = math.Exp(all + medianOf(v)*shrink(len(v), classDoubt))
	}
	return l
}

func shrink(n int, doubt float64) float64 { return float64(n) / (float64(n) + doubt) }

type weighted struct{ value, weight float64 }

// medianOf is the weighted median of some values, which it sorts.
func medianOf(v []weighted) float64 {
	slices.SortFunc(v, func(a, b weighted) int { return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.weight, b.weight)) })
	var all, below float64
	for _, x := range v {
		all += x.weight
	}
	for i, x := range v {
		before := below
		if below += x.weight; below > all/2+1e-12 || i == len(v)-1 {
			if i > 0 && before >= all/2-1e-12 {
				return (v[i-1].value + x.value) / 2 // half are on either side
			}
			return x.value
		}
	}
	return 0
}
