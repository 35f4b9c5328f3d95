package wire

import "context"

// FollowLog is [Bus.Follow] for all that the executors of a job have written. Lines of others are left out.
func FollowLog(ctx context.Context, bus Bus, job string, each func(line []byte)) (stop func(), err error) {
	known := make(map[string]bool)
	may := func(log string) bool {
		if !known[log] {
			text, err := bus.Get(context.WithoutCancel(ctx), RecordKey(job))
			if err != nil {
				return false
			}
			r, err := DecodeAs[Record](text)
			known[log] = err == nil && r.MayLog(log) // a record names an executor before that hears of the job
		}
		return known[log]
	}
	return bus.Follow(ctx, LogSubject("*", job), func(log string, line []byte) {
		if may(log) {
			each(line)
		}
	})
}
