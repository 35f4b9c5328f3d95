package cpu

import (
	"fmt"
	"slices"
	"syscall"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/plan/program"
)

// Page implements device.Pager.
func (d *Device) Page() graph.Bytes { return d.page }

// Hold implements device.PagedJob. A page that is not held has no memory, and its use is a fault. With the invariants
// tag a new one is full of NaN, without it is zero.
func (j *job) Hold(pages program.Pages) error {
	if !j.paged {
		if len(pages) > 0 || len(j.arena.bytes) > 0 {
			panic(fmt.Sprintf("cpu: the first Hold of job %q is of pages %v, in an arena of %d bytes: want none",
				j.options.Name, pages, len(j.arena.bytes)))
		}
		j.paged = true
		return nil
	}
	if n := len(pages); n > 0 && (pages[0].From < 0 || (pages[n-1].To-1)*int(j.device.page) >= len(j.arena.bytes)) {
		panic(fmt.Sprintf("cpu: Hold of pages %v by job %q, in an arena of %d bytes and pages of %d",
			pages, j.options.Name, len(j.arena.bytes), j.device.page))
	}
	added, dropped := pages.Without(j.held), j.held.Without(pages)
	j.mustNotUse(dropped)
	more := j.bytesIn(added) - j.bytesIn(dropped)
	if err := j.device.claim(j.options.Name, "pages of an arena", more); err != nil {
		return err
	}
	for i, r := range added {
		if err := backMemory(j.pages(r)); err != nil {
			for _, r := range added[:i] {
				release(j.pages(r))
			}
			j.device.unclaim(more)
			return fmt.Errorf("job %s: back pages %v of its arena: %w", j.options.Name, r, err)
		}
	}
	for _, r := range dropped {
		release(j.pages(r))
	}
	j.held = slices.Clone(pages)
	if invariants.Enabled {
		for _, r := range added {
			poison(device.Memory(j.pages(r)).Float32())
		}
	}
	return nil
}

// mustNotUse panics if a command that was issued and has not ended uses one of some pages.
func (j *job) mustNotUse(pages program.Pages) {
	if len(pages) == 0 || j.loaded == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if c := j.lanes.Using(j.loaded.program, pages, j.device.page); c != nil {
		panic(fmt.Sprintf("cpu: Hold by job %q takes pages %v, which a %s that was issued uses", j.options.Name, pages,
			c.Kind))
	}
}

// backMemory has the system back memory when it is used, by large pages where it has them. release gives its pages
// back.
func backMemory(b []byte) error { return syscall.Mprotect(b, syscall.PROT_READ|syscall.PROT_WRITE) }

func release(b []byte) {
	err := syscall.Mprotect(b, syscall.PROT_NONE)
	if err == nil {
		err = syscall.Madvise(b, syscall.MADV_DONTNEED)
	}
	if err != nil {
		panic(fmt.Sprintf("cpu: give back %d bytes of an arena: %v", len(b), err))
	}
}

// adviseLarge has the system use large pages.
func adviseLarge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) } // without, it is only slower
