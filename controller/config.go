package controller

import (
	"cmp"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
	"tensile/wire"
)

// Config says what a controller plans for, and how. The facts of a device are those of the controller's own process;
// [Config.ForDevice] has those of a device that executors register. The zero value of a duration or number is the
// recommended one, which the comment names.
type Config struct {
	// Device is the identity of the device. Executors of its name with another identity are refused.
	Device string `json:"device"`
	// NoDevice says that the controller's process has no device. Jobs train on those that executors register, and
	// Device and its facts mean nothing.
	NoDevice bool `json:"no_device,omitzero"`
	// Name is the name of the device. An executor that registers one of that name shares it. "": it has none.
	Name string `json:"name,omitzero"`
	// Align is the unit of offsets in arenas, in bytes.
	Align graph.Bytes `json:"align_bytes"`
	// Out and In are the link of the device to the host and back, which its jobs share.
	Out cost.Link `json:"out"`
	In  cost.Link `json:"in"`
	// Sharing is how jobs slow one another down on the device. Zero: they do not.
	Sharing cost.Sharing `json:"sharing,omitzero"`
	// Budget is for the arenas of all jobs and contexts together, in bytes. 0: there is no limit.
	Budget graph.Bytes `json:"budget_bytes"`
	// Context is how many bytes of the budget a process takes by opening the device. 0: none.
	Context graph.Bytes `json:"context_bytes,omitzero"`
	// HostMemory is for what all jobs have on the host together, in bytes. 0: there is no limit.
	HostMemory graph.Bytes `json:"host_memory_bytes,omitzero"`
	// MemorySharing is how jobs share the budget. Zero: each has an arena for itself.
	MemorySharing wire.Sharing `json:"memory_sharing,omitzero"`
	// Lease is the name of the lease at each host. "": executors choose it.
	Lease string `json:"lease,omitzero"`
	// Page is the unit in which the device backs memory, in bytes. 0: jobs share no memory.
	Page graph.Bytes `json:"page_bytes,omitzero"`

	// Policy names the policy that makes plans, and Options are its settings.
	Policy  string `json:"policy"`
	Options scheduler.Options
	// OneExecutor has one executor train all jobs of the device. Otherwise each job has one.
	OneExecutor bool `json:"share"`
	// Limited says that copies are held to the rates of Out and In: executors are told their part of these.
	Limited bool `json:"limited"`
	// Watched says that an Input.Ended tells of the end of each process that is launched, which may be silent then.
	Watched bool `json:"watched"`
	// KeepJobs is how many jobs that are over are remembered. 0: all.
	KeepJobs int `json:"keep"`

	// NoReplan has no plans made because latencies drift, nor better ones when a job has gone.
	NoReplan bool `json:"no_replan,omitzero"`

	// NoMoves keeps each job that trains on its device.
	NoMoves bool `json:"no_moves,omitzero"`
	// MovePause is the length of time that the first migration is expected to take beyond what is estimated. 0: a
	// second.
	MovePause time.Duration `json:"pause_ns,omitzero"`

	// Silence is how long an executor may say nothing before it counts as out of reach. 0: 15 seconds.
	Silence time.Duration `json:"silence_ns"`
	// GiveUp is how long the jobs of an executor out of reach wait for it before they go on elsewhere. 0: 5 minutes.
	GiveUp time.Duration `json:"give_up_ns"`

	// Preempt has jobs of lower priority parked for one that waits, when smaller arenas are not enough.
	Preempt bool `json:"preempt,omitzero"`
	// Aging is the wait that raises the priority of a queued job by one, so that nobody starves. 0: a minute.
	Aging time.Duration `json:"aging_ns"`
	// Turn is how long a job trains before it may be parked for another. 0: a minute.
	Turn time.Duration `json:"turn_ns"`

	// Alpha is the weight of a new latency in the moving average, 0 to 1. 0: 0.3.
	Alpha float64 `json:"alpha"`
	// Threshold is the relative change of a job's latencies from which on all jobs are planned again. 0: 0.1.
	Threshold float64 `json:"threshold"`
	// SettleReports is how many reports come after a new plan before a change of latencies counts. 0: 5.
	SettleReports int `json:"settle"`
	// Horizon is how many iterations a better plan, or a migration, has to repay its cost in. 0: 100.
	Horizon int `json:"horizon"`
}

// plans.Settings are the parts of the configuration on which plans depend.
func (c *Config) PlanSettings() plans.Settings {
	return plans.Settings{Policy: c.Policy, Options: c.Options, MemorySharing: c.MemorySharing, Page: c.Page}
}

// withDefaults returns the configuration with the recommended values for what was left zero.
func (c Config) withDefaults() Config {
	c.Silence = cmp.Or(c.Silence, 15*time.Second)
	c.GiveUp = cmp.Or(c.GiveUp, 5*time.Minute)
	c.Aging = cmp.Or(c.Aging, time.Minute)
	c.Turn = cmp.Or(c.Turn, time.Minute)
	c.Alpha = cmp.Or(c.Alpha, 0.3)
	c.Threshold = cmp.Or(c.Threshold, 0.1)
	c.SettleReports = cmp.Or(c.SettleReports, 5)
	c.MovePause = cmp.Or(c.MovePause, time.Second)
	c.Horizon = cmp.Or(c.Horizon, 100)
	return c
}
