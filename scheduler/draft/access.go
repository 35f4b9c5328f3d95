package draft

import (
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// What a policy can read of a draft. Slices belong to the draft: read only, and valid until it changes.

// Job returns whose draft it is, and Graph the job's graph.
func (d *Draft) Job() *scheduler.Job { return d.job }
func (d *Draft) Graph() *graph.Graph { return d.g }

// Copies returns how many equal jobs the draft stands for.
func (d *Draft) Copies() graph.Bytes { return d.copies }

// Steps returns the executions of ops, in issue order.
func (d *Draft) Steps() []Step { return d.steps }

// Gaps returns all gaps, First the first one of a storage, nil if it has none.
func (d *Draft) Gaps() []*Gap                 { return d.gaps }
func (d *Draft) First(s graph.StorageID) *Gap { return d.head[s] }

// Writes returns the slots of the first executions that make a version of a storage, ascending; LastUse the last slot
// that touches it, or -1.
func (d *Draft) Writes(s graph.StorageID) []int32 { return d.writes.slotsOf(s) }
func (d *Draft) LastUse(s graph.StorageID) int    { return int(d.lastUse[s]) }

// Clean reports whether the host has what a gap holds, by what is decided: a swap of it copies nothing out.
func (d *Draft) Clean(x *Gap) bool { return d.clean(x) }

// Latency returns how long an op takes, Period an iteration in which no swap stalls.
func (d *Draft) Latency(op graph.OpID) time.Duration { return d.latency[op] }
func (d *Draft) Period() time.Duration               { return d.period }

// Exact reports whether copies take place as they are booked.
func (d *Draft) Exact() bool { return d.exact }

// Links returns the job's share of the link.
func (d *Draft) Links() (out, in cost.Link) { return d.out, d.in }

// Footprint returns what is on the device, per slot.
func (d *Draft) Footprint() []graph.Bytes { return d.curve.Slots() }

// Count adds steps to the work of the session.
func (d *Draft) Count(steps int) { d.meter.count(steps) }
