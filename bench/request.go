package bench

import (
	"context"

	"tensile/device"
	"tensile/graph"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"

	_ "tensile/scheduler/rivals" // their policies and methods of a lease
)

// request asks for plans of tasks on a device by policy tensile, with roofline latencies. It returns an error if the
// device cannot execute one of them.
func request(tasks []task.Task, d device.Device, o scheduler.Options) (scheduler.Request, error) {
	r, err := planner.Describe(d, planner.Roofline(d.Facts())).FirstRequest(tasks)
	r.Policy, r.Options = "tensile", o
	return r, err
}

// requestAndLive is request, with what the tasks need with all freed after its last use.
func requestAndLive(ctx context.Context, tasks []task.Task, d device.Device) (scheduler.Request, graph.Bytes, error) {
	s, err := planner.Describe(d, planner.Roofline(d.Facts())).Session(tasks)
	if err != nil {
		return scheduler.Request{}, 0, err
	}
	live, err := s.Live(ctx)
	return s.Ask(), live, err
}
