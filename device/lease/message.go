package lease

import "time"

// Job names a job.
type Job string

// Limits of what an input may say.
const (
	MaxPages  = 1 << 40
	MaxWeight = 1000
)

// Input is what a machine is told: the time, and at most one of the other fields. An input that says nothing but the
// time is a tick: a runner sends one at [Machine.Wake].
type Input struct {
	Now time.Duration // never falls

	Join     *Join
	Want     *Want
	Passed   *Passed
	Leave    *Leave
	Rejoin   *Rejoin
	Capacity *Capacity
}

// Join says that a job wants to leave Home. From the grant on it holds Base.
//
// A job numbers what it asks for, its Joins and Wants, from 1 up, and goes on after a Leave. What is asked again
// keeps its number. Grants name the number, and Passed the newest that the job has seen: messages may cross.
type Join struct {
	Job    Job
	Ask    int64
	Base   int // pages that it holds over the boundary between iterations
	Peak   int // the most pages that a group of it needs; at least Base
	Weight int // its share of the device against others, from 1 to MaxWeight; 0: 1

	// For a [Method]: the groups of an iteration, and of one that also takes a snapshot. Empty: they are not known.
	Body     []Group `json:",omitempty"`
	Snapshot []Group `json:",omitempty"`
}

// Want asks for the next group of a job. While it is not granted the job asks again, by the same number, whenever its
// Hold falls because groups in flight have passed.
type Want struct {
	Job   Job
	Ask   int64
	First bool // of an iteration
	Last  bool // of that iteration
	// Which group it is, from 0, and that it is of an iteration with a snapshot; for a Join with Groups.
	Group    int  `json:",omitempty"`
	Snapshot bool `json:",omitempty"`

	Rest int // the most pages that a group of the iteration needs, from this one on; from Base to Peak, never rising
	// Hold is what the job would hold: the union of the pages of the groups in flight and of this one. First and last
	// groups hold Base at least. While groups are in flight it may be above Rest and Peak, and is granted if it fits.
	// With none in flight it is at most Rest: such a request never waits for the job's own groups.
	Hold int
}

// Passed says that a job holds fewer pages now: the others have been given back to the system already. If it has not
// seen its newest grant this is of no effect: a Want by the number of that grant says what it will hold.
type Passed struct {
	Job  Job
	Seen int64 // the Ask of the newest grant that the job has seen
	Hold int
}

// Leave says that a job holds nothing any more: it is in Home, or its process is dead.
type Leave struct{ Job Job }

// Rejoin says what a job holds by the grants of a machine that is no more. Tell them all before the first Capacity.
type Rejoin struct {
	Join      // with the Ask of its newest grant
	Hold      int
	Seniority int64 // of the iteration that it is in; 0: it is idle
	Rest      int   // of that iteration
	// The group that it was granted last, as in a Want.
	Group      int  `json:",omitempty"`
	InSnapshot bool `json:",omitempty"`
}

// Capacity says how many pages all jobs may hold together. Until the first one nothing is granted.
type Capacity struct {
	Pages  int
	Number int64 // one that is lower than that of an earlier input is ignored
	// Method is a word of Options.Methods: when to grant what the rule allows. "": at once.
	Method string `json:",omitempty"`
}

// Output is one thing that follows from an input.
type Output struct {
	Kind Kind
	Job  Job
	Why  string // of Drain and Refuse
	Ask  int64  // of a Grant
	// Seniority is the place in the order that a First was granted: older iterations have lower numbers. It is what a
	// Rejoin says.
	Seniority int64
}

// Kind is what an output says.
type Kind uint8

// The kinds of outputs.
const (
	// Grant is the answer to the job's Join, or to its newest Want.
	Grant Kind = iota
	// Drain asks the job to go Home at the next boundary that allows it, and to Leave. It is granted no further
	// iteration before it has; the one that it is in goes on.
	Drain
	// Refuse says that the input was wrong and had no effect.
	Refuse
)

var kinds = [...]string{"grant", "drain", "refuse"}

func (k Kind) String() string { return kinds[k] }

func (o Output) String() string {
	text := o.Kind.String()
	if o.Job != "" {
		text += " " + string(o.Job)
	}
	if o.Why != "" {
		text += ": " + o.Why
	}
	return text
}
