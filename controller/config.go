package controller

import (
	"cmp"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
	"tensile/wire"
)

// Config says what a controller plans for, and how. What is of a device is that of its own process.
type Config struct {
	Device string `json:"device"` // its identity: executors with another device are sent away
	// NoDevice: the process of the controller has none. Jobs train on those that executors bring, and Device and what
	// is said of it mean nothing.
	NoDevice bool        `json:"no_device,omitzero"`
	Name     string      `json:"name,omitzero"` // of the device: an executor that brings one of that name shares it
	Align    graph.Bytes `json:"align_bytes"`   // of offsets
	Out      cost.Link   `json:"out"`           // of the device; jobs share it
	In       cost.Link   `json:"in"`
	// Sharing is how jobs slow one another down on the device; zero: they do not.
	Sharing cost.Sharing `json:"sharing,omitzero"`
	Budget  graph.Bytes  `json:"budget_bytes"` // for the arenas of all jobs and contexts together; 0: no limit
	// Context is what a process takes of the device's memory, and so of the budget, by opening it.
	Context graph.Bytes `json:"context_bytes,omitzero"`
	// for what all jobs have on the host together; 0: no limit
	HostMemory graph.Bytes `json:"host_memory_bytes,omitzero"`
	// MemorySharing is how jobs share the budget. Page is what the device backs memory by, in bytes; 0 if it cannot.
	MemorySharing wire.Sharing `json:"memory_sharing,omitzero"`
	Lease         string       `json:"lease,omitzero"` // the name of the lease at each host; "": executors choose
	Page          graph.Bytes  `json:"page_bytes,omitzero"`

	Policy      string `json:"policy"`
	Options     scheduler.Options
	OneExecutor bool `json:"share"`   // one executor for all jobs; otherwise one each
	Limited     bool `json:"limited"` // the link is no faster than Out and In: executors are told their part
	Watched     bool `json:"watched"` // a Gone tells of the end of each executor that is launched; they may be silent
	KeepJobs    int  `json:"keep"`    // so many jobs that are over are remembered; 0: all

	// NoReplan: no plans are made for latencies that have drifted, nor for better ones when a job has gone.
	NoReplan bool `json:"no_replan,omitzero"`

	// NoMoves: no job that trains is moved to another device because that gains time.
	NoMoves bool `json:"no_moves,omitzero"`
	// Pause is what a move is expected to take beside what is reckoned, before any was seen; 0: a second.
	MovePause time.Duration `json:"pause_ns,omitzero"`

	// Silence is how long an executor may say nothing before it counts as out of reach; 0: 15 s. GiveUp is how long its
	// jobs wait for it before they go on elsewhere; 0: 5 minutes.
	Silence time.Duration `json:"silence_ns"`
	GiveUp  time.Duration `json:"give_up_ns"`

	// Preempt: jobs of lower priority are parked for one that waits, when shrinking is not enough.
	Preempt bool `json:"preempt,omitzero"`
	// Aging is the wait that raises the priority of a job that waits by one; 0: a minute. So nobody starves.
	Aging time.Duration `json:"aging_ns"`
	// Turn is how long a job trains before it may be parked for another; 0: a minute.
	Turn time.Duration `json:"turn_ns"`

	Alpha float64 `json:"alpha"` // weight of a new latency in the moving average; 0: 0.3
	// change of a job's latency from which on all jobs are planned again; 0: 0.1
	Threshold     float64 `json:"threshold"`
	SettleReports int     `json:"settle"` // reports after a new plan before another change counts; 0: 5
	// iterations over which a better plan has to repay the change to it; 0: 100
	Horizon int `json:"horizon"`
}

// withDefaults fills in what was left zero.
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
