package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/graph/text"
	"tensile/observe/report"
	"tensile/wire"
)

// What terminals make of a text.
const (
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	reverse = "\x1b[7m"
	plain   = "\x1b[0m"
)

// View is the whole screen, so many lines as the terminal has, none wider than it.
func (m Model) View() tea.View {
	return tea.View{Content: m.screen(), AltScreen: true}
}

// screen is the text of the view.
func (m *Model) screen() string {
	var lines []string
	switch {
	case m.trouble != "":
		lines = append(lines, "no answer: "+m.trouble)
	case m.at.IsZero():
		lines = append(lines, "asking the controller ...")
	}
	if !m.at.IsZero() {
		lines = append(lines, m.head()...)
		if m.open {
			lines = append(lines, m.detailLines(m.height-len(lines)-1)...)
		} else {
			lines = append(lines, m.table(m.height-len(lines)-2)...)
			if r := m.record(); r != nil && r.Reason != "" && len(lines) < m.height-1 {
				lines = append(lines, make([]string, m.height-2-len(lines))...)
				lines = append(lines, dim+r.Spec.Name+": "+r.Reason+plain)
			}
		}
	}
	lines = lines[:min(len(lines), max(0, m.height-1))]
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.foot())
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "…")
	}
	return strings.Join(lines, "\n")
}

// foot is the last line: what is asked, what has become of a command, or the keys.
func (m *Model) foot() string {
	switch {
	case m.confirm != nil:
		return bold + fmt.Sprintf("stop job %s? y: yes, any other key: no", m.confirm.Job) + plain
	case m.note != "":
		return bold + m.note + plain
	case m.open && m.pane != nil:
		return dim + "↑↓ scroll  e why, again  esc back  p park or resume  x stop  q quit" + plain
	case m.open:
		return dim + "e why  esc back  p park or resume  x stop  q quit" + plain
	}
	return dim + fmt.Sprintf("↑↓ select  enter open  e why  s sort: %s  p park/resume  x stop  q quit",
		orders[m.order].name) + plain
}

// head is about the devices: a line as tensile jobs has it, and the memory by job: of each device where there are
// several, else with how it was.
func (m *Model) head() []string {
	var lines []string
	for line := range strings.SplitSeq(ansi.Wrap(report.BudgetLine(m.answer), m.width, ""), "\n") {
		lines = append(lines, bold+line+plain)
	}
	devices := memory.Devices(&m.answer)
	if lines = lines[:min(2, len(lines))]; len(devices) > 1 {
		return append(append(lines, m.devices(devices)...), "")
	}
	lines = append(lines, m.memory())
	limited, _ := report.Budgets(devices)
	if width := m.width - 12; width > 0 && len(m.device) > 1 && limited > 0 {
		lines = append(lines, "before      "+spark(m.device, width, 0, 1))
	}
	return append(lines, "")
}

// fills are what the parts of a bar are drawn with, by turns.
var fills = []string{"█", "▓", "▒"}

// fill is what the part of a job is drawn with; a blank: it has none.
func (m *Model) fill(r *wire.Record) string {
	n := 0
	for i := range m.answer.Jobs {
		if o := &m.answer.Jobs[i]; memory.ClaimOf(o).Arena > 0 {
			if o.Spec.Name == r.Spec.Name {
				return fills[n%len(fills)]
			}
			n++
		}
	}
	return " "
}

// maxDevices is how many devices have a line.
const maxDevices = 8

// devices has a line for each: its name, what is used of it, and that by job.
func (m *Model) devices(devices []wire.DeviceState) (lines []string) {
	shown := devices[:min(len(devices), maxDevices, max(1, m.height/3))]
	name := 0
	for i := range shown {
		name = max(name, min(20, ansi.StringWidth(shown[i].Name)))
	}
	for i := range shown {
		d := &shown[i]
		called := ansi.Truncate(text.Shown(d.Name), name, "…")
		claims, held := memory.DeviceClaims(&m.answer, devices, i)
		parts := held
		for k := range m.answer.Jobs {
			if r := &m.answer.Jobs[k]; memory.DeviceIndex(devices, r) == i {
				parts += memory.ClaimOf(r).Arena
			}
		}
		whole := d.Budget
		if whole == 0 {
			whole = d.Used
		}
		bar := m.bar(max(1, m.width-name-28), whole, d.Used, parts+d.Used-claims.Bytes()-held,
			func(r *wire.Record) bool { return memory.DeviceIndex(devices, r) == i })
		of := "-"
		if d.Budget > 0 {
			of = d.Budget.String()
		}
		lines = append(lines, fmt.Sprintf("%s%s  %10s of %-10s  %s", called,
			strings.Repeat(" ", name-ansi.StringWidth(called)), d.Used, of, bar))
	}
	if n := len(devices) - len(shown); n > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: tensile devices lists them", n))
	}
	return lines
}

