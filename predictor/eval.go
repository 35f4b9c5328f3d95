package predictor

import (
	"math"
	"math/rand/v2"
	"slices"

	"tensile/predictor/correct"
)

// Evaluation compares predictions with what was measured. Errors are shares of the measured latency.
type Evaluation struct {
	Kinds    []KindError   `json:"kinds"`
	Devices  []DeviceError `json:"devices"`
	Cells    []CellError   `json:"cells"`
	Overall  float64       `json:"overall_mape"`  // mean over kinds
	Roofline float64       `json:"roofline_mape"` // mean over kinds, of the roofline at the devices' peak rates
	Covered  float64       `json:"p95_covered"`   // share of samples that took no longer than their p95
	Outside  float64       `json:"outside"`       // share of samples outside of the trained range
}

// KindError is the error on the samples of one kind.
type KindError struct {
	Kind string  `json:"kind"`
	N    int     `json:"n"`
	MAPE float64 `json:"mape"`
	P50  float64 `json:"p50_ape"`
	P95  float64 `json:"p95_ape"`
}

// Judged is the outcome for some samples, without any report and after 32 of them, drawn at random, were reported: what
// remains where only the state of the machine was unknown. The latter is the mean over some draws, over the samples
// that were not drawn.
type Judged struct {
	N         int       `json:"n"`
	MAPE      float64   `json:"mape"`
	Covered   float64   `json:"p95_covered"`
	Corrected *Reported `json:"corrected"` // nil where there are fewer than 200
}

// Reported is the outcome after reports.
type Reported struct {
	MAPE    float64 `json:"mape"`
	Covered float64 `json:"p95_covered"`
}

// CellError is the outcome for the samples of one kind on one device.
type CellError struct {
	Kind   string `json:"kind"`
	Device string `json:"device"`
	Judged
}

// DeviceError is the outcome for the samples of one device, of all kinds.
type DeviceError struct {
	Name string `json:"name"`
	Seen bool   `json:"seen"` // some of its family were trained on
	Judged
}

const (
	warmUp  = 32  // samples that are reported in a draw
	draws   = 32  // draws that the result is the mean over
	drawnOf = 200 // samples below which nothing is drawn
)

// Evaluate predicts samples on the devices of the model.
func Evaluate(m *Model, samples []Sample) *Evaluation {
	e := &Evaluation{}
	kinds, plain := make(map[string][]float64), make(map[string][]float64)
	for i := range m.Devices {
		d := &m.Devices[i]
		cells := make(map[string][]outcome)
		var all []outcome
		for _, o := range outcomesOf(m, samples, i) {
			s := o.sample
			kinds[s.Kind] = append(kinds[s.Kind], relative(o.P50.Seconds(), s.Seconds))
			plain[s.Kind] = append(plain[s.Kind], relative(d.Roofline(&s.Call), s.Seconds))
			cells[s.Kind], all = append(cells[s.Kind], o), append(all, o)
			e.Covered += float64(indicator(s.Seconds <= o.P95.Seconds())) / float64(len(samples))
			e.Outside += float64(indicator(o.Outside > 0)) / float64(len(samples))
		}
		for _, kind := range sorted(cells) {
			e.Cells = append(e.Cells, CellError{kind, d.Name, judge(cells[kind])})
		}
		if len(all) > 0 {
			e.Devices = append(e.Devices, DeviceError{d.Name, m.knowsFamily(d), judge(all)})
		}
	}
	for _, kind := range sorted(kinds) {
		errors := kinds[kind]
		slices.Sort(errors)
		k := KindError{Kind: kind, N: len(errors), MAPE: meanOf(errors), P50: quantile(errors, 0.5),
			P95: quantile(errors, 0.95)}
		e.Kinds = append(e.Kinds, k)
		e.Overall += k.MAPE / float64(len(kinds))
		e.Roofline += meanOf(plain[kind]) / float64(len(kinds))
	}
	return e
}

// outcome is a sample and what was predicted of it.
type outcome struct {
	Prediction
	sample *Sample
}

// outcomesOf predicts the samples of one device.
func outcomesOf(m *Model, samples []Sample, device int) []outcome {
	var calls []Call
	var found []outcome
	for i := range samples {
		if s := &samples[i]; s.Device == device {
			calls, found = append(calls, s.Call), append(found, outcome{sample: s})
		}
	}
	for i, p := range m.Predict(&m.Devices[device], calls) {
		found[i].Prediction = p
	}
	return found
}

// knowsFamily says whether a device of this family was trained on.
func (m *Model) knowsFamily(d *Device) bool {
	return slices.ContainsFunc(m.Groups, func(g Group) bool { return slices.Contains(g.Families, d.Family()) })
}

func judge(all []outcome) Judged {
	j := Judged{N: len(all)}
	for _, o := range all {
		j.MAPE += relative(o.P50.Seconds(), o.sample.Seconds) / float64(len(all))
		j.Covered += float64(indicator(o.sample.Seconds <= o.P95.Seconds())) / float64(len(all))
	}
	if len(all) < drawnOf {
		return j
	}
	reports := make([]correct.Report, len(all))
	for i, o := range all {
		reports[i] = correct.Report{Class: o.sample.Kind, Predicted: o.P50, P95: o.P95,
			Measured: durationOf(o.sample.Seconds)}
	}
	j.Corrected = &Reported{}
	for draw := range draws {
		drawn, rest := drawReports(reports, draw)
		l := correct.Fit(drawn)
		for _, r := range rest {
			p50, p95 := l.Apply(r.Class, r.Predicted), l.P95(r.Class, r.Predicted, r.P95)
			share := 1 / float64(draws*len(rest))
			j.Corrected.MAPE += relative(p50.Seconds(), r.Measured.Seconds()) * share
			j.Corrected.Covered += float64(indicator(r.Measured <= p95)) * share
		}
	}
	return j
}

// drawReports takes reports by chance, each draw others.
func drawReports(reports []correct.Report, draw int) (drawn, rest []correct.Report) {
	rng := rand.New(rand.NewPCG(uint64(draw), 0x64726177))
	shuffled := slices.Clone(reports)
	for i := range min(warmUp, len(shuffled)) {
		j := i + rng.IntN(len(shuffled)-i)
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	return shuffled[:min(warmUp, len(shuffled))], shuffled[min(warmUp, len(shuffled)):]
}

func relative(predicted, measured float64) float64 { return math.Abs(predicted-measured) / measured }

func meanOf(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// quantile of sorted numbers.
func quantile(v []float64, q float64) float64 { return v[min(int(q*float64(len(v))), len(v)-1)] }

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
