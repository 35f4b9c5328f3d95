package fleet

import (
	"fmt"
	"time"
)

// forgetAfter is how long an executor is remembered after it has gone.
const forgetAfter = time.Hour

// Patience is how long executors may be silent.
type Patience struct {
	// Silence is the time after which one is out of reach, and GiveUp that after which its jobs go on elsewhere.
	Silence, GiveUp time.Duration
	// Watched says that the parent of executors that were launched tells of their end.
	Watched bool
	// SharesMemory says that others wait for the pages of one that is silent.
	SharesMemory bool
	// Deaf says that what executors have said may not have arrived yet.
	Deaf bool
}

// Due is what is to be done about an executor of which nothing has come, in this order.
type Due struct {
	// Forget says that no message of it can be on its way any more.
	Forget bool
	// Silent says that it is out of reach from now on.
	Silent bool
	// Kill says that its process, which is a child of the controller's, is to end at once.
	Kill bool
	// GiveUp says that its jobs go on elsewhere.
	GiveUp bool
}

// Tick says what is due at a time. The parent of an executor that was launched tells of its end, so that one may be
// silent unless others wait for its pages.
func (x *Executor) Tick(now time.Duration, p Patience) Due {
	watched := x.Launched && p.Watched
	switch {
	case x.IsGone():
		return Due{Forget: now-x.LastHeard > forgetAfter}
	case watched && !(p.SharesMemory && x.State != Awaited):
		return Due{}
	case p.Deaf:
		x.LastHeard = now
	}
	silent := now - x.LastHeard
	return Due{Silent: silent > p.Silence && !x.IsSilent(), Kill: silent > p.GiveUp && watched && x.State != Killed,
		GiveUp: silent > p.GiveUp && !watched}
}

// SilenceText says for how long the executor was not heard of.
func (x *Executor) SilenceText(now time.Duration) string {
	return fmt.Sprintf("it has not been heard of for %v", (now - x.LastHeard).Round(time.Second))
}
