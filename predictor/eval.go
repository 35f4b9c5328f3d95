package predictor

import (
	"math"
	"slices"
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

// CellError is the error on the samples of one kind on one device.
type CellError struct {
	Kind   string  `json:"kind"`
	Device string  `json:"device"`
	N      int     `json:"n"`
	MAPE   float64 `json:"mape"`
}

// DeviceError is the error on the samples of one device. Corrected is the error of the samples after the first 32 when all
// are scaled by the drift that those show: what remains where only the state of the machine was unknown.
type DeviceError struct {
	Name      string   `json:"name"`
	Seen      bool     `json:"seen"` // some of its family were trained on
	N         int      `json:"n"`
	MAPE      float64  `json:"mape"`
	Corrected *float64 `json:"corrected_mape"`
}

// warmUp is how many samples of a device show its drift.
const warmUp = 32

// Evaluate predicts samples on devices.
func Evaluate(m *Model, samples []Sample, devices []Device) *Evaluation {
	e := &Evaluation{}
	kinds, plain, per := make(map[string][]float64), make(map[string][]float64), make([][]pair, len(devices))
	for d := range devices {
		var calls []Call
		var at []int
		cells := make(map[string][]float64)
		for i := range samples {
			if samples[i].Device == d {
				calls, at = append(calls, samples[i].Call), append(at, i)
			}
		}
		for i, p := range m.Predict(&devices[d], calls) {
			s := &samples[at[i]]
			kinds[s.Kind] = append(kinds[s.Kind], relative(p.P50.Seconds(), s.Seconds))
			cells[s.Kind] = append(cells[s.Kind], relative(p.P50.Seconds(), s.Seconds))
			plain[s.Kind] = append(plain[s.Kind], relative(devices[d].Roofline(&s.Call), s.Seconds))
			per[d] = append(per[d], pair{p.P50.Seconds(), s.Seconds})
			e.Covered += float64(one(s.Seconds <= p.P95.Seconds())) / float64(len(samples))
			e.Outside += float64(one(p.Outside > 0)) / float64(len(samples))
		}
		for _, kind := range sorted(cells) {
			e.Cells = append(e.Cells, CellError{kind, devices[d].Name, len(cells[kind]), mean(cells[kind])})
		}
	}
	for _, kind := range sorted(kinds) {
		errors := kinds[kind]
		slices.Sort(errors)
		k := KindError{Kind: kind, N: len(errors), MAPE: mean(errors), P50: quantile(errors, 0.5), P95: quantile(errors, 0.95)}
		e.Kinds = append(e.Kinds, k)
		e.Overall += k.MAPE / float64(len(kinds))
		e.Roofline += mean(plain[kind]) / float64(len(kinds))
	}
	for d, pairs := range per {
		if len(pairs) > 0 {
			e.Devices = append(e.Devices, deviceError(m, &devices[d], pairs))
		}
	}
	return e
}

// pair is a prediction and what was measured, in seconds.
type pair struct{ predicted, measured float64 }

func deviceError(m *Model, d *Device, pairs []pair) DeviceError {
	e := DeviceError{Name: d.Name, N: len(pairs)}
	for i := range m.Groups {
		e.Seen = e.Seen || slices.Contains(m.Groups[i].Families, d.Family())
	}
	for _, p := range pairs {
		e.MAPE += relative(p.predicted, p.measured) / float64(len(pairs))
	}
	if rest := len(pairs) - warmUp; rest > 0 {
		var ratios []float64
		for _, p := range pairs[:warmUp] {
			ratios = append(ratios, p.measured/p.predicted)
		}
		factor, corrected := median(ratios), 0.0
		for _, p := range pairs[warmUp:] {
			corrected += relative(p.predicted*factor, p.measured) / float64(rest)
		}
		e.Corrected = &corrected
	}
	return e
}

func relative(predicted, measured float64) float64 { return math.Abs(predicted-measured) / measured }

func mean(v []float64) float64 {
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
