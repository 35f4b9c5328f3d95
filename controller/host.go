package controller

import (
	"fmt"

	"tensile/graph"
	"tensile/models/external"
	"tensile/plan/program"
	"tensile/wire"
)

// Host memory is claimed as arenas are: a job counts with the most that it may have there by what it was granted. From
// its first grant on it keeps Home there, and room for a snapshot if it takes checkpoints. What its plan copies out
// within an iteration comes on top. A job that is parked in memory keeps Home.

// Snapshot is how many bytes checkpoints of a job at such an interval need beside its host slots: its persistent
// storages once more.
func Snapshot(every wire.Interval, g *graph.Graph) graph.Bytes {
	if every == (wire.Interval{}) {
		return 0
	}
	_, size := program.SnapshotSlots(g)
	return program.HostBytes(size)
}

// measureHome computes what the job has on the host whatever its plan, and what a script's graph takes of the device
// without one.
func (j *job) measureHome() {
	j.snapshotBytes = Snapshot(j.record.Spec.Checkpoint, j.graph)
	_, kept := program.HostSlots(j.graph)
	j.homeBytes = kept + j.snapshotBytes
	if j.record.Spec.Script {
		j.scriptNeed = external.Need(j.graph)
	}
}

// hostBytes is what the job has on the host under a layout.
func (j *job) hostBytes(l *layout) graph.Bytes { return l.Host + j.snapshotBytes }

// hostClaim is what the job claims on the host.
func (j *job) hostClaim() graph.Bytes {
	var largest graph.Bytes
	switch {
	case j.record.State.Over():
		return 0
	case j.restsInMemory():
		largest = j.homeBytes
	}
	for _, l := range j.layouts {
		if l.granted {
			largest = max(largest, j.hostBytes(l))
		}
	}
	return largest
}

// restsInMemory reports whether the job is parked in memory, or waits there to go on.
func (j *job) restsInMemory() bool {
	return j.record.Executor != "" && j.record.Park == wire.InMemory
}

// totalHostClaims is what all jobs claim on the host, and what executors out of reach may have there.
func (d *domain) totalHostClaims() (sum graph.Bytes) {
	for j := range d.jobs() {
		sum += j.hostClaim()
	}
	_, held := d.reservations()
	return sum + held
}

// hostReserved is the part of host memory that is claimed by others than the jobs that are planned for.
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
	_, held := d.reservations()
	return sum + held
}

// isHostOverfull reports whether the newest plans of all jobs do not fit the host together.
func (d *domain) isHostOverfull() bool {
	if d.config.HostMemory == 0 {
		return false
	}
	planned := d.reachableJobs()
	sum := d.hostReserved(planned)
	for _, j := range planned {
		if l := j.newestLayout(); l != nil {
			sum += j.hostBytes(l)
		}
	}
	return sum > d.config.HostMemory
}

// breakDeadlock parks a job whose new plan takes more of one memory and less of the other, while another job waits for
// the memory that it has and has the memory that it waits for. It goes on with the plans that are made then.
func (d *domain) breakDeadlock() {
	if d.config.HostMemory == 0 || d.request != nil {
		return
	}
	var tied, other *job
	for _, j := range d.activeJobs() {
		l := j.newestLayout()
		switch {
		case !j.canChangePlan() || j.record.Granted > j.record.Applied:
			return // the job is about to give memory back, or to take what it was granted
		case l == nil || l.granted:
		case j.record.State == wire.JobRunning &&
			(!j.claim().FitsIn(j.claimWith(l)) || j.hostClaim() > j.hostBytes(l)) &&
			tied == nil:
			tied = j
		default:
			other = j
		}
	}
	if tied == nil || other == nil {
		return
	}
	d.giveWay(tied, other, wire.InMemory, "")
}

// describeWait says for what of other jobs a job waits that has a plan.
func (d *domain) describeWait(j *job, l *layout) (wire.Wait, string) {
	if !d.fitsClaim(j, j.claimWith(l)) {
		return wire.Wait{For: wire.WaitMemory, Bytes: l.Wire.Arena},
			fmt.Sprintf("waits for %s that other jobs are giving back", l.Wire.Arena)
	}
	return wire.Wait{For: wire.WaitHostMemory, Bytes: j.hostBytes(l)},
		fmt.Sprintf("waits for %s of host memory that other jobs are giving back", j.hostBytes(l))
}
