package process

import (
	"fmt"

	"tensile/device/lease"
)

// version is that of the messages. Another meaning of a field is another version.
const version = 3

// request is a line from a client.
type request struct {
	Hello    *hello          `json:"hello,omitempty"` // first of a connection
	Told     *told           `json:"told,omitempty"`
	Capacity *lease.Capacity `json:"capacity,omitempty"`
}

// hello says who a client is and what its jobs hold.
type hello struct {
	Version  int             `json:"version"`
	Client   string          `json:"client"` // whose name begins with its slot
	Jobs     []standing      `json:"jobs,omitempty"`
	Capacity *lease.Capacity `json:"capacity,omitempty"` // the newest that it knows
}

// standing is a job as its client knows it. Its Ask is that of the newest grant, or of the Join before there is one.
type standing struct {
	lease.Rejoin
	Joined bool `json:"joined"`
}

// told is an input of a client's job.
type told struct {
	Join   *lease.Join   `json:"join,omitempty"`
	Want   *lease.Want   `json:"want,omitempty"`
	Passed *lease.Passed `json:"passed,omitempty"`
	Leave  *lease.Leave  `json:"leave,omitempty"`
}

// job returns whose input it is, an error if there is not exactly one.
func (t *told) job() (job lease.Job, err error) {
	n := 0
	if t.Join != nil {
		job, n = t.Join.Job, n+1
	}
	if t.Want != nil {
		job, n = t.Want.Job, n+1
	}
	if t.Passed != nil {
		job, n = t.Passed.Job, n+1
	}
	if t.Leave != nil {
		job, n = t.Leave.Job, n+1
	}
	if n != 1 {
		return "", fmt.Errorf("%d inputs in one message, want 1", n)
	}
	return job, nil
}

// answer is a line to a client.
type answer struct {
	Output lease.Output `json:"output"`
	Error  string       `json:"error,omitempty"` // the connection ends
}
