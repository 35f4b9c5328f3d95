package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/graph/text"
)

// WriteTable prints a row per job and a total, in at most six columns, or in all with wide. A line for each accuracy
// that was measured follows.
func (r *Training) WriteTable(w io.Writer, wide bool) error {
	rows := r.narrowRows()
	if wide {
		rows = r.wideRows()
	}
	if err := text.Table(w, rows); err != nil {
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
		if _, err := fmt.Fprintf(w, "%saccuracy %.1f %% of %d test images\n", name, 100**j.Accuracy,
			j.TestImages); err != nil {
			return err
		}
	}
	return nil
}

// narrowRows has the columns that most people need. What was not measured in any job has none.
func (r *Training) narrowRows() [][]string {
	compared, trained := r.Total.EOR != nil, false
	for _, j := range r.Jobs {
		compared = compared || j.BitIdentical != nil || j.EOR != nil || j.FirstEOR != nil
		trained = trained || j.LossFirst != nil
	}
	head := []string{"JOB", "NEEDS", "PLAN", "SAVED"}
	if compared {
		head = append(head, "SLOWER BY", "BITS")
	} else if trained {
		head = append(head, "LOSS")
	}
	rows := [][]string{head}
	size := r.sizes()
	row := func(name string, m Metrics, bits, loss string) {
		cells := []string{name, size(m.VanillaLive), size(m.Arena), savedShare(m.Memory)}
		if compared {
			cells = append(cells, m.slowerBy(), bits)
		} else if trained {
			cells = append(cells, loss)
		}
		rows = append(rows, cells)
	}
	for _, j := range r.Jobs {
		row(j.Job, j.Metrics, j.bits(), j.losses())
	}
	row("total", r.Total, "", "")
	return rows
}

// gateColumn is where waits for memory stand in the wide table, if there are any.
const gateColumn = 11

// wideRows has all columns.
func (r *Training) wideRows() [][]string {
	rows := [][]string{{"JOB", "VANILLA ALL", "VANILLA LIVE", "SLOT PEAK", "ARENA", "TOUCHED", "MSR ALL", "MSR LIVE",
		"EOR", "CBR", "STALL MS", "PLANS", "TRANSITION MS", "START EOR", "FIRST EOR", "PREDICTION ERROR",
		"LOSS", "BITS"}}
	if r.Total.Gate > 0 {
		rows[0] = slices.Insert(rows[0], gateColumn, "GATE MS")
	}
	size := r.sizes()
	row := func(name string, m Metrics, rest ...string) {
		cells := []string{name}
		for _, b := range []graph.Bytes{m.VanillaAll, m.VanillaLive, m.SlotPeak, m.Arena, m.Touched} {
			cells = append(cells, size(b))
		}
		cells = append(cells, fmt.Sprintf("%.3f", m.MSRAll), fmt.Sprintf("%.3f", m.MSRLive), m.eor(), ratioText(m.CBR),
			fmt.Sprintf("%.1f", m.Stall), fmt.Sprint(m.Plans), fmt.Sprintf("%.1f", m.Transition))
		if r.Total.Gate > 0 {
			cells = slices.Insert(cells, gateColumn, fmt.Sprintf("%.1f", m.Gate))
		}
		rows = append(rows, append(cells, rest...))
	}
	for _, j := range r.Jobs {
		row(j.Job, j.Metrics, ratioText(j.StartEOR), ratioText(j.FirstEOR), percentText(j.Prediction), j.losses(),
			j.bits())
	}
	row("total", r.Total, ratioText(r.StartEOR), ratioText(r.FirstEOR))
	return rows
}

// sizes prints the amounts of a table.
func (r *Training) sizes() func(graph.Bytes) string {
	amounts := []graph.Bytes{r.Total.VanillaLive, r.Total.Arena}
	for _, j := range r.Jobs {
		amounts = append(amounts, j.VanillaLive, j.Arena)
	}
	return text.SameUnit(amounts...)
}

// savedShare returns the share of the vanilla peak (live) that the arena does without.
func savedShare(m Memory) string {
	return text.Percent(float64(m.VanillaLive-m.Arena) / float64(max(m.VanillaLive, 1)))
}

// slowerBy is an EOR for people: 1.02 is "2 %", 0.97 is "-3 %", nil is "-".
func slowerBy(eor *float64) string {
	if eor == nil {
		return "-"
	}
	return text.Percent(*eor - 1)
}

// slowerBy is SlowerBy with the spread over the blocks: "2 % (-1 to 5 %)".
func (m *Metrics) slowerBy() string {
	if m.EOR == nil {
		return "-"
	}
	low := strings.TrimSuffix(text.Percent(*m.EORLow-1), " %")
	return fmt.Sprintf("%s (%s to %s)", slowerBy(m.EOR), low, text.Percent(*m.EORHigh-1))
}

func (j *JobMetrics) losses() string {
	if j.LossFirst == nil || j.LossLast == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f > %.4f", *j.LossFirst, *j.LossLast)
}

func (j *JobMetrics) bits() string {
	if j.BitIdentical == nil {
		return "-"
	}
	return map[bool]string{true: "identical", false: "DIFFERENT"}[*j.BitIdentical]
}

// Sentence says what the run has shown, in one line.
func (r *Training) Sentence() string {
	done := "Trained"
	if strings.HasPrefix(r.Device, "sim:") {
		done = "Simulated"
	}
	s := fmt.Sprintf("%s in %s what needs %s", done, r.Total.Arena, r.Total.VanillaLive)
	if r.Total.Arena >= r.Total.VanillaLive {
		s = fmt.Sprintf("%s in %s, as much as without a plan", done, r.Total.Arena)
	}
	if bits, ok := r.identical(); ok && bits {
		s += "; losses and weights identical"
	} else if ok {
		s += "; losses or weights DIFFERENT"
	}
	if eor, low, high := r.Total.EOR, r.Total.EORLow, r.Total.EORHigh; eor != nil {
		if low != nil && high != nil && *low < 1 && *high > 1 && *high-*low > 0.1 {
			return s + fmt.Sprintf("; what the plan costs in time is lost in the noise (%s to %s).",
				text.Percent(*low-1), text.Percent(*high-1))
		}
		switch by := text.Percent(max(*eor-1, 1-*eor)); {
		case by == "0 %":
			s += "; as fast"
		case *eor > 1:
			s += "; " + by + " slower"
		default:
			s += "; " + by + " faster"
		}
	}
	return s + "."
}

// identical reports whether all jobs that were compared have the same bits; ok is false if none was.
func (r *Training) identical() (same, ok bool) {
	same = true
	for _, j := range r.Jobs {
		if j.BitIdentical != nil {
			same, ok = same && *j.BitIdentical, true
		}
	}
	return same, ok
}

// eor is the overhead with its spread.
func (m *Metrics) eor() string {
	if m.EOR == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", *m.EOR, *m.EORLow, *m.EORHigh)
}

func percentText(v *float64) string {
	if v == nil {
		return "-"
	}
	return text.Percent(*v)
}

func ratioText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *v)
}
