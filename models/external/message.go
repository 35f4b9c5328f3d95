package external

import (
	"time"

	"tensile/graph"
)

// Message is a Hello, Recorded, Applied, Iteration, Passive, Parked or End of a script, or a Plan, Park, Resume or Stop
// of a sidecar.
type Message interface {
	kind() string
	check() error
}

// Hello is the first thing that a script says.
type Hello struct {
	PID       int    `json:"pid"`
	Framework string `json:"framework"`
	Release   string `json:"release"`
	Device    Device `json:"device"`
	// Rank is the number that the launcher of several processes has given this one on its host; nil: it has given none.
	Rank *int `json:"rank,omitempty"`
	// Group says that the process is one of a group that computes together (torch.distributed): if it waits, all do.
	Group bool `json:"group,omitzero"`
}

// Device is what a script trains on. A field that is 0 is not known.
type Device struct {
	Kind   string      `json:"kind"` // "cpu" or "cuda"
	Name   string      `json:"name"`
	Memory graph.Bytes `json:"memory_bytes,omitzero"`
	Least  graph.Bytes `json:"least_bytes,omitzero"` // smaller storages stay where they are
	Out    graph.Bytes `json:"out_bytes_per_s,omitzero"`
	In     graph.Bytes `json:"in_bytes_per_s,omitzero"`
	Base   graph.Bytes `json:"base_bytes,omitzero"` // Memory of the process beside what its allocator reserves.
}

// Recorded is an iteration as it was seen.
type Recorded struct {
	Number  int             `json:"number"`
	Graph   *graph.Graph    `json:"graph"`
	Latency []time.Duration `json:"latency_ns"`          // per op
	Held    graph.Bytes     `json:"held_bytes,omitzero"` // Device memory held throughout, outside all storages.
}

// Plan is what a script is to train with.
type Plan struct {
	Number     int64             `json:"number"`
	Graph      int               `json:"graph"`       // the number of a Recorded; 0: none
	Limit      graph.Bytes       `json:"limit_bytes"` // Limit for what its allocator reserves; 0: none.
	Why        string            `json:"why,omitzero"`
	Strict     bool              `json:"strict,omitzero"` // An op on more than Limit ends the script.
	Bytes      graph.Bytes       `json:"plan_bytes,omitzero"`
	Entry      []graph.StorageID `json:"entry,omitempty"`      // ascending
	Boundaries []Boundary        `json:"boundaries,omitempty"` // ascending
}

// Boundary is what is done before an op.
type Boundary struct {
	Before graph.OpID `json:"before"` // or the number of ops
	Do     []Action   `json:"do"`
}

// Verb says what an action does.
type Verb string

const (
	Out   Verb = "out"
	Drop  Verb = "drop"
	In    Verb = "in"
	Again Verb = "again"
)

// Action moves a storage, or runs an op again.
type Action struct {
	Do      Verb             `json:"do"`
	Storage *graph.StorageID `json:"storage,omitempty"` // Set for all actions but Again.
	Op      *graph.OpID      `json:"op,omitempty"`      // Set for Again.
	Outputs []int            `json:"outputs,omitempty"` // Set for Again, ascending; none means all.
	Wait    bool             `json:"wait,omitzero"`     // For Out and In: the next op waits for the end of the copy.
}

// Applied is the answer to a Plan.
type Applied struct {
	Plan      int64       `json:"plan"`
	Iteration int         `json:"iteration"` // complete ones
	Reserved  graph.Bytes `json:"reserved_bytes"`
	Error     string      `json:"error,omitzero"` // it is refused
}

// Iteration is what was measured of an iteration.
type Iteration struct {
	Iteration int             `json:"iteration"` // complete ones
	Graph     int             `json:"graph"`     // 0: none that was sent
	Plan      int64           `json:"plan"`      // followed to the end; 0: none
	Wall      time.Duration   `json:"wall_ns"`
	Stall     time.Duration   `json:"stall_ns"`
	Steps     []time.Duration `json:"steps_ns,omitempty"` // per step of the plan
	Touched   graph.Bytes     `json:"touched_bytes"`
	Reserved  graph.Bytes     `json:"reserved_bytes"`
	Host      graph.Bytes     `json:"host_bytes,omitzero"`
	Faults    int             `json:"faults,omitzero"`
	Retries   int             `json:"retries,omitzero"` // allocations that failed at the limit and were tried again
	Hooks     bool            `json:"hooks,omitzero"`   // no op was looked at: what autograd saves was moved
	Loss      *float64        `json:"loss,omitempty"`
}

// Passive says that no plan is followed.
type Passive struct {
	Iteration int    `json:"iteration"` // complete ones
	Why       string `json:"why"`
	Always    bool   `json:"always,omitzero"`
}

// Parked is the answer to a Park.
type Parked struct {
	Number    int64       `json:"number"`
	Iteration int         `json:"iteration"`
	Reserved  graph.Bytes `json:"reserved_bytes"`
}

// End is the last thing that a script says.
type End struct {
	Iteration int    `json:"iteration"`
	Error     string `json:"error,omitzero"`
	Stopped   bool   `json:"stopped,omitzero"`
}

// Park tells a script to rest, Resume to go on.
type (
	Park struct {
		Number int64 `json:"number"`
	}
	Resume struct {
		Number int64 `json:"number"`
	}
)

// Stop tells a script to end.
type Stop struct{}

func (Hello) kind() string     { return "hello" }
func (Recorded) kind() string  { return "graph" }
func (Applied) kind() string   { return "applied" }
func (Iteration) kind() string { return "iteration" }
func (Passive) kind() string   { return "passive" }
func (Parked) kind() string    { return "parked" }
func (End) kind() string       { return "end" }
func (Plan) kind() string      { return "plan" }
func (Park) kind() string      { return "park" }
func (Resume) kind() string    { return "resume" }
func (Stop) kind() string      { return "stop" }
