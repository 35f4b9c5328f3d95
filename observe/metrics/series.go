package metrics

import (
	"maps"
	"slices"
	"time"

	"tensile/controller"
	"tensile/wire"
)

// states are those of jobs, so that a state without jobs is 0 and not missing.
var states = []wire.JobState{wire.Queued, wire.Starting, wire.Training, wire.Unknown, wire.Parking, wire.Parked,
	wire.Ending, wire.Done, wire.Halted, wire.Broken}

// ofDevice are the series of one of the devices.
func (s series) ofDevice(v *controller.View, devices []wire.DeviceState, i int) {
	f, d := &s.collector.device, &devices[i]
	claims, held := controller.DeviceClaims(&v.Answer, devices, i)
	s.put(f.used, float64(d.Used))
	s.put(f.contexts, float64(max(0, d.Used-claims.Bytes()-held)))
	s.put(f.hostUsed, float64(d.HostUsed))
	if d.Budget > 0 {
		s.put(f.budget, float64(d.Budget))
	}
	if d.HostMemory > 0 {
		s.put(f.hostBudget, float64(d.HostMemory))
	}
	if d.Facts.Out.Rate > 0 {
		s.put(f.link, float64(d.Facts.Out.Rate), "out")
		s.put(f.link, float64(d.Facts.In.Rate), "in")
	}
	s.put(f.executors, float64(d.Executors), "joined")
	s.put(f.executors, float64(d.Silent), "silent")
}

// jobs counts those of a device by state; below 0: those that have none, if there are any.
func (s series) jobs(v *controller.View, devices []wire.DeviceState, on int) {
	counts := make(map[wire.JobState]int)
	for i := range v.Jobs {
		if controller.DeviceIndex(devices, &v.Jobs[i]) == on {
			counts[v.Jobs[i].State]++
		}
	}
	if on < 0 && len(counts) == 0 {
		return
	}
	for _, state := range states {
		s.on(devices, on).put(s.collector.device.jobs, float64(counts[state]), string(state))
	}
}

func (s series) ofOwner(owner string, g *gauges, t controller.Counters) {
	o := &s.owner
	s.put(o.arena, float64(g.arena), owner)
	s.put(o.touched, float64(g.touched), owner)
	s.put(o.swapped, float64(g.swapped), owner)
	s.put(o.iterations, float64(t.Iterations), owner)
	s.put(o.served, t.Served.Seconds(), owner)
	s.put(o.stall, t.Stall.Seconds(), owner)
	s.put(o.gate, t.Gate.Seconds(), owner)
	s.put(o.moved, float64(t.Out), owner, "out")
	s.put(o.moved, float64(t.In), owner, "in")
	s.put(o.queued, t.Queued.Seconds(), owner)
	for _, cause := range controller.Causes() {
		s.put(o.plans, float64(t.Plans[cause]), owner, string(cause))
	}
	for _, state := range slices.DeleteFunc(slices.Clone(states), func(p wire.JobState) bool { return !p.Over() }) {
		s.put(o.ended, float64(t.Ended[state]), owner, string(state))
	}
}

func (s series) ofTenant(t *wire.TenantState) {
	s.put(s.owner.share, float64(t.Share), t.Name)
	s.put(s.owner.speed, t.Speed, t.Name)
	s.put(s.owner.behind, t.Behind.Seconds(), t.Name)
}

func (s series) ofJob(r *wire.Record, l *controller.Live) {
	j, job, owner := &s.job, r.Spec.Name, r.Spec.Owner
	s.put(j.info, 1, job, owner, string(r.State), r.Spec.Model, r.Executor)
	s.put(j.arena, float64(r.Arena), job, owner)
	s.put(j.slotPeak, float64(r.SlotPeak), job, owner)
	s.put(j.touched, float64(l.Touched), job, owner)
	s.put(j.swapped, float64(l.Swapped), job, owner)
	s.put(j.host, float64(r.Host), job, owner)
	s.put(j.target, float64(r.Spec.Iterations-r.Iteration), job, owner)
	s.put(j.waits, float64(r.Need), job, owner)
	s.put(j.iterations, float64(l.Iterations), job, owner)
	s.put(j.stall, l.Stall.Seconds(), job, owner)
	s.put(j.gate, l.Gate.Seconds(), job, owner)
	s.put(j.moved, float64(l.Out), job, owner, "out")
	s.put(j.moved, float64(l.In), job, owner, "in")
	s.put(j.queued, l.Queued.Seconds(), job, owner)
	for _, cause := range slices.Sorted(maps.Keys(l.Plans)) {
		s.put(j.plans, float64(l.Plans[cause]), job, owner, string(cause))
	}
	if r.Pace > 0 && r.State == wire.Training {
		s.put(j.pace, r.Pace.Seconds(), job, owner)
	}
	if r.Measured > 0 {
		s.put(j.slowdown, r.Measured, job, owner)
	}
	if l.PredictionError >= 0 {
		s.put(j.drift, l.PredictionError, job, owner)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// seconds is a duration as Prometheus has it.
func seconds(d time.Duration) float64 { return max(0, d).Seconds() }
