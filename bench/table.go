package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints a report for people: a row per job and one for all.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "job\tvanilla all\tvanilla live\tslot peak\tarena\ttouched\tMSR all\tMSR live\tEOR\tCBR\tstall ms\tplans\ttransition ms\tfirst EOR\tprediction\tloss\tbits\t")
	row := func(name string, m Metrics, first, prediction, loss, bits string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.3f\t%.3f\t%s\t%s\t%.1f\t%d\t%.1f\t%s\t%s\t%s\t%s\t\n", name,
			m.VanillaAll, m.VanillaLive, m.SlotPeak, m.Arena, m.Touched, m.MSRAll, m.MSRLive,
			ratio(m.EOR), ratio(m.CBR), m.Stall, m.Plans, m.Transition, first, prediction, loss, bits)
	}
	for _, j := range r.Jobs {
		loss, bits := "-", "-"
		if j.LossFirst != nil && j.LossLast != nil {
			loss = fmt.Sprintf("%.4f > %.4f", *j.LossFirst, *j.LossLast)
		}
		if j.BitIdentical != nil {
			bits = map[bool]string{true: "identical", false: "DIFFERENT"}[*j.BitIdentical]
		}
		row(j.Job, j.Metrics, ratio(j.FirstEOR), ratio(j.Prediction), loss, bits)
	}
	row("total", r.Total, "", "", "", "")
	if err := t.Flush(); err != nil {
		return err
	}
	for _, j := range r.Jobs {
		if j.Accuracy == nil {
			continue
		}
		name := ""
		if len(r.Jobs) > 1 {
			name = j.Job + ": "
		}
		if _, err := fmt.Fprintf(w, "%saccuracy %.1f %% of %d test images\n", name, 100**j.Accuracy, j.TestImages); err != nil {
			return err
		}
	}
	return nil
}

func ratio(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *v)
}
