package metrics

import (
	"maps"
	"slices"
	"time"

	"tensile/controller"
	"tensile/controller/memory"
	"tensile/wire"
)

// states are those of jobs, so that a state without jobs is 0 and not missing.
var states = []wire.JobState{wire.JobQueued, wire.JobStarting, wire.JobRunning, wire.JobUnknown, wire.JobParking,
	wire.JobParked,
	wire.JobStopping, wire.JobFinished, wire.JobStopped, wire.JobFailed}

// ofDevice are the series of one of the devices.
func (s series) ofDevice(v *controller.View, devices []wire.DeviceState, i int) {
	f, d := &s.collector.device, &devices[i]
	claims, held := memory.DeviceClaims(&v.Answer, devices, i)
	s.add(f.used, float64(d.Used))
	s.add(f.contexts, float64(max(0, d.Used-claims.Bytes()-held)))
	s.add(f.hostUsed, float64(d.HostUsed))
	if d.Budget > 0 {
		s.add(f.budget, float64(d.Budget))
	}
	if d.HostMemory > 0 {
		s.add(f.hostBudget, float64(d.HostMemory))
	}
	if d.Facts.Out.Rate > 0 {
		s.add(f.link, float64(d.Facts.Out.Rate), "out")
		s.add(f.link, float64(d.Facts.In.Rate), "in")
	}
	s.add(f.executors, float64(d.Executors), "joined")
	s.add(f.executors, float64(d.Silent), "silent")
}

// jobs counts those of a device by state; below 0: those that have none, if there are any.
func (s series) jobs(v *controller.View, devices []wire.DeviceState, on int) {
	counts := make(map[wire.JobState]int)
	for i := range v.Jobs {
		if memory.DeviceIndex(devices, &v.Jobs[i]) == on {
			counts[v.Jobs[i].State]++
		}
	}
	if on < 0 && len(counts) == 0 {
		return
	}
	for _, state := range states {
		s.deviceSeries(devices, on).add(s.collector.device.jobs, float64(counts[state]), string(state))
	}
}

func (s series) ofOwner(owner string, g *gauges, t controller.Counters) {
	o := &s.owner
	s.add(o.arena, float64(g.arena), owner)
	s.add(o.touched, float64(g.touched), owner)
	s.add(o.swapped, float64(g.swapped), owner)
	s.add(o.iterations, float64(t.Iterations), owner)
	s.add(o.served, t.Served.Seconds(), owner)
	s.add(o.stall, t.Stall.Seconds(), owner)
	s.add(o.gate, t.Gate.Seconds(), owner)
	s.add(o.moved, float64(t.Out), owner, "out")
	s.add(o.moved, float64(t.In), owner, "in")
	s.add(o.queued, t.Queued.Seconds(), owner)
	for _, cause := range controller.Causes() {
		s.add(o.plans, float64(t.Plans[cause]), owner, string(cause))
	}
	for _, state := range slices.DeleteFunc(slices.Clone(states), func(p wire.JobState) bool { return !p.Over() }) {
		s.add(o.ended, float64(t.Ended[state]), owner, string(state))
	}
}

func (s series) ofTenant(t *wire.TenantState) {
	s.add(s.owner.share, float64(t.Share), t.Name)
	s.add(s.owner.speed, t.Speed, t.Name)
	s.add(s.owner.behind, t.Behind.Seconds(), t.Name)
}

func (s series) ofJob(r *wire.Record, l *controller.Live) {
	j, job, owner := &s.job, r.Spec.Name, r.Spec.Owner
	s.add(j.info, 1, job, owner, string(r.State), r.Spec.Model, r.Executor)
	s.add(j.arena, float64(r.Arena), job, owner)
	s.add(j.slotPeak, float64(r.SlotPeak), job, owner)
	s.add(j.touched, float64(l.Touched), job, owner)
	s.add(j.swapped, float64(l.Swapped), job, owner)
	s.add(j.host, float64(r.Host), job, owner)
	s.add(j.target, float64(r.Spec.Iterations-r.Iteration), job, owner)
	s.add(j.waits, float64(r.Wait.DeviceBytes()), job, owner)
	s.add(j.iterations, float64(l.Iterations), job, owner)
	s.add(j.stall, l.Stall.Seconds(), job, owner)
	s.add(j.gate, l.Gate.Seconds(), job, owner)
	s.add(j.moved, float64(l.Out), job, owner, "out")
	s.add(j.moved, float64(l.In), job, owner, "in")
	s.add(j.queued, l.Queued.Seconds(), job, owner)
	for _, what := range slices.Sorted(maps.Keys(l.Waited)) {
		s.add(j.waited, l.Waited[what].Seconds(), job, owner, what)
	}
	for _, cause := range slices.Sorted(maps.Keys(l.Plans)) {
		s.add(j.plans, float64(l.Plans[cause]), job, owner, string(cause))
	}
	if r.Pace > 0 && r.State == wire.JobRunning {
		s.add(j.pace, r.Pace.Seconds(), job, owner)
	}
	if r.Measured > 0 {
		s.add(j.slowdown, r.Measured, job, owner)
	}
	if l.PredictionError >= 0 {
		s.add(j.drift, l.PredictionError, job, owner)
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// seconds is a duration as Prometheus has it.
func seconds(d time.Duration) float64 { return max(0, d).Seconds() }
