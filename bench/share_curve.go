package bench

import (
	"fmt"
	"io"
	"strings"

	"tensile/device/lease"
	"tensile/graph"
	"tensile/observe/report"
)

// ShareCurve is what jobs of a row held over some of the time that was measured.
type ShareCurve struct {
	Jobs  string // of the row
	Panel report.SharingPanel
}

// curve takes from a run what the jobs held while each could do two iterations alone, of turns ten times as long.
func (m *shared) curve(row *ShareRow, run *sharedRun) ShareCurve {
	const rounds = 2
	p := report.SharingPanel{Capacity: row.Capacity, From: run.first,
		Name: fmt.Sprintf("%s: %s, throughput %.2f", row.Sharing, row.Capacity, row.Alternating)}
	for _, alone := range m.solo {
		p.For += rounds * alone
	}
	if row.Sharing == takingTurns { // of ten iterations
		p.For *= 10
	}
	for i, t := range m.tasks {
		steps := []report.Held{{Size: m.programs[i].Program().Arena}} // of none
		if run.holds != nil {
			steps = nil
			for _, h := range run.holds[lease.Job(t.Name)] {
				steps = append(steps, report.Held{From: h.from, Size: graph.Bytes(h.pages) * m.planner.Page})
			}
		}
		p.Jobs = append(p.Jobs, report.SharingJob{Name: t.Name, Steps: steps})
	}
	return ShareCurve{Jobs: row.Jobs, Panel: p}
}

// Draw writes an SVG of the memory over time of jobs of the report: a panel per row.
func (r *ShareReport) Draw(w io.Writer, jobs string) {
	var panels []report.SharingPanel
	for _, c := range r.Curves {
		if c.Jobs == jobs {
			panels = append(panels, c.Panel)
		}
	}
	report.DrawSharing(w, strings.ReplaceAll(jobs, " ", ", ")+" on "+r.Device, panels)
}
