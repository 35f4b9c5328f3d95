package scheduler

import (
	"fmt"
	"time"

	"tensile/graph"
)

// Decision says what was done with one gap of a storage, and why.
type Decision struct {
	Storage  graph.StorageID
	Kind     Kind          // Keep only if Request.Explain asks for what stays at the peak
	From, To int           // slots of the accesses around the gap; To counts on from the last slot when it wraps
	Freed    int           // slots in which the storage is away
	Away     time.Duration // how long these take
	Cost     time.Duration // that the job is expected to lose; of what is kept, what it would lose
	Reason   string
}

// Kind is what is decided about a gap.
type Kind uint8

const (
	Keep      Kind = iota // the storage stays on the device
	Swap                  // it is copied out and in
	Recompute             // it is dropped and made again
)

var kinds = [...]string{Keep: "keep", Swap: "swap", Recompute: "recompute"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText gives the kind as a word, in JSON too.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText has written.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, word := range kinds {
		if word == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no kind of a decision", text)
}
