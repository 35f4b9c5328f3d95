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

// Line corrects the predictions of a device: measured = factor*predicted + summand. The summand is the launch cost per
// op that was not predicted, negative where launches are faster. A class may have its own factor. The zero value
// corrects nothing.
type Line struct {
	Summand time.Duration
	Factor  float64            // of classes of which nothing is known; 0: 1
	Classes map[string]float64 // instead, by class
	Spread  float64            // the logarithm of p95 over p50, relative to what was predicted; 0: 1
}

// minShare is the least that a negative summand may leave of factor*predicted.
const minShare = 1.0 / 8

// Apply corrects a predicted latency.
func (l *Line) Apply(class string, predicted time.Duration) time.Duration {
	if predicted <= 0 {
		return predicted // it launches nothing
	}
	f := cmp.Or(l.Classes[class], l.Factor, 1)
	return max(1, time.Duration(math.Round(min(evaluate(f, float64(predicted), float64(l.Summand)),
		max(float64(predicted), float64(longest))))))
}

// P95 corrects a predicted 95th percentile.
func (l *Line) P95(class string, predicted, p95 time.Duration) time.Duration {
	if predicted <= 0 {
		return p95
	}
	wide := math.Pow(float64(p95)/float64(predicted), cmp.Or(l.Spread, 1))
	return time.Duration(math.Round(min(float64(l.Apply(class, predicted))*wide, math.MaxInt64/2)))
}

func evaluate(factor, predicted, summand float64) float64 {
	return max(factor*predicted+summand, factor*predicted*minShare)
}

// MoveToward moves a line a part of the way to another, in the logarithm of its factors.
func (l *Line) MoveToward(to Line, part float64) Line {
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

// Priors, as numbers of reports: of reports without error for the common factor, and of the common factor for
// that of a class.
const (
	doubt      = 1
	classDoubt = 2
)

// Fit finds the line of reports by medians, so that a few outliers do not move it. Without reports it is the zero line,
// and few reports move it less than many. Of very many it uses a sample.
func Fit(reports []Report) Line {
	var f fitter
	for i := range min(len(reports), enough) {
		r := &reports[i*len(reports)/min(len(reports), enough)]
		if r.Predicted > 0 && r.Measured > 0 {
			f.add(r)
		}
	}
	if len(f.pairs) == 0 {
		return Line{}
	}
	best := f.fit()
	l := Line{Summand: time.Duration(math.Round(best.summand)), Factor: best.all, Classes: make(map[string]float64),
		Spread: f.spreadPower(best)}
	for i, class := range f.classes {
		l.Classes[class] = best.classes[i]
	}
	return l
}

// fitter holds reports in numbers.
type fitter struct {
	pairs   []pair
	classes []string
}

type pair struct {
	class               int
	predicted, measured float64
	wide                float64 // the logarithm of p95 over p50; 0: unknown
}

// factors are a line whose classes have numbers.
type factors struct {
	summand, all float64
	classes      []float64
}

func (f *fitter) add(r *Report) {
	class := slices.Index(f.classes, r.Class)
	if class < 0 {
		class = len(f.classes)
		f.classes = append(f.classes, r.Class)
	}
	p := pair{class, float64(r.Predicted), float64(r.Measured), 0}
	if r.P95 > r.Predicted {
		p.wide = math.Log(float64(r.P95) / p.predicted)
	}
	f.pairs = append(f.pairs, p)
}

// logError is the logarithm of measured over corrected latency.
func (p *pair) logError(l *factors) float64 {
	return math.Log(p.measured / evaluate(l.classes[p.class], p.predicted, l.summand))
}

// fit tries summands.
func (f *fitter) fit() factors {
	small := f.shortest()
	var best factors
	smallest := math.Inf(1)
	for step := -steps; step <= 2*steps; step++ {
		l := f.factors(small * float64(step) / steps)
		wrong := math.Abs(l.summand) / small // a summand is to be worth it
		for i := range f.pairs {
			wrong += min(math.Abs(f.pairs[i].logError(&l)), math.Log(limit))
		}
		if wrong < smallest-1e-9 || wrong < smallest+1e-9 && math.Abs(l.summand) < math.Abs(best.summand) {
			best, smallest = l, min(wrong, smallest)
		}
	}
	return best
}

// spreadPower is the power of p95/p50 that one report in twenty exceeds, among reports that the line was not fitted to.
// It takes twenty reports to tell.
func (f *fitter) spreadPower(best factors) float64 {
	var late []float64
	for i, p := range f.pairs {
		if p.wide == 0 {
			continue
		}
		without := best
		if len(f.pairs) <= few {
			rest := fitter{slices.Delete(slices.Clone(f.pairs), i, i+1), f.classes}
			without = rest.factors(best.summand)
		}
		late = append(late, p.logError(&without)/p.wide)
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
	enough = 128 // reports
	few    = 64  // reports, of which one makes a difference
)

// steps: summands are multiples of the shortest latencies divided by it.
const steps = 16

// shortest is the tenth percentile of the predicted latencies.
func (f *fitter) shortest() float64 {
	v := make([]float64, len(f.pairs))
	for i, p := range f.pairs {
		v[i] = p.predicted
	}
	slices.Sort(v)
	return v[len(v)/10]
}

// factors finds the factors for a summand.
func (f *fitter) factors(summand float64) factors {
	ratios := make([]weighted, len(f.pairs))
	for i, p := range f.pairs {
		rest := max(p.measured-summand, p.measured*minShare)
		ratios[i] = weighted{math.Log(rest / p.predicted), min(1, p.predicted/p.measured)}
	}
	all := medianOf(slices.Clone(ratios)) * confidence(len(ratios), doubt)
	l := factors{summand, math.Exp(all), make([]float64, len(f.classes))}
	mine := make([]weighted, 0, len(ratios))
	for class := range l.classes {
		mine = mine[:0]
		for i, p := range f.pairs {
			if p.class == class {
				mine = append(mine, weighted{ratios[i].value - all, ratios[i].weight})
			}
		}
		l.classes[class] = math.Exp(all + medianOf(mine)*confidence(len(mine), classDoubt))
	}
	return l
}

func confidence(n int, doubt float64) float64 { return float64(n) / (float64(n) + doubt) }

type weighted struct{ value, weight float64 }

// medianOf is the weighted median of some values, which it sorts.
func medianOf(v []weighted) float64 {
	slices.SortFunc(v, func(a, b weighted) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.weight, b.weight))
	})
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
