package executor

import "context"

// Poll is one turn of Serve: it carries out commands, and waits for the device once if a job has something in flight.
// It reports whether one had. It is for callers that interleave several hosts, such as tests on virtual time.
func (h *Host) Poll(ctx context.Context) (bool, error) {
	h.serving = true
	if err := h.drain(); err != nil {
		return false, err
	}
	for _, j := range h.jobs {
		if len(j.machine.runs) > 0 {
			return true, h.turn(ctx)
		}
	}
	return false, nil
}
