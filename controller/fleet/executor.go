// Package fleet knows the processes that train jobs: which live, which may, which has a name of two that use it, and
// what they may still have. It judges what is heard of them and when, and leaves it to the controller what follows for
// jobs.
//
//	awaited --> present <--> leaving     silent: it is out of reach, and may be training
//	   |         |  ^          |         killed: it was silent for long, and was told to end at once
//	   +---------+--|----------+         gone: it was silent and had nothing; a late status brings it back
//	   v            |                    dead: its process has ended
//	 silent --------+
//	   |            |
//	   +-> killed --+                    gone or dead: from any of these
package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/graph/invariants"
	"tensile/wire"
)

// State is where an executor is in its life.
type State string

const (
	Awaited State = "awaited" // it was started, or a controller before this one knew it; it was not heard of yet
	Present State = "present"
	Leaving State = "leaving" // it was interrupted: it takes no more jobs
	Silent  State = "silent"
	Killed  State = "killed"
	Gone    State = "gone"
	Dead    State = "dead"
)

// next are the states that an executor may enter from another.
var next = map[State][]State{
	Awaited: {Present, Leaving, Silent, Gone, Dead},
	Present: {Present, Leaving, Silent, Gone, Dead},
	Leaving: {Present, Leaving, Silent, Gone, Dead},
	Silent:  {Present, Leaving, Killed, Gone, Dead},
	Killed:  {Present, Leaving, Gone, Dead},
}

// Kind is what an executor is for.
type Kind int

const (
	ByHand    Kind = iota // it was started by hand, and takes any job of its device
	ForJobs               // it is started for certain jobs, and is to leave when these are over
	ForScript             // it is the process of a script, and takes no other job
)

// KindOf is the kind of an executor by its name. Those of scripts have names like those for jobs.
func KindOf(name string) Kind {
	if wire.Owned(name) {
		return ForJobs
	}
	return ByHand
}

// NameFor is the name of the executor that is started for a job, by its number and its incarnation. A name is never
// used again: late messages of its former owner would count.
func NameFor(order, incarnation int64) string {
	if incarnation > 1 {
		return fmt.Sprintf("x%d.%d", order, incarnation)
	}
	return fmt.Sprintf("x%d", order)
}

// Executor is a process that trains jobs, or is about to be started. Times are since the Unix epoch.
type Executor struct {
	Name string
	// Device is the name of its device in records. "": it is that of the controller's process.
	Device string
	Kind   Kind
	State  State
	Process
	// Launched says that this controller had the process started, and that no other has its name: its parent tells of
	// its end.
	Launched bool
	// LastStatus is the number of its newest status. 0: none has come.
	LastStatus int64
	// LastHeard is when the executor was heard of last, or was to be started.
	LastHeard time.Duration
	// Orders are the newest that it was sent. Its Number is 0 if none were.
	Orders wire.Orders
	// Refusal is that of the last process that was refused. nil: none was.
	Refusal *wire.Refusal
	// Rival is the newest status of another process of its name. It waits until it is known whether the first process
	// lives. nil: none waits.
	Rival *wire.Status
	// Rivals are the lives of all such processes.
	Rivals []string
}

// Process is what a process says of itself.
type Process struct {
	// Life is its identity. "": it was not heard of yet.
	Life string
	// Host is where it runs, in words. "": it is not known.
	Host string
	// Folder is the identity of its folder of checkpoints. "": it is not known.
	Folder string
	// LeaseHost is where the leases are that it uses. Two processes of one device must agree in it.
	LeaseHost string
	// StartedAt is when it began, in nanoseconds. 0: it is not known.
	StartedAt int64
}

// New is an executor that was not heard of yet.
func New(name, device string, kind Kind, orders wire.Orders, now time.Duration) *Executor {
	return &Executor{Name: name, Device: device, Kind: kind, State: Awaited, Orders: orders, LastHeard: now}
}

// Enter has the executor enter a state.
func (x *Executor) Enter(s State) {
	if invariants.Enabled && !slices.Contains(next[x.State], s) {
		panic(fmt.Sprintf("fleet: executor %s is %s and becomes %s", x.Name, x.State, s))
	}
	x.State = s
}

// IsGone reports whether the executor has ended, or counts as ended. It is remembered for an hour, as late messages may
// come.
func (x *Executor) IsGone() bool { return x.State == Gone || x.State == Dead }

// IsSilent reports whether the executor is out of reach.
func (x *Executor) IsSilent() bool { return x.State == Silent || x.State == Killed }

// IsHere reports whether the executor was heard of and can be reached.
func (x *Executor) IsHere() bool { return x.State == Present || x.State == Leaving }

// FindsCheckpoint reports whether the process has the folder of a checkpoint or, if it does not say which folder it
// has, is on the host of the checkpoint.
func (p *Process) FindsCheckpoint(c *wire.Checkpoint) bool {
	if c == nil {
		return false
	}
	if p.Folder != "" && c.Folder != "" {
		return p.Folder == c.Folder
	}
	host, _, _ := strings.Cut(p.Host, ", ")
	return host == c.Host
}

// OnHost says in words on which host a process runs. "": it is not known.
func OnHost(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

// Keeps reports whether the executor may still have what an earlier incarnation of a job had there, by a status of its.
// The status must answer its newest orders: otherwise it may yet take up what they say. A job without an arena may be
// between two of them. One that has finished there keeps the checkpoints with which it goes on elsewhere only if the
// executor is told so. name is the job's: an old job of this name is to leave before a new one comes.
func (x *Executor) Keeps(h wire.Holding, name string, s *wire.Status) bool {
	if h.Executor != x.Name || h.Life != x.Life {
		return true
	}
	ordered := func(a wire.Assignment) bool { return a.Spec.ID == h.ID && a.Incarnation == h.Incarnation }
	said := func(js wire.JobStatus) bool {
		return js.ID == 0 && js.Name == name || js.ID == h.ID && js.Incarnation == h.Incarnation
	}
	return slices.ContainsFunc(x.Orders.Jobs, ordered) || slices.ContainsFunc(s.Jobs, said)
}
