package queue

import "tensile/wire"

// Shares are those that an administrator has given to tenants. Once there is one each user is a tenant, and one without
// a share of its own has the share 1.
type Shares map[string]int

// ShareOf is the share of a tenant.
func (s Shares) ShareOf(tenant string) int { return max(1, s[tenant]) }

// Weights are what jobs that are planned for together are worth against each other: the share of each tenant, divided
// among its jobs by their priorities. They are from 1 to wire.MaxShare.
func (s Shares) Weights(jobs []Job) []int {
	priorities, largest := make(map[string]int), 1
	for _, j := range jobs {
		priorities[j.Tenant] += j.Priority
		largest = max(largest, s.ShareOf(j.Tenant))
	}
	weights := make([]int, len(jobs))
	for i, j := range jobs {
		weights[i] = max(1, wire.MaxShare*s.ShareOf(j.Tenant)*j.Priority/(priorities[j.Tenant]*largest))
	}
	return weights
}

// Worth returns what a job is worth against others wherever it trains: its priority or, where there are tenants, the
// share of its tenant, divided by priority among the tenant's jobs. The mean of jobs is 1.
func (s Shares) Worth(jobs []Job) func(Job) float64 {
	if len(s) == 0 {
		return func(j Job) float64 { return float64(j.Priority) }
	}
	priorities, sum := make(map[string]int), 0
	for _, j := range jobs {
		if priorities[j.Tenant] == 0 {
			sum += s.ShareOf(j.Tenant)
		}
		priorities[j.Tenant] += j.Priority
	}
	return func(j Job) float64 {
		of := float64(max(j.Priority, priorities[j.Tenant]))
		return float64(s.ShareOf(j.Tenant)) * float64(j.Priority) / of * float64(len(jobs)) / float64(max(1, sum))
	}
}
