package report

import (
	"fmt"
	"html"
	"io"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan/program"
)

// The drawing's measures, in its own units.
const (
	drawWidth  = 1200.0
	drawHeight = 360.0
	drawLeft   = 90.0
	drawTop    = 40.0
	drawLane   = 26.0
)

// Draw writes an SVG of a job's plan: what is on the device over the steps, in grey without a plan (before) and in blue
// with it (after), and below the curves what the lanes do, at the steps during which they do it. The plan may have more
// steps than the job has ops: both curves have the same width.
func Draw(w io.Writer, name string, before, after []graph.Bytes, p *program.Program, t program.Timing) {
	d := &drawing{w: w, slots: len(after), top: max(1, slices.Max(before), slices.Max(after))}
	height := drawTop + drawHeight + 4*drawLane + 50
	fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "+
		"font-size=\"13\">\n", drawLeft+drawWidth+20, height)
	fmt.Fprintf(w, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n")
	d.text(drawLeft, 24, "start", fmt.Sprintf("%s: memory over %d steps; peak %s without a plan, %s with it", name,
		len(after), slices.Max(before), slices.Max(after)))
	d.fillArea("#c8c8c8", before)
	d.fillArea("#4477aa", after)
	for i := range 5 {
		share := float64(i) / 4
		y := drawTop + drawHeight*(1-share)
		fmt.Fprintf(w, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#00000022\"/>\n", drawLeft, y,
			drawLeft+drawWidth, y)
		d.text(drawLeft-6, y+4, "end", graph.Bytes(share*float64(d.top)).String())
	}
	d.lanes(p, t)
	fmt.Fprintln(w, "</svg>")
}

type drawing struct {
	w     io.Writer
	slots int         // steps of the plan
	top   graph.Bytes // the largest value of the memory axis
}

func (d *drawing) text(x, y float64, anchor, s string) {
	fmt.Fprintf(d.w, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, html.EscapeString(s))
}

// fillArea fills what lies below a curve of steps.
func (d *drawing) fillArea(colour string, slots []graph.Bytes) {
	fmt.Fprintf(d.w, "<path fill=\"%s\" d=\"M%.1f %.1f", colour, drawLeft, drawTop+drawHeight)
	for i, b := range slots {
		y := drawTop + drawHeight*(1-float64(b)/float64(d.top))
		fmt.Fprintf(d.w, "L%.2f %.1fL%.2f %.1f", drawLeft+drawWidth*float64(i)/float64(len(slots)), y,
			drawLeft+drawWidth*float64(i+1)/float64(len(slots)), y)
	}
	fmt.Fprintf(d.w, "L%.1f %.1fZ\"/>\n", drawLeft+drawWidth, drawTop+drawHeight)
}

// lanes draws what runs when: kernels that run again, copies, and where compute stands still.
func (d *drawing) lanes(p *program.Program, t program.Timing) {
	rows := []struct{ name, colour string }{{"again", "#aa3377"}, {"out", "#ccbb44"}, {"in", "#228833"},
		{"stall", "#ee6677"}}
	for i, r := range rows {
		y := drawTop + drawHeight + 20 + float64(i)*drawLane
		d.text(drawLeft-6, y+drawLane*0.6, "end", r.name)
		fmt.Fprintf(d.w, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#f4f4f4\"/>\n", drawLeft, y,
			drawWidth, drawLane-4)
	}
	c := newSlotClock(p, t)
	bar := func(row int, from, to time.Duration) {
		x, end := c.slot(from)/float64(d.slots)*drawWidth, c.slot(to)/float64(d.slots)*drawWidth
		fmt.Fprintf(d.w, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"/>\n", drawLeft+x,
			drawTop+drawHeight+20+float64(row)*drawLane, max(0.3, end-x), drawLane-4, rows[row].colour)
	}
	ran := make(map[graph.OpID]bool)
	var free time.Duration
	for i, cmd := range p.Body.Commands {
		switch cmd.Kind {
		case program.Kernel:
			if ran[cmd.Op] {
				bar(0, t.Start[i], t.End[i])
			}
			if t.Start[i] > free {
				bar(3, free, t.Start[i])
			}
			ran[cmd.Op], free = true, t.End[i]
		case program.Out:
			bar(1, t.Start[i], t.End[i])
		case program.In:
			bar(2, t.Start[i], t.End[i])
		}
	}
}

// slotClock tells in which step a time lies, and how far.
type slotClock struct{ ends []time.Duration }

func newSlotClock(p *program.Program, t program.Timing) *slotClock {
	c := &slotClock{ends: make([]time.Duration, len(p.Plan.Steps))}
	for i, cmd := range p.Body.Commands {
		switch {
		case cmd.Kind == program.Kernel:
			c.ends[cmd.Slot] = t.End[i]
		case cmd.Kind == program.Reduce && cmd.Slot > 0: // beside the kernels: its slot takes no time of theirs
			c.ends[cmd.Slot] = c.ends[cmd.Slot-1]
		}
	}
	return c
}

// slot returns the place of a time among the steps: 2.5 is the middle of step 2. A wait counts with the step after it.
func (c *slotClock) slot(at time.Duration) float64 {
	slot, _ := slices.BinarySearch(c.ends, at)
	if slot == len(c.ends) || at < 0 {
		return float64(slot)
	}
	var begin time.Duration
	if slot > 0 {
		begin = c.ends[slot-1]
	}
	return float64(slot) + float64(at-begin)/float64(max(1, c.ends[slot]-begin))
}
