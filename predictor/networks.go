package predictor

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"tensile/predictor/correct"
)

// NetworkEvaluation compares sums of predicted forward latencies with sums of measured ones, and with what was measured
// end to end: without any report, and after 32 of the ops of a device's networks, drawn at random, were reported. The
// latter is the mean over some draws. Ops that launch nothing take no time of the device: they count neither as
// predicted nor as measured.
type NetworkEvaluation struct {
	Networks []NetworkError `json:"networks"`
	Groups   []GroupError   `json:"groups"`           // Groups of ops, as in published results.
	Skipped  []string       `json:"skipped"`          // why networks were left out
	Beside   bool           `json:"-"`                // another predictor was read too
	Mean     Columns        `json:"mean_error"`       // Mean error of predicted sums against measured sums.
	EndToEnd Columns        `json:"end_to_end_error"` // mean, of predicted sums against the end-to-end labels
	Measured float64        `json:"measured_error"`   // mean, of measured sums against the same labels
}

// Columns are errors without any report, after 32, and of the predictor beside which this one is judged, if there is
// one.
type Columns struct {
	Alone    float64 `json:"alone"`
	Reported float64 `json:"reported"`
	Beside   float64 `json:"beside,omitempty"`
}

func (c *Columns) add(o Columns, share float64) {
	c.Alone, c.Reported, c.Beside = c.Alone+o.Alone*share, c.Reported+o.Reported*share, c.Beside+o.Beside*share
}

// NetworkError is the outcome of one network on one device. Times are of its forward pass.
type NetworkError struct {
	Network   string  `json:"network"`
	Device    string  `json:"device"`
	Ops       int     `json:"ops"` // Ops that launch a kernel.
	Predicted float64 `json:"predicted_ms"`
	Measured  float64 `json:"measured_ms"` // sum over ops
	EndToEnd  float64 `json:"end_to_end_ms"`
	Error     Columns `json:"error"`     // Error of the predicted sum against the measured sum.
	Labelled  Columns `json:"e2e_error"` // Error of the predicted sum against the label.
}

// GroupError is the outcome of a group of ops on one device: the error of the group's sum in a network, as a mean over
// networks, and the error of an op, as a mean over ops.
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
	beside  time.Duration
}

// predicted gives the latency of an op.
type predicted func(*launched) time.Duration

func correctedBy(l *correct.Line) predicted {
	return func(o *launched) time.Duration { return l.Apply(o.report.Class, o.report.Predicted) }
}

func contendedLatency(o *launched) time.Duration { return o.beside }

// EvaluateTraces predicts traced networks on the devices of the model.
func EvaluateTraces(m *Model, networks []Network) *NetworkEvaluation {
	e := &NetworkEvaluation{Skipped: []string{}}
	for i := range networks {
		e.Beside = e.Beside || slices.ContainsFunc(networks[i].Ops, func(o TracedOp) bool { return o.Beside > 0 })
	}
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
		e.Mean.add(n.Error, share)
		e.EndToEnd.add(n.Labelled, share)
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
				ops = append(ops, launched{n, op.Group, correct.Report{Class: op.Call.Kind,
					Measured: durationOf(op.Seconds)}, durationOf(op.Beside)})
			}
		}
		for i, p := range m.Predict(d, calls) {
			r := &ops[first+i].report
			r.Predicted, r.P95 = p.P50, p.P95
			reports = append(reports, *r)
		}
	}
	alone := correctedBy(&correct.Line{})
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
		x.Predicted, x.Measured = sums(alone, mine)
		x.Error.Alone, x.Labelled.Alone = relative(x.Predicted, x.Measured), relative(x.Predicted, x.EndToEnd)
		for draw := range lines {
			sum, _ := sums(correctedBy(&lines[draw]), mine)
			x.Error.Reported += relative(sum, x.Measured) / draws
			x.Labelled.Reported += relative(sum, x.EndToEnd) / draws
		}
		if e.Beside {
			sum, _ := sums(contendedLatency, mine)
			x.Error.Beside, x.Labelled.Beside = relative(sum, x.Measured), relative(sum, x.EndToEnd)
		}
		e.Networks = append(e.Networks, x)
	}
	groups := make(map[string][]*launched)
	for i := range ops {
		groups[ops[i].group] = append(groups[ops[i].group], &ops[i])
	}
	for _, name := range sorted(groups) {
		g := GroupError{Device: d.Name, Group: name, Ops: len(groups[name])}
		g.Sum.Alone, g.Op.Alone = groupErrors(alone, groups[name], len(networks))
		for draw := range lines {
			sum, op := groupErrors(correctedBy(&lines[draw]), groups[name], len(networks))
			g.Sum.Reported, g.Op.Reported = g.Sum.Reported+sum/draws, g.Op.Reported+op/draws
		}
		if e.Beside {
			g.Sum.Beside, g.Op.Beside = groupErrors(contendedLatency, groups[name], len(networks))
		}
		e.Groups = append(e.Groups, g)
	}
}

// sums are what some ops take together, predicted and measured, in milliseconds.
func sums(p predicted, ops []*launched) (sum, measured float64) {
	for _, o := range ops {
		sum += p(o).Seconds() * 1e3
		measured += o.report.Measured.Seconds() * 1e3
	}
	return sum, measured
}

// groupErrors are the mean errors of a group's sum in a network, and of an op of it.
func groupErrors(p predicted, ops []*launched, networks int) (sum, op float64) {
	var of float64
	for n := range networks {
		var mine []*launched
		for _, o := range ops {
			if o.network == n {
				mine = append(mine, o)
				op += relative(p(o).Seconds(), o.report.Measured.Seconds()) / float64(len(ops))
			}
		}
		if len(mine) > 0 {
			sum += relative(sums(p, mine))
			of++
		}
	}
	return sum / of, op
}

// WriteTable prints the evaluation.
func (e *NetworkEvaluation) WriteTable(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns, line := "alone\treported\t", func(c Columns) string {
		return fmt.Sprintf("%.3f\t%.3f\t", c.Alone, c.Reported)
	}
	if e.Beside {
		columns, line = "alone\treported\tbeside\t", func(c Columns) string {
			return fmt.Sprintf("%.3f\t%.3f\t%.3f\t", c.Alone, c.Reported, c.Beside)
		}
	}
	fmt.Fprintln(t, "network\tdevice\tops\tpredicted ms\tmeasured ms\t"+columns+"end to end ms\t"+columns)
	for _, n := range e.Networks {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%s%.1f\t%s\n", n.Network, n.Device, n.Ops, n.Predicted, n.Measured,
			line(n.Error), n.EndToEnd, line(n.Labelled))
	}
	fmt.Fprintf(t, "mean error\t\t\t\t\t%s\t%s\n", line(e.Mean), line(e.EndToEnd))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nalone: without any report; reported: after 32 random ops of the device's networks were. "+
		"Sums of measured ops are %.3f off what was\nmeasured end to end.\n\n", e.Measured)
	fmt.Fprintln(t, "device\tgroup\tops\terrors of sums:\t"+columns+"of ops:\t"+columns)
	for _, g := range e.Groups {
		fmt.Fprintf(t, "%s\t%s\t%d\t\t%s\t%s\n", g.Device, g.Group, g.Ops, line(g.Sum), line(g.Op))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, why := range e.Skipped {
		fmt.Fprintf(out, "\nskipped %s\n", why)
	}
	return nil
}
