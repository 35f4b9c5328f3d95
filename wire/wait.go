package wire

import (
	"time"

	"tensile/graph"
)

// Wait is what a job waits for that does not train. The zero value: nothing is known, as nobody has planned for it yet.
type Wait struct {
	// For is the kind of thing.
	For WaitFor `json:"for,omitzero"`
	// Bytes is how much memory is missing, for WaitMemory, WaitBudget and WaitHostMemory. 0: it is not known.
	Bytes graph.Bytes `json:"bytes,omitzero" bound:"sum"`
	// Until is when the wait ends by itself, since the Unix epoch, for WaitRestart. 0: when something changes.
	Until time.Duration `json:"until_ns,omitzero" bound:"sum"`
}

// WaitFor is a kind of thing that jobs wait for.
type WaitFor string

const (
	WaitMemory     WaitFor = "memory"      // of the device, which others have
	WaitHostMemory WaitFor = "host-memory" // which others have
	WaitBudget     WaitFor = "budget"      // a larger one, or what executors out of reach have
	WaitDevice     WaitFor = "device"      // none that is here may take it
	WaitExecutor   WaitFor = "executor"    // it starts, or cannot be reached
	WaitCheckpoint WaitFor = "checkpoint"  // an executor that has it
	WaitRestart    WaitFor = "restart"     // a pause after its executor was lost
	WaitTurn       WaitFor = "turn"        // another job is before it in the queue
	WaitTenant     WaitFor = "tenant"      // another tenant has had less than its share
	WaitReplicas   WaitFor = "replicas"    // its peers cannot begin yet
)

// remedies says what people can do about each kind, in words that follow the reason for which a job waits.
var remedies = map[WaitFor]string{
	WaitMemory: "it begins when others have ended; to begin earlier, stop or park one of them, or raise the budget " +
		"(tensile device budget)",
	WaitHostMemory: "it begins when others have ended; to begin earlier, stop one of them, or start the controller " +
		"with more --host-memory",
	WaitBudget: "raise the budget (tensile device budget) or bring the larger device back; or stop the job, and " +
		"submit it with a smaller --batch",
	WaitDevice: "start an executor with such a device, or let a drained one take jobs again (tensile device drain " +
		"--undo)",
	WaitExecutor: "nothing is to be done while it starts; if it cannot be reached, start it again, or say that it " +
		"has ended (tensile device forget)",
	WaitCheckpoint: "start an executor on that host with that folder of checkpoints",
	WaitRestart:    "it goes on by itself",
	WaitTurn:       "it follows that job; a higher --priority comes first (tensile job priority)",
	WaitTenant:     "it begins when that tenant has had its share (tensile tenants)",
	WaitReplicas:   "it begins together with them",
}

// DeviceBytes is how much memory of a device is missing. 0: it is not known, or other things are missing.
func (w Wait) DeviceBytes() graph.Bytes {
	if w.For == WaitMemory || w.For == WaitBudget {
		return w.Bytes
	}
	return 0
}

// HostBytes is how much memory of the host is missing. 0: it is not known, or other things are missing.
func (w Wait) HostBytes() graph.Bytes {
	if w.For == WaitHostMemory {
		return w.Bytes
	}
	return 0
}

// Remedy is what people can do about the wait. "": nothing is to be done.
func (w Wait) Remedy() string { return remedies[w.For] }
