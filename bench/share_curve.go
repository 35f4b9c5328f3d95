package bench

import (
	"fmt"
	"io"
	"strings"

	"tensile/device/lease"
	"tensile/graph"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/plan/proof"
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
	p.Jobs = heldByJobs(m.tasks, m.programs, run.holds, m.planner.Page)
	return ShareCurve{Jobs: row.Jobs, Panel: p}
}

// heldByJobs is what jobs held over time: their arenas, or what a lease recorded.
func heldByJobs(tasks []task.Task, programs []proof.Proven, holds map[lease.Job][]hold, page graph.Bytes,
) []report.SharingJob {
	var jobs []report.SharingJob
	for i, t := range tasks {
		steps := []report.Held{{Size: programs[i].Program().Arena}}
		if holds != nil {
			steps = nil
			for _, h := range holds[lease.Job(t.Name)] {
				steps = append(steps, report.Held{From: h.from, Size: graph.Bytes(h.pages) * page})
			}
		}
		jobs = append(jobs, report.SharingJob{Name: t.Name, Steps: steps})
	}
	return jobs
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
