package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tensile/controller"
	"tensile/controller/memory"
	"tensile/graph"
	"tensile/wire"
)

// maxJobs is how many jobs have series of their own: the oldest ones that are not over.
const maxJobs = 200

// maxDevices is how many devices have series of their own: the controller's, and the first of the others by name.
const maxDevices = 50

// noDevice stands for the device where there is none: of jobs that have none yet, and of a controller.
const noDevice = "none"

// scrapeTimeout is how long a scrape waits for the controller. Prometheus waits for ten seconds.
const scrapeTimeout = 5 * time.Second

// family is a metric by name, with what it is of.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// collector makes metrics of what a controller knows at the time of the scrape.
type collector struct {
	now      func(context.Context) (controller.View, error)
	own      string // the controller's device
	families []family

	up, trouble, devicesLeftOut family

	device struct {
		budget, used, contexts, hostBudget, hostUsed, link, jobs, jobsLeftOut, executors family

		reports, lost family
	}
	owner struct {
		arena, touched, swapped, iterations, served, stall, gate, moved, plans, queued, ended family

		share, speed, behind family // of tenants
	}
	job struct {
		info, arena, slotPeak, touched, swapped, host, pace, slowdown, target, waits, drift family

		iterations, stall, gate, moved, plans, queued, waited family
	}
}

