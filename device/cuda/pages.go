package cuda

import (
	"errors"
	"fmt"
	"slices"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/program"
)

// Pager is a device whose driver can map memory. It implements device.Pager.
type Pager struct{ *Device }

// Page is the unit in which the driver maps memory.
func (p Pager) Page() graph.Bytes { return p.properties.Page }

// Paging returns d as a Pager if its driver can map memory, and else as it is.
func (d *Device) Paging() device.Device {
	if d.properties.Page == 0 {
		return d
	}
	return Pager{d}
}

// wholePages rounds a size up.
func (d *Device) wholePages(size graph.Bytes) graph.Bytes {
	page := d.properties.Page
	return (size + page - 1) / page * page
}

// Hold implements device.PagedJob. It returns a device.OutOfMemoryError if the device has no room for the pages. New
// pages are mapped before others are given back.
func (j *job) Hold(pages program.Pages) error {
	d, n := j.device, len(pages)
	page := d.properties.Page
	switch {
	case j.closed || page == 0:
		panic(fmt.Sprintf("cuda: Hold of job %q, which is closed, or of a device that maps no memory", j.options.Name))
	case !j.paged && (n > 0 || j.reserved > 0):
		panic(fmt.Sprintf("cuda: the first Hold of job %q is of pages %v, in an arena of %d bytes: want none",
			j.options.Name, pages, j.reserved))
	case n > 0 && (pages[0].From < 0 || graph.Bytes(pages[n-1].To-1)*page >= j.reserved):
		panic(fmt.Sprintf("cuda: Hold of pages %v by job %q, in an arena of %d bytes and pages of %d", pages,
			j.options.Name, j.reserved, page))
	}
	defer d.enter()()
	if d.err != nil {
		return d.failure()
	}
	j.paged = true
	added, dropped := pages.Without(j.held), j.held.Without(pages)
	j.mustNotUse(pages, dropped)
	for i, r := range added {
		err := d.mapPages(j.arena, r)
		if err == nil {
			continue
		}
		for _, r := range added[:i] {
			d.fail(d.unmap(j.arena, r))
		}
		if d.err != nil {
			return errors.Join(err, d.failure())
		}
		return j.noRoom(graph.Bytes(pages.Count())*page, err)
	}
	for _, r := range dropped {
		if d.fail(d.unmap(j.arena, r)); d.err != nil {
			return fmt.Errorf("job %s: give back pages %v of its arena: %w", j.options.Name, r, d.failure())
		}
	}
	j.held = slices.Clone(pages)
	return nil
}

// mustHold panics unless all that some commands use is held.
func (j *job) mustHold(part []program.Command) {
	if !j.paged {
		return
	}
	for i := range part {
		if !j.loaded.program.Within(&part[i], j.held, j.device.properties.Page) {
			panic(fmt.Sprintf("cuda: Issue to job %q of a %s that uses other pages than the job holds, which are %v",
				j.options.Name, part[i].Kind, j.held))
		}
	}
}

// mustNotUse panics if a command that was issued and has not ended uses pages that are to be given back.
func (j *job) mustNotUse(held, dropped program.Pages) {
	if len(dropped) == 0 || j.rests() {
		return
	}
	p, page := j.loaded.program, j.device.properties.Page
	c := j.ended.Using(p, dropped, page)
	for _, is := range j.queue {
		for i := is.from; i < is.to && c == nil; i++ {
			if next := &is.section.Commands[i]; !p.Within(next, held, page) {
				c = next
			}
		}
	}
	if c != nil {
		panic(fmt.Sprintf("cuda: Hold by job %q takes pages %v, which a %s that was issued uses", j.options.Name,
			dropped, c.Kind))
	}
}

// mapPages maps memory to pages of an arena, each its own, so that any of them can be unmapped. After an error none is
// mapped.
func (d *Device) mapPages(arena Address, r program.PageRange) error {
	for n := r.From; n < r.To; n++ {
		if err := d.mapPage(arena, n); err != nil {
			return errors.Join(err, d.unmap(arena, program.PageRange{From: r.From, To: n}))
		}
	}
	if err := d.driver.Access(d.pages(arena, r)); err != nil {
		return errors.Join(err, d.unmap(arena, r))
	}
	return nil
}

// mapPage maps memory to a page, which ends when it is unmapped.
func (d *Device) mapPage(arena Address, n int) error {
	at, size := d.pages(arena, program.PageRange{From: n, To: n + 1})
	m, err := d.driver.CreateMemory(size)
	if err != nil {
		return err
	}
	if err := d.driver.Map(at, size, m); err != nil {
		return errors.Join(err, d.driver.ReleaseMemory(m))
	}
	if err := d.driver.ReleaseMemory(m); err != nil {
		return errors.Join(err, d.driver.Unmap(at, size))
	}
	return nil
}

// unmap gives the memory of pages back.
func (d *Device) unmap(arena Address, r program.PageRange) error {
	var problems []error
	for n := r.From; n < r.To; n++ {
		problems = append(problems, d.driver.Unmap(d.pages(arena, program.PageRange{From: n, To: n + 1})))
	}
	return errors.Join(problems...)
}

// pages returns where pages of an arena are.
func (d *Device) pages(arena Address, r program.PageRange) (Address, graph.Bytes) {
	page := d.properties.Page
	return arena + Address(r.From)*Address(page), graph.Bytes(r.To-r.From) * page
}
