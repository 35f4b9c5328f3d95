package scheduler

// ScheduleAsking is Schedule by a policy of r that asks stop whenever so many steps have been counted, and tells it how
// many have been.
func ScheduleAsking(r Request, every int64, stop func(steps int64) bool) (result Result, steps int64, err error) {
	m := &meter{every: every}
	m.stop = func() bool { return stop(m.steps) }
	for _, p := range policies {
		if p.Name == r.Policy {
			result, err = r.metered(p.Policy, m)
		}
	}
	return result, m.steps, err
}
