package device

import (
	"tensile/graph"
	"tensile/plan/program"
)

// Pager is a device that can back a part of an arena. Its jobs are of type PagedJob.
type Pager interface {
	Device

	// Page is the unit in which arenas are backed. Page n of an arena is its bytes from n pages on, the last one of an
	// arena perhaps in part.
	Page() graph.Bytes
}

// PagedJob is a job whose arena can be backed in part.
type PagedJob interface {
	Job

	// Hold has exactly these pages of the arena backed by memory from now on. What a page held that stays is kept, that
	// of a new one is undefined. Pages that commands use which were issued and have not ended must be among them. After
	// an error, which is that the device has no memory for them, the job holds what it held before.
	//
	// The first Hold of a job comes before its first Reserve and is of no pages. From then on an arena holds no page
	// when Reserve has made it, and Reserve takes no memory of the device.
	Hold(pages program.Pages) error
}