// memory is a bar of the budget, with what is used of it.
func (m *Model) memory() string {
	used, all := report.UsedBudget(&m.answer)
	whole, _ := report.Budgets(memory.Devices(&m.answer))
	bar := m.bar(max(1, m.width-12), whole, used, all, func(*wire.Record) bool { return true })
	return fmt.Sprintf("%-10s  %s", used, bar)
}

// bar is the memory of a budget, so many cells wide: a part for each of some jobs, in the order of submission, and what
// is free. The parts of all add up to all, which is more than what is used where jobs share memory.
func (m *Model) bar(width int, whole, used, all graph.Bytes, has func(*wire.Record) bool) string {
	whole = max(whole, used, 1)
	cells := func(b graph.Bytes) int { return int(math.Round(float64(width) * float64(b) / float64(whole))) }
	var bar strings.Builder
	drawn := 0
	var sum graph.Bytes
	for i := range m.answer.Jobs {
		if !has(&m.answer.Jobs[i]) {
			continue
		}
		part := memory.ClaimOf(&m.answer.Jobs[i]).Arena
		if all > used { // jobs share: each has its part of what is taken
			part = graph.Bytes(float64(part) * float64(used) / float64(all))
		}
		sum += part
		to := min(width, cells(sum))
		bar.WriteString(strings.Repeat(m.fill(&m.answer.Jobs[i]), max(0, to-drawn)))
		drawn = max(drawn, to)
	}
	to := min(width, cells(used)) // contexts, and what is held
	bar.WriteString(strings.Repeat("░", max(0, to-drawn)))
	bar.WriteString(strings.Repeat("·", max(0, width-max(drawn, to))))
	return bar.String()
}

// ticks are the heights of a sparkline.
var ticks = []rune("▁▂▃▄▅▆▇█")

// spark draws the end of a series, between two values.
func spark(t trail, width int, low, high float64) string {
	t = t[max(0, len(t)-width):]
	var line strings.Builder
	for _, x := range t {
		share := 0.5
		if high > low {
			share = (x - low) / (high - low)
		}
		if math.IsNaN(share) {
			line.WriteByte('?')
			continue
		}
		share = max(0, min(1, share))
		line.WriteRune(ticks[int(math.Round(share*float64(len(ticks)-1)))])
	}
	return line.String()
}

// curve draws a series between its smallest and its largest value.
func curve(t trail, width int) string {
	t = t[max(0, len(t)-width):]
	if len(t) == 0 {
		return ""
	}
	finite := slices.DeleteFunc(slices.Clone(t), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	if len(finite) == 0 {
		return strings.Repeat("?", len(t))
	}
	low, high := slices.Min(finite), slices.Max(finite)
	if low == 0 && high == 0 {
		return "" // nothing has happened
	}
	return spark(t, width, low, high)
}

// progress is a bar of a job's iterations.
func progress(r *wire.Record, width int) string {
	full := 0
	if r.Spec.Iterations > 0 {
		full = min(width, width*r.Iteration/r.Spec.Iterations)
	}
	return strings.Repeat("█", full) + strings.Repeat("·", width-full)
}

// column is one of the table.
type column struct {
	head string
	left bool // flush
	cell func(m *Model, r *wire.Record) string
}

// columns are those of a terminal of 80 columns; more are what is added when there is room.
var columns = []column{
	{" ", true, func(m *Model, r *wire.Record) string { return m.fill(r) }},
	{"JOB", true, func(_ *Model, r *wire.Record) string { return ansi.Truncate(r.Spec.Name, 18, "…") }},
	{"STATE", true, func(_ *Model, r *wire.Record) string { return string(r.State) }},
	{"DONE", true, func(m *Model, r *wire.Record) string {
		if r.Spec.Script { // which ends when it does
			return fmt.Sprint(r.Iteration)
		}
		bar := progress(r, 8) + " "
		if len(m.answer.Devices) > 1 && m.width < wideFrom { // the device has its place
			bar = ""
		}
		return fmt.Sprintf("%s%3.0f%%", bar, 100*float64(r.Iteration)/float64(max(1, r.Spec.Iterations)))
	}},
	{"IT/S", false, func(_ *Model, r *wire.Record) string { rate, _ := report.Rate(r); return rate }},
	{"LEFT", false, func(_ *Model, r *wire.Record) string { _, left := report.Rate(r); return left }},
	{"LOSS", false, func(_ *Model, r *wire.Record) string { return report.LastLoss(r) }},
	{"ARENA", false, func(_ *Model, r *wire.Record) string { return report.ArenaInForce(r).String() }},
}

// where is the column of a controller with several devices.
var where = column{"DEVICE", true, func(m *Model, r *wire.Record) string {
	return ansi.Truncate(m.deviceOf(r), 16, "…")
}}

// deviceOf is the name of a job's device; "-": it has none yet.
func (m *Model) deviceOf(r *wire.Record) string {
	devices := memory.Devices(&m.answer)
	if on := memory.DeviceIndex(devices, r); on >= 0 {
		return text.Shown(devices[on].Name)
	}
	return "-"
}

var more = []column{
	{"PRIO", false, func(_ *Model, r *wire.Record) string { return fmt.Sprint(max(1, r.Spec.Priority)) }},
	{"AGE", false, func(m *Model, r *wire.Record) string { return report.Age(r, m.at) }},
	{"OWNER", true, func(_ *Model, r *wire.Record) string { return cmp.Or(r.Spec.Owner, "-") }},
	{"RATE", true, func(m *Model, r *wire.Record) string { return curve(m.jobs[r.Spec.Name].rate, 12) }},
}

// wideFrom is the width from which there are more columns.
const wideFrom = 110

// table lists the jobs in so many lines, with the selected one among them.
func (m *Model) table(height int) []string {
	cols := columns
	if len(m.answer.Devices) > 1 {
		cols = append(cols[:len(cols):len(cols)], where)
	}
	if m.width >= wideFrom {
		cols = slices.Concat(cols, more)
	}
	list := m.list()
	rows := [][]string{nil}
	for _, c := range cols {
		rows[0] = append(rows[0], c.head)
	}
	for _, r := range list {
		var row []string
		for _, c := range cols {
			row = append(row, c.cell(m, r))
		}
		rows = append(rows, row)
	}
	lines := align(rows, cols)
	lines[0] = bold + lines[0] + plain
	for i, r := range list {
		line := ansi.Truncate(lines[i+1], m.width, "…")
		if r.Spec.Name == m.selected {
			line = reverse + line + strings.Repeat(" ", max(0, m.width-ansi.StringWidth(line))) + plain
		}
		lines[i+1] = line
	}
	if room := height - 1; len(list) > room && room > 0 {
		at := slices.IndexFunc(list, func(r *wire.Record) bool { return r.Spec.Name == m.selected })
		from := max(0, min(at-room/2, len(list)-room))
		lines = append(lines[:1:1], lines[1+from:1+from+room]...)
	}
	if len(list) == 0 {
		lines = append(lines, "no jobs: tensile submit MODEL")
	}
	return lines
}

// align puts rows into columns, two blanks apart.
func align(rows [][]string, cols []column) []string {
	widths := make([]int, len(cols))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		var line strings.Builder
		for k, cell := range row {
			if k > 0 {
				line.WriteString("  ")
			}
			blanks := strings.Repeat(" ", widths[k]-ansi.StringWidth(cell))
			if cols[k].left {
				line.WriteString(cell + blanks)
			} else {
				line.WriteString(blanks + cell)
			}
		}
		lines[i] = strings.TrimRight(line.String(), " ")
	}
	return lines
}

