package sim

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/plan/program"
)

// defaultPage is that of CUDA devices.
const defaultPage = 2 * graph.MiB

// Page implements device.Pager.
func (d *Device) Page() graph.Bytes { return d.page }

// PeakHeld returns the most bytes of the device that all jobs had together at any time: their arenas, and of arenas
// that are backed in part the pages that were held.
func (d *Device) PeakHeld() graph.Bytes { return d.most }

// Hold implements device.PagedJob. It fails if all jobs together would have more than the device's memory, if that is
// known.
func (j *job) Hold(pages program.Pages) error {
	page := j.device.page
	switch n := len(pages); {
	case j.closed:
		panic(fmt.Sprintf("sim: Hold of job %q, which is closed", j.name))
	case !j.paged && (n > 0 || j.arena > 0):
		panic(fmt.Sprintf("sim: the first Hold of job %q is of pages %v, in an arena of %d bytes: want none", j.name,
			pages, j.arena))
	case n > 0 && (pages[0].From < 0 || graph.Bytes(pages[n-1].To-1)*page >= j.arena):
		panic(fmt.Sprintf("sim: Hold of pages %v by job %q, in an arena of %d bytes and pages of %d", pages, j.name,
			j.arena, page))
	}
	j.paged = true
	if dropped := j.held.Without(pages); len(dropped) > 0 && j.program != nil {
		if c := j.lanes.Using(j.program, dropped, page); c != nil {
			panic(fmt.Sprintf("sim: Hold by job %q takes pages %v, which a %s that was issued uses", j.name, dropped,
				c.Kind))
		}
	}
	if err := j.setHeld(graph.Bytes(pages.Count()) * page); err != nil {
		return err
	}
	j.held = slices.Clone(pages)
	return nil
}

// setHeld sets how much of the device's memory a job holds.
func (j *job) setHeld(size graph.Bytes) error {
	d, all := j.device, size
	for _, other := range d.jobs {
		if other != j {
			all += other.has
		}
	}
	if memory := d.facts.Memory; memory > 0 && all > memory && size > j.has && d.options.Fault == 0 {
		return fmt.Errorf("sim: reserve %s for job %q: %s of the %s of %s are free; give the job a smaller budget",
			size, j.name, memory-(all-size), memory, d.Name())
	}
	j.has, d.most = size, max(d.most, all)
	return nil
}

// mustHold panics unless all that some commands use is held.
func (j *job) mustHold(part []program.Command) {
	for i := range part {
		if j.paged && !j.program.Within(&part[i], j.held, j.device.page) {
			panic(fmt.Sprintf("sim: Issue to job %q of a %s that uses other pages than the job holds, which are %v",
				j.name, part[i].Kind, j.held))
		}
	}
}
