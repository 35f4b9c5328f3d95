package predictor

import (
	"fmt"
	"io"
	"text/tabwriter"

	"tensile/predictor/correct"
)

// NetworkEvaluation compares sums of predicted forward latencies with sums of measured ones, and with what was measured end
// to end: without any report, and after 32 of the ops of a device's networks, drawn at random, were reported. The latter is the mean
// over some draws. Ops that launch nothing take no time of the device: they count neither as predicted nor as measured.
type NetworkEvaluation struct {
	Networks []NetworkError `json:"networks"`
	Groups   []GroupError   `json:"groups"`           // of ops, as published results divide them
	Skipped  []string       `json:"skipped"`          // why networks were left out
	Mean     Columns        `json:"mean_error"`       // of predicted against measured sums
	EndToEnd Columns        `json:"end_to_end_error"` // mean, of predicted sums against the end-to-end labels
	Measured float64        `json:"measured_error"`   // mean, of measured sums against the same labels
}

// Columns are errors without any report and after 32.
type Columns struct {
	Alone    float64 `json:"alone"`
	Reported float64 `json:"reported"`
}

func (c *Columns) add(alone, reported, share float64) {
	c.Alone, c.Reported = c.Alone+alone*share, c.Reported+reported*share
}

// NetworkError is the outcome of one network on one device. Times are of its forward pass.
type NetworkError struct {
	Network   string  `json:"network"`
	Device    string  `json:"device"`
	Ops       int     `json:"ops"` // that launch
	Predicted float64 `json:"predicted_ms"`
	Measured  float64 `json:"measured_ms"` // sum over ops
	EndToEnd  float64 `json:"end_to_end_ms"`
	Error     Columns `json:"error"`     // of the predicted sum against the measured one
	Labelled  Columns `json:"e2e_error"` // of the predicted sum against the label
}

// GroupError is the outcome of a group of ops on one device: the error of the group's sum in a network, as a mean over networks, and
// the error of an op, as a mean over ops.
type GroupError struct {
	Device string  `json:"device"`
	Group  string  `json:"group"`
	Ops    int     `json:"ops"`
	Sum    Columns `json:"sum_error"`
	Op     Columns `json:"op_error"`
}

// launched is an op of a network that launches something.
type launched struct {
	network int
	group   string
	report  correct.Report
}

// EvaluateTraces predicts traced networks on the devices of the model.
func EvaluateTraces(m *Model, networks []Network) *NetworkEvaluation {
	e := &NetworkEvaluation{Skipped: []string{}}
	for i := range m.Devices {
		var some []*Network
		for n := range networks {
			if networks[n].Device == i {
				some = append(some, &networks[n])
			}
		}
		if len(some) > 0 {
			e.device(m, &m.Devices[i], some)
		}
	}
	share := 1 / float64(len(e.Networks))
	for _, n := range e.Networks {
		e.Mean.add(n.Error.Alone, n.Error.Reported, share)
		e.EndToEnd.add(n.Labelled.Alone, n.Labelled.Reported, share)
		e.Measured += relative(n.Measured, n.EndToEnd) * share
	}
	return e
}

