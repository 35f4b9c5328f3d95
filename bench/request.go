package bench

import (
	"tensile/device"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// request asks for plans of tasks on a device by policy tensile, with roofline latencies. It returns an error if the
// device cannot execute one of them.
func request(tasks []task.Task, d device.Device, o scheduler.Options) (scheduler.Request, error) {
	r, err := planner.Describe(d, planner.Roofline(d.Facts())).FirstRequest(tasks)
	r.Policy, r.Options = "tensile", o
	return r, err
}
