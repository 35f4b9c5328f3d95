package planner

import "context"

// asking is how many steps of work, of some nanoseconds each, lie between two looks at a context.
const asking = 1 << 15

// stopped is what tick panics with.
type stopped struct{}

// runUnlessDone does something that ticks now and then, and reports whether a look at ctx has stopped it.
func runUnlessDone(ctx context.Context, do func(tick func(steps int))) (wasStopped bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, wasStopped = p.(stopped); !wasStopped {
				panic(p)
			}
		}
	}()
	steps := asking // the first tick looks
	do(func(n int) {
		if steps += n; steps >= asking {
			steps = 0
			if ctx.Err() != nil {
				panic(stopped{})
			}
		}
	})
	return false
}