// device predicts the networks of one device.
func (e *NetworkEvaluation) device(m *Model, d *Device, networks []*Network) {
	var ops []launched
	var reports []correct.Report
	for n, network := range networks {
		var calls []Call
		first := len(ops)
		for _, op := range network.Ops {
			if op.Group != "" && op.Seconds > 0 {
				calls = append(calls, op.Call)
				ops = append(ops, launched{n, op.Group, correct.Report{Class: op.Call.Kind, Measured: seconds(op.Seconds)}})
			}
		}
		for i, p := range m.Predict(d, calls) {
			r := &ops[first+i].report
			r.Predicted, r.P95 = p.P50, p.P95
			reports = append(reports, *r)
		}
	}
	nothing := &correct.Line{}
	lines := make([]correct.Line, draws)
	for draw := range lines {
		drawn, _ := drawReports(reports, draw)
		lines[draw] = correct.Fit(drawn)
	}

	for n, network := range networks {
		var mine []*launched
		for i := range ops {
			if ops[i].network == n {
				mine = append(mine, &ops[i])
			}
		}
		x := NetworkError{Network: network.Name, Device: d.Name, Ops: len(mine), EndToEnd: network.Forward * 1e3}
		x.Predicted, x.Measured = sums(nothing, mine)
		x.Error.Alone, x.Labelled.Alone = relative(x.Predicted, x.Measured), relative(x.Predicted, x.EndToEnd)
		for draw := range lines {
			predicted, _ := sums(&lines[draw], mine)
			x.Error.Reported += relative(predicted, x.Measured) / draws
			x.Labelled.Reported += relative(predicted, x.EndToEnd) / draws
		}
		e.Networks = append(e.Networks, x)
	}
	groups := make(map[string][]*launched)
	for i := range ops {
		groups[ops[i].group] = append(groups[ops[i].group], &ops[i])
	}
	for _, name := range sorted(groups) {
		g := GroupError{Device: d.Name, Group: name, Ops: len(groups[name])}
		g.Sum.Alone, g.Op.Alone = groupErrors(nothing, groups[name], len(networks))
		for draw := range lines {
			sum, op := groupErrors(&lines[draw], groups[name], len(networks))
			g.Sum.Reported, g.Op.Reported = g.Sum.Reported+sum/draws, g.Op.Reported+op/draws
		}
		e.Groups = append(e.Groups, g)
	}
}

// sums are what some ops take together, predicted and corrected by a line, and measured, in milliseconds.
func sums(l *correct.Line, ops []*launched) (predicted, measured float64) {
	for _, o := range ops {
		predicted += l.Apply(o.report.Class, o.report.Predicted).Seconds() * 1e3
		measured += o.report.Measured.Seconds() * 1e3
	}
	return predicted, measured
}

// groupErrors are the mean errors of a group's sum in a network, and of an op of it.
func groupErrors(l *correct.Line, ops []*launched, networks int) (sum, op float64) {
	var of float64
	for n := range networks {
		var mine []*launched
		for _, o := range ops {
			if o.network == n {
				mine = append(mine, o)
				op += relative(l.Apply(o.report.Class, o.report.Predicted).Seconds(), o.report.Measured.Seconds()) / float64(len(ops))
			}
		}
		if len(mine) > 0 {
			sum += relative(sums(l, mine))
			of++
		}
	}
	return sum / of, op
}

// WriteTable prints the evaluation.
func (e *NetworkEvaluation) WriteTable(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "network\tdevice\tops\tpredicted ms\tmeasured ms\terror\treported\tend to end ms\terror\treported\t")
	for _, n := range e.Networks {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%.3f\t%.3f\t%.1f\t%.3f\t%.3f\t\n", n.Network, n.Device, n.Ops, n.Predicted, n.Measured,
			n.Error.Alone, n.Error.Reported, n.EndToEnd, n.Labelled.Alone, n.Labelled.Reported)
	}
	fmt.Fprintf(t, "mean\t\t\t\t\t%.3f\t%.3f\t\t%.3f\t%.3f\t\n", e.Mean.Alone, e.Mean.Reported, e.EndToEnd.Alone, e.EndToEnd.Reported)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nSums of measured ops are %.3f off what was measured end to end. reported: after 32 random ops of a device's networks were.\n\n", e.Measured)
	fmt.Fprintln(t, "device\tgroup\tops\terror of sums\treported\terror of ops\treported\t")
	for _, g := range e.Groups {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t\n", g.Device, g.Group, g.Ops, g.Sum.Alone, g.Sum.Reported, g.Op.Alone, g.Op.Reported)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, why := range e.Skipped {
		fmt.Fprintf(out, "\nskipped %s\n", why)
	}
	return nil
}