// detailLines shows the selected job in so many lines, or what its explanation says.
func (m *Model) detailLines(height int) []string {
	r := m.record()
	title := fmt.Sprintf("%s%s%s (%s) is %s", bold, r.Spec.Name, plain, r.Spec.Model, r.State)
	if r.Reason != "" {
		title += ": " + r.Reason
	}
	if m.pane != nil {
		lines := []string{title, ""}
		for _, line := range m.pane[m.scroll:] {
			lines = append(lines, strings.Split(ansi.Wrap(line, m.width, ""), "\n")...)
		}
		return lines[:min(len(lines), max(0, height))]
	}
	h := m.jobs[r.Spec.Name]
	rate, left := report.Rate(r)
	width := max(1, m.width-28)
	iterations := fmt.Sprint(r.Iteration)
	if of := r.Spec.Iterations; of > 0 { // else it is a script, which knows
		iterations += fmt.Sprintf(" of %d  %s", of, progress(r, min(30, width)))
	}
	facts := [][2]string{
		{"iteration", iterations},
		{"it/s", fmt.Sprintf("%-12s%s", rate, curve(h.rate, width))},
		{"loss", fmt.Sprintf("%-12s%s", report.LastLoss(r), curve(h.loss, width))},
		{"left", left},
		{"age", report.Age(r, m.at)},
		{"owner", cmp.Or(r.Spec.Owner, "an administrator")},
		{"priority", fmt.Sprint(max(1, r.Spec.Priority))},
		{"executor", cmp.Or(r.Executor, "-")},
		{"device", m.deviceOf(r)},
		{"memory", fmt.Sprintf("arena %s, slot peak %s, claim %s, host %s", report.ArenaInForce(r), r.SlotPeak,
			r.Claim, r.Host)},
		{"plans", fmt.Sprintf("%d in force so far; the newest: %s", r.Plans, cmp.Or(r.PlanReason, "-"))},
		{"checkpoint", report.CheckpointedIterations(r)},
	}
	if r.Sharing != wire.NoSharing {
		facts = append(facts, [2]string{"sharing", fmt.Sprintf("by %s: %s between iterations, waits %v in each, "+
			"speed %s", r.Sharing, r.Base, text.Duration(r.Gate), report.ExpectedSpeed(r))})
	}
	lines := []string{title, ""}
	for _, f := range facts {
		lines = append(lines, fmt.Sprintf("  %-12s%s", f[0], f[1]))
	}
	return lines[:min(len(lines), max(0, height))]
}
