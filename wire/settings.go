package wire

import (
	"time"

	"tensile/graph"
)

// Settings are what an administrator has set while a controller ran. A controller finds them again after a restart.
type Settings struct {
	// Device is the identity of the device.
	Device string `json:"device"`
	// Budget is the memory for the arenas of all jobs together, in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes" bound:"bytes"`
}

// Tenants are the shares that an administrator has given to users, and what devices owe these. A controller finds them
// again after a restart.
type Tenants struct {
	// Shares are the shares by user, from 1 to MaxShare.
	Shares map[string]int `json:"shares" bound:"share"`
	// Debts are what devices owed the tenants not long ago.
	Debts []TenantDebt `json:"debts,omitempty"`
}

// TenantDebt is what a device owes a tenant.
type TenantDebt struct {
	// Device is the name of the device; "": that of the controller's process.
	Device string `json:"device,omitzero"`
	// Tenant is the user; "": the administrator.
	Tenant string `json:"tenant,omitzero"`
	// Debt is by how much device time the tenant got less than its share; below 0: by how much more.
	Debt time.Duration `json:"debt_ns" bound:"signed"`
}

// MaxShare is the largest share of a tenant.
const MaxShare = 1000

// TenantState is what a tenant has and gets.
type TenantState struct {
	// Name is the user; "": the administrator.
	Name string `json:"name,omitzero"`
	// Share is the tenant's share, from 1 to MaxShare.
	Share int `json:"share" bound:"share"`
	// Running is how many of its jobs run.
	Running int `json:"running" bound:"count"`
	// Waiting is how many of its jobs are queued.
	Waiting int `json:"waiting" bound:"count"`
	// Speed is the measured speed of its jobs together; 1 is one job alone on a device.
	Speed float64 `json:"speed" bound:"ratio"`
	// Behind is by how much its jobs have done less than its share, on the device where that is most, counted in what
	// the same takes alone; below 0: by how much more.
	Behind time.Duration `json:"behind_ns,omitzero" bound:"signed"`
	// Served is what its iterations since the start of the controller take alone.
	Served time.Duration `json:"served_ns" bound:"sum"`
}

// Learnt is what ops have taken on a device, whatever job they were in. A controller finds it again after a restart.
type Learnt struct {
	// Device is the identity of the device.
	Device string `json:"device"`
	// Ops are at most MaxLearnt signatures; those that were heard of last come last.
	Ops []LearntOp `json:"ops"`
}

// LearntOp is what ops of one signature have taken.
type LearntOp struct {
	// Signature says which ops these are.
	Signature graph.Signature `json:"signature"`
	// Latency is a moving average of what they took.
	Latency time.Duration `json:"latency_ns" bound:"latency"`
	// Reports is how many reports the average is of.
	Reports int `json:"reports" bound:"count"`
}

// MaxLearnt is the number of signatures whose latencies are kept: those of some thirty networks.
const MaxLearnt = 4096

// Leadership says which of the controllers with one state leads. The leader stores it again and again; others take over
// when it has not changed for a while.
type Leadership struct {
	// ID names the candidate, another at each start; "": the last leader has resigned.
	ID string `json:"id,omitzero"`
	// Where names host and process of the candidate.
	Where string `json:"where"`
	// Term numbers the leaders, from 1.
	Term int64 `json:"term" bound:"count"`
	// Beat rises each time that the leader stores this.
	Beat int64 `json:"beat" bound:"count"`
	// Lease names the lease of the device's memory. It is the same in every term.
	Lease string `json:"lease"`
}
