package controller

import (
	"fmt"

	"tensile/graph"
	"tensile/models/external"
	"tensile/plan/program"
	"tensile/wire"
)

// Host memory is claimed as arenas are: a job counts with the most that it may have there by what it was granted. From
// its first grant on it keeps Home there, and room for a snapshot if it takes checkpoints; what its plan copies out
// within an iteration comes on top. A job that is parked in memory keeps Home.

// Snapshot is what checkpoints of a job at such an interval need beside its host slots: its persistent storages once
// more.
func Snapshot(every wire.Interval, g *graph.Graph) graph.Bytes {
	if every == (wire.Interval{}) {
		return 0
	}
	_, size := program.SnapshotSlots(g)
	return program.HostBytes(size)
}

// findHome works out what the job has on the host wherever it is, whatever its plan, and what a script's graph takes of
// the device without one.
func (j *job) findHome() {
	j.beside = Snapshot(j.record.Spec.Checkpoint, j.graph)
	_, kept := program.HostSlots(j.graph)
	j.home = kept + j.beside
	if j.record.Spec.Script {
		j.need = external.Need(j.graph)
	}
}

// onHost is what the job has on the host under a layout.
func (j *job) onHost(l *layout) graph.Bytes { return l.Host + j.beside }

// hostClaim is what the job counts with on the host.
func (j *job) hostClaim() graph.Bytes {
	var largest graph.Bytes
	switch {
	case j.record.State.Over():
		return 0
	case j.rests():
		largest = j.home
	}
	for _, l := range j.layouts {
		if l.granted {
			largest = max(largest, j.onHost(l))
		}
	}
	return largest
}

// rests reports whether the job is parked in memory, or waits there to go on.
func (j *job) rests() bool {
	return j.record.Executor != "" && j.record.Park == wire.InMemory
}

// hostClaims is what all jobs count with on the host, and what executors out of reach may have there.
func (d *domain) hostClaims() (sum graph.Bytes) {
	for j := range d.jobs() {
		sum += j.hostClaim()
	}
	_, held := d.held()
	return sum + held
}

// hostReserved is the part of the budget of host memory that jobs have which are not among those that are planned for.
func (d *domain) hostReserved(planned []*job) (sum graph.Bytes) {
	among := make(map[*job]bool, len(planned))
	for _, j := range planned {
		among[j] = true
	}
	for j := range d.jobs() {
		if !among[j] {
			sum += j.hostClaim()
		}
	}
	_, held := d.held()
	return sum + held
}

// hostFull reports whether the newest plans of all jobs do not fit the host together.
func (d *domain) hostFull() bool {
	if d.config.HostMemory == 0 {
		return false
	}
	planned := d.reachable()
	sum := d.hostReserved(planned)
	for _, j := range planned {
		if l := j.newest(); l != nil {
			sum += j.onHost(l)
		}
	}
	return sum > d.config.HostMemory
}

// untie parks a job whose plan takes more of one memory and less of the other, while another waits for what it has and
// has what it waits for. It goes on with the plans that are made then.
func (d *domain) untie() {
	if d.config.HostMemory == 0 || d.errand != nil {
		return
	}
	var tied, other *job
	for _, j := range d.active() {
		l := j.newest()
		switch {
		case !j.goesOn() || j.record.Granted > j.record.Applied:
			return // it is about to give something back, or to take what it was granted
		case l == nil || l.granted:
		case j.record.State == wire.JobRunning && (!j.claim().within(j.with(l)) || j.hostClaim() > j.onHost(l)) &&
			tied == nil:
			tied = j
		default:
			other = j
		}
	}
	if tied == nil || other == nil {
		return
	}
	tied.record.Preempted, d.m.changed = true, true
	d.m.goHome(tied, wire.InMemory)
	d.m.event(Event{Kind: Preempted, Job: tied.record.Spec.Name, Reason: other.record.Spec.Name})
}

// waitsFor is why a job that has a plan waits for other jobs.
func (d *domain) waitsFor(j *job, l *layout) string {
	if !d.fits(j, j.with(l)) {
		return fmt.Sprintf("waits for %s that other jobs are giving back", l.Wire.Arena)
	}
	return fmt.Sprintf("waits for %s of host memory that other jobs are giving back", j.onHost(l))
}