func newCollector(own string, now func(context.Context) (controller.View, error)) *collector {
	c := &collector{now: now, own: own}
	define := func(kind prometheus.ValueType, name, help string, labels ...string) family {
		f := family{prometheus.NewDesc(name, help, append([]string{"device"}, labels...), nil), kind}
		c.families = append(c.families, f)
		return f
	}
	gauge := func(name, help string, labels ...string) family {
		return define(prometheus.GaugeValue, name, help, labels...)
	}
	counter := func(name, help string, labels ...string) family {
		return define(prometheus.CounterValue, name, help, labels...)
	}
	c.up = gauge("tensile_controller_up",
		"1 if the controller has answered this scrape, else 0, and what it knows is missing.")
	c.trouble = gauge("tensile_controller_trouble",
		"1 while nothing goes on, as with a full disk: the controller's log and tensile jobs say why.")
	c.devicesLeftOut = gauge("tensile_controller_devices_left_out", "Devices that have no series of their own here.")

	d := &c.device
	d.budget = gauge("tensile_device_budget_bytes", "Device memory for all jobs. Missing: there is no limit.")
	d.used = gauge("tensile_device_used_bytes",
		"What of the budget jobs, contexts and executors out of reach may have now.")
	d.contexts = gauge("tensile_device_context_bytes", "What of that processes take by having the device open.")
	d.hostBudget = gauge("tensile_device_host_budget_bytes", "Host memory for all jobs. Missing: there is no limit.")
	d.hostUsed = gauge("tensile_device_host_used_bytes", "What of that jobs and executors out of reach may have now.")
	d.link = gauge("tensile_device_link_bytes_per_second", "What the link copies alone, out (to the host) and in.",
		"direction")
	d.jobs = gauge("tensile_device_jobs", "Jobs by state.", "state")
	d.jobsLeftOut = gauge("tensile_device_jobs_left_out",
		"Jobs that are not over and have no series of their own here.")
	d.executors = gauge("tensile_device_executors", "Executor processes by state: joined, or silent (out of reach).",
		"state")
	d.reports = counter("tensile_controller_reports_total", "Reports of iterations that were counted.")
	d.lost = counter("tensile_controller_reports_lost_total",
		"Reports that were lost between these: their iterations are counted, their stalls, gates and copies are not.")

	o := &c.owner
	o.arena = gauge("tensile_owner_arena_bytes", "Sum of tensile_job_arena_bytes, of all jobs.", "owner")
	o.touched = gauge("tensile_owner_touched_bytes", "Sum of tensile_job_touched_bytes, of all jobs.", "owner")
	o.swapped = gauge("tensile_owner_swapped_bytes", "Sum of tensile_job_swapped_bytes, of all jobs.", "owner")
	o.iterations = counter("tensile_owner_iterations_total",
		"Iterations that jobs have completed, those done again after an executor was lost included.", "owner")
	o.served = counter("tensile_owner_served_seconds_total",
		"Time that iterations of jobs take alone and without a plan, of those that they have completed.", "owner")
	o.share = gauge("tensile_tenant_share", "The share of a tenant. Missing: there are no tenants.", "owner")
	o.speed = gauge("tensile_tenant_speed_ratio",
		"Speed of the jobs of a tenant together, measured: 1 is one job alone on a device.", "owner")
	o.behind = gauge("tensile_tenant_behind_seconds",
		"By how much the jobs of a tenant have done less than its share, in time that this takes alone; below 0: more.",
		"owner")
	o.stall = counter("tensile_owner_stall_seconds_total", "Time for which compute has waited for copies.", "owner")
	o.gate = counter("tensile_owner_gate_seconds_total",
		"Time for which compute has waited for memory that other jobs had.", "owner")
	o.moved = counter("tensile_owner_moved_bytes_total",
		"Bytes that iterations have copied to the host (out) and to the device (in).", "owner", "direction")
	o.plans = counter("tensile_owner_plans_total", "Plans adopted for jobs, by what they were made for.", "owner",
		"reason")
	o.queued = counter("tensile_owner_queue_wait_seconds_total",
		"Time that jobs have been queued, counted when they are not any more.", "owner")
	o.ended = counter("tensile_owner_jobs_ended_total", "Jobs that are over, by how they ended.", "owner", "state")

	j := &c.job
	labels := []string{"job", "owner"}
	j.info = gauge("tensile_job_info", "1 for each job: its state, network and executor.", "job", "owner", "state",
		"model", "executor")
	j.arena = gauge("tensile_job_arena_bytes", "Device memory of the plan with which the job trains.", labels...)
	j.slotPeak = gauge("tensile_job_slot_peak_bytes", "The largest sum of what that plan has on the device at a time.",
		labels...)
	j.touched = gauge("tensile_job_touched_bytes",
		"The highest byte of the arena that was used since that plan came into force, measured.", labels...)
	j.swapped = gauge("tensile_job_swapped_bytes",
		"What is swapped out to the host, to come back: mean over the newest iteration.", labels...)
	j.host = gauge("tensile_job_host_bytes", "Host memory that the job counts with.", labels...)
	j.pace = gauge("tensile_job_iteration_seconds", "How long an iteration takes, a moving average.", labels...)
	j.slowdown = gauge("tensile_job_slowdown_ratio",
		"How many times as long an iteration takes as its ops do alone and without a plan, both measured.", labels...)
	j.target = gauge("tensile_job_iterations_left", "Iterations that the job still has to do.", labels...)
	j.waits = gauge("tensile_job_need_bytes", "Device memory for which the job waits.", labels...)
	j.drift = gauge("tensile_job_prediction_error_ratio",
		"By which part of them measured latencies of ops differ from those that its plan was made with.", labels...)
	j.iterations = counter("tensile_job_iterations_total",
		"Iterations that the job has completed, those done again after its executor was lost included.", labels...)
	j.stall = counter("tensile_job_stall_seconds_total", "Time for which its compute has waited for copies.", labels...)
	j.gate = counter("tensile_job_gate_seconds_total",
		"Time for which its compute has waited for memory that other jobs had.", labels...)
	j.moved = counter("tensile_job_moved_bytes_total",
		"Bytes that its iterations have copied to the host (out) and to the device (in).", "job", "owner", "direction")
	j.plans = counter("tensile_job_plans_total", "Plans adopted for it, by what they were made for.", "job", "owner",
		"reason")
	j.queued = counter("tensile_job_queue_wait_seconds_total", "Time that it has been queued, until now if it is.",
		labels...)
	j.waited = counter("tensile_job_wait_seconds_total", "Time that it has waited, until now if it does, by what for.",
		"job", "owner", "for")
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range c.families {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	v, err := c.now(ctx)
	s := series{collector: c, to: to, device: c.own}
	if s.add(c.up, boolValue(err == nil)); err == nil {
		s.addAll(&v)
	}
}

// series sends the metrics of a view that are of a device.
type series struct {
	*collector
	to     chan<- prometheus.Metric
	device string
}

func (s series) add(f family, value float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(f.desc, f.kind, value, append([]string{s.device}, labels...)...)
}

// deviceSeries returns the series of device i; below 0: those without a device.
func (s series) deviceSeries(devices []wire.DeviceState, i int) series {
	switch {
	case i < 0:
		s.device = noDevice
	case !devices[i].Own && (devices[i].Name == s.own || devices[i].Name == noDevice):
		s.device = "executors/" + devices[i].Name // no device can be called so
	case !devices[i].Own:
		s.device = devices[i].Name
	}
	return s
}

func (s series) addAll(v *controller.View) {
	s.add(s.trouble, boolValue(v.Trouble != ""))
	devices := memory.Devices(&v.Answer)
	for i := range devices[:min(len(devices), maxDevices)] {
		s.deviceSeries(devices, i).ofDevice(v, devices, i)
	}
	s.add(s.devicesLeftOut, float64(max(0, len(devices)-maxDevices)))
	for on := -1; on < min(len(devices), maxDevices); on++ {
		s.jobs(v, devices, on)
	}
	s.add(s.collector.device.reports, float64(v.Reports))
	s.add(s.collector.device.lost, float64(v.LostReports))
	owners := make(map[string]*gauges)
	for owner := range v.Owners {
		owners[owner] = new(gauges)
	}
	shown := 0
	for i := range v.Jobs {
		r, l := &v.Jobs[i], &v.Live[i]
		if r.State.Over() {
			continue
		}
		if owners[l.Owner] == nil {
			owners[l.Owner] = new(gauges)
		}
		owners[l.Owner].add(r, l)
		if shown++; shown <= maxJobs {
			s.deviceSeries(devices, memory.DeviceIndex(devices, r)).ofJob(r, l)
		}
	}
	s.add(s.collector.device.jobsLeftOut, float64(max(0, shown-maxJobs)))
	for owner, g := range owners {
		s.ofOwner(owner, g, v.Owners[owner])
	}
	for i := range v.Tenants {
		s.ofTenant(&v.Tenants[i])
	}
}

// gauges are sums over the jobs of an owner.
type gauges struct{ arena, touched, swapped graph.Bytes }

func (g *gauges) add(r *wire.Record, l *controller.Live) {
	g.arena, g.touched, g.swapped = g.arena+r.Arena, g.touched+l.Touched, g.swapped+l.Swapped
}
