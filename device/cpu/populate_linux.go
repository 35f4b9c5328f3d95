package cpu

import (
	"slices"
	"syscall"
)

// populate gives memory its pages, large ones where the system has them, so that an arena costs its time on the way out
// of Home and not in the middle of an iteration. Where the kernel does not know how, pages appear when they are first
// used.
func populate(m memory) {
	if m.mapping == nil {
		return
	}
	page := syscall.Getpagesize()
	inner := m.mapping[page : len(m.mapping)-page]
	const populateWrite = 23 // MADV_POPULATE_WRITE, since Linux 5.14
	_ = syscall.Madvise(inner, syscall.MADV_HUGEPAGE)
	const piece = 8 << 20 // the process cannot map anything else during a call
	for part := range slices.Chunk(inner, piece) {
		_ = syscall.Madvise(part, populateWrite)
	}
}
