package predictor

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// NetworkEvaluation compares sums of predicted forward latencies with sums of measured ones, and with what was measured end
// to end.
type NetworkEvaluation struct {
	Networks []NetworkError `json:"networks"`
	Groups   []KindError    `json:"groups"`     // of ops, as published results divide them
	Mean     float64        `json:"mean_error"` // of predicted against measured sums
	Worst    float64        `json:"worst_error"`
	EndToEnd float64        `json:"end_to_end_error"` // mean, of predicted sums against the end-to-end labels
	Measured float64        `json:"measured_error"`   // mean, of measured sums against the same labels
}

// NetworkError is the outcome of one network on one device. Times are of its forward pass.
type NetworkError struct {
	Network   string  `json:"network"`
	Device    string  `json:"device"`
	Ops       int     `json:"ops"`
	Predicted float64 `json:"predicted_ms"`
	Measured  float64 `json:"measured_ms"` // sum over ops
	EndToEnd  float64 `json:"end_to_end_ms"`
	Error     float64 `json:"error"` // of the predicted sum against the measured one
}

// EvaluateTraces predicts traced networks. What launches no kernel counts with the device's launch time.
func EvaluateTraces(m *Model, networks []Network, devices []Device) *NetworkEvaluation {
	e := &NetworkEvaluation{}
	groups := make(map[string][]float64)
	for _, n := range networks {
		d := &devices[n.Device]
		x := NetworkError{Network: n.Name, Device: d.Name, Ops: len(n.Ops), EndToEnd: n.Forward * 1e3}
		calls := make([]Call, len(n.Ops))
		for i := range n.Ops {
			calls[i] = n.Ops[i].Call
		}
		for i, p := range m.Predict(d, calls) {
			op := &n.Ops[i]
			predicted := p.P50.Seconds()
			switch {
			case op.Seconds == 0: // a name of something, no op
				predicted = 0
			case op.Group == "":
				predicted = d.Launch.Seconds()
			default:
				groups[op.Group] = append(groups[op.Group], relative(predicted, op.Seconds))
			}
			x.Predicted += predicted * 1e3
			x.Measured += op.Seconds * 1e3
		}
		x.Error = relative(x.Predicted, x.Measured)
		e.Networks = append(e.Networks, x)
		share := 1 / float64(len(networks))
		e.Mean += x.Error * share
		e.Worst = max(e.Worst, x.Error)
		e.EndToEnd += relative(x.Predicted, x.EndToEnd) * share
		e.Measured += relative(x.Measured, x.EndToEnd) * share
	}
	for _, name := range sorted(groups) {
		errors := groups[name]
		slices.Sort(errors)
		e.Groups = append(e.Groups, KindError{Kind: name, N: len(errors), MAPE: mean(errors), P50: quantile(errors, 0.5), P95: quantile(errors, 0.95)})
	}
	return e
}

// WriteTable prints the evaluation.
func (e *NetworkEvaluation) WriteTable(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "network\tdevice\tops\tpredicted ms\tsum of ops ms\terror\tend to end ms\t")
	for _, n := range e.Networks {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%.3f\t%.1f\t\n", n.Network, n.Device, n.Ops, n.Predicted, n.Measured, n.Error, n.EndToEnd)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nerror of sums: mean %.3f, worst %.3f; against end to end: predicted %.3f, sums of measured ops %.3f\n\n", e.Mean, e.Worst, e.EndToEnd, e.Measured)
	fmt.Fprintln(t, "group\tops\tmean error\tmedian\t")
	for _, g := range e.Groups {
		fmt.Fprintf(t, "%s\t%d\t%.3f\t%.3f\t\n", g.Kind, g.N, g.MAPE, g.P50)
	}
	return t.Flush()
}
