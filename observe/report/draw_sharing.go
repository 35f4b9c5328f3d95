package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"tensile/graph"
)

// SharingPanel is the memory of jobs over some time.
type SharingPanel struct {
	Name      string
	Capacity  graph.Bytes
	From, For time.Duration
	Jobs      []SharingJob
}

// SharingJob is what a job held over time.
type SharingJob struct {
	Name  string
	Steps []Held
}

// Held is what a job holds from a time on.
type Held struct {
	From time.Duration
	Size graph.Bytes
}

// DrawSharing writes an SVG of panels below each other, all in the same scale of memory: what each job holds, stacked,
// and as a line the capacity.
func DrawSharing(w io.Writer, title string, panels []SharingPanel) {
	const width, height, gap = 800.0, 180.0, 44.0
	d := &drawing{w: w}
	var all graph.Bytes
	for _, p := range panels {
		d.top = max(d.top, p.Capacity)
		all += p.Capacity
	}
	scale := height / float64(max(1, d.top))
	fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "+
		"font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", drawLeft+width+160,
		drawTop+scale*float64(all)+gap*float64(len(panels)))
	d.text(drawLeft, 20, "start", title+": memory over time")
	bottom := drawTop - gap + 16
	for i, p := range panels {
		top := bottom + gap
		bottom = top + scale*float64(p.Capacity)
		y := func(b graph.Bytes) float64 { return bottom - scale*float64(b) }
		x := func(t time.Duration) float64 {
			return drawLeft + width*float64(min(max(0, t-p.From), p.For))/float64(max(1, p.For))
		}
		d.text(drawLeft, top-6, "start", p.Name)
		d.text(drawLeft-6, y(0)+4, "end", "0")
		d.text(drawLeft-6, y(p.Capacity)+4, "end", p.Capacity.String())
		d.text(drawLeft+width, y(0)+16, "end", p.For.Round(time.Millisecond).String())
		if p.For > 0 {
			d.stack(p, x, y)
		}
		for _, line := range []struct {
			colour string
			at     graph.Bytes
		}{{"#cc3311", p.Capacity}, {"black", 0}} {
			fmt.Fprintf(w, "<path stroke=\"%s\" d=\"M%.1f %.1fH%.1f\"/>\n", line.colour, drawLeft, y(line.at),
				drawLeft+width)
		}
		for k := 0; i == 0 && k < len(p.Jobs); k++ {
			fmt.Fprintf(w, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" fill=\"%s\"/>\n", drawLeft+width+16,
				top+20*float64(k), sharingColours[k%len(sharingColours)])
			d.text(drawLeft+width+36, top+20*float64(k)+10, "start", p.Jobs[k].Name)
		}
	}
	fmt.Fprintln(w, "</svg>")
}

var sharingColours = []string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"}

// stack draws the jobs of a panel on top of each other: the last one with all below it first, then those below it. Of
// what changes within a column it draws the most.
func (d *drawing) stack(p SharingPanel, x func(time.Duration) float64, y func(graph.Bytes) float64) {
	const columns = 400
	for k := len(p.Jobs) - 1; k >= 0; k-- {
		var most [columns]graph.Bytes
		held := make([]graph.Bytes, k+1)
		var sum graph.Bytes
		all := memoryChanges(p.Jobs[:k+1])
		for i, c := range all {
			sum += c.Size - held[c.job]
			held[c.job] = c.Size
			until := p.From + p.For
			if i+1 < len(all) {
				until = min(until, all[i+1].From)
			}
			from := max(0, c.From-p.From)
			for at := int(from * columns / p.For); c.From < until && at < columns; at++ {
				if p.From+p.For*time.Duration(at)/columns >= until {
					break
				}
				most[at] = max(most[at], sum)
			}
		}
		fmt.Fprintf(d.w, "<path fill=\"%s\" d=\"M%.0f %.1f", sharingColours[k%len(sharingColours)], x(p.From), y(0))
		for at, b := range most {
			if at == 0 || b != most[at-1] {
				fmt.Fprintf(d.w, "H%.0fV%.1f", x(p.From+p.For*time.Duration(at)/columns), y(b))
			}
		}
		fmt.Fprintf(d.w, "H%.0fV%.1fZ\"/>\n", x(p.From+p.For), y(0))
	}
}

// change is what a job holds from a time on.
type change struct {
	Held
	job int
}

// memoryChanges are those of all jobs in the order of time.
func memoryChanges(jobs []SharingJob) (all []change) {
	for k, j := range jobs {
		for _, h := range j.Steps {
			all = append(all, change{h, k})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.From, b.From) })
	return all
}
