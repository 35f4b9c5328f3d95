package fleet

import (
	"fmt"
	"slices"
	"time"

	"tensile/wire"
)

// Verdict is what a status means by what is known of the executor of its name.
type Verdict int

const (
	Counts   Verdict = iota // it is news of the executor
	Stranger                // no executor of its name lives: it may join
	Late                    // it is of a process that is dead
	Older                   // it is older than the newest
	Second                  // it is of a second process of the executor's name
)

// Judge says what a status means. x is nil if there was no executor of its name. A process that says that it leaves
// does not join.
func Judge(x *Executor, s *wire.Status) Verdict {
	switch {
	case x != nil && x.State == Dead && x.Life == s.Life:
		return Late
	case slices.Contains(s.Dead, s.Life) && (x == nil || x.IsGone() || x.Life != s.Life):
		return Late
	case x == nil || x.IsGone():
		return Stranger
	case x.Life != "" && x.Life != s.Life:
		return Second
	case x.Life != "" && s.Number <= x.LastStatus:
		return Older
	}
	return Counts
}

// Hear takes a status that counts. It reports whether the executor was out of reach before.
func (x *Executor) Hear(s *wire.Status, now time.Duration) (returns bool) {
	returns = x.IsSilent()
	x.Process = Process{Life: s.Life, Host: s.Host, Folder: s.Folder, LeaseHost: s.Place, StartedAt: s.Since}
	x.LastStatus, x.LastHeard = s.Number, now
	if s.Leaves {
		x.Enter(Leaving)
	} else {
		x.Enter(Present)
	}
	return returns
}

// HearRival takes the status of a second process with the name of the executor, as when the same credentials are
// started twice. The second process is refused when the first is heard again, and taken in when the first is given up.
// If one of them was launched it is not known which; from then on silence decides. It reports whether the process is
// new.
func (x *Executor) HearRival(s *wire.Status) (isNew bool) {
	x.Rival = s
	if slices.Contains(x.Rivals, s.Life) {
		return false
	}
	x.Rivals = append(x.Rivals, s.Life)
	return true
}

// RefuseRival refuses the second process of an executor whose first one lives, and returns its last status.
func (x *Executor) RefuseRival() *wire.Status {
	rival := x.Rival
	why := fmt.Sprintf("%s runs already%s", x.Name, OnHost(x.Host))
	if x.StartedAt > 0 {
		form := "15:04"
		if rival.Since-x.StartedAt > int64(24*time.Hour) {
			form = "2 January 15:04"
		}
		why += " since " + time.Unix(0, x.StartedAt).Format(form)
	}
	x.Refusal, x.Rival = &wire.Refusal{Life: rival.Life, Reason: why}, nil
	return rival
}

// IsRefused reports whether the process of a status was refused.
func (x *Executor) IsRefused(life string) bool { return x.Refusal != nil && x.Refusal.Life == life }

// LeaseConflict is why a process cannot be executor x of its device: another executor of the device, which can be
// reached, has the lease of the memory elsewhere, and both leases would grant all of it. The claims of an executor out
// of reach count whole, so it is no conflict. "": there is none.
func (f Fleet) LeaseConflict(x *Executor, s *wire.Status) string {
	for _, o := range f.Sorted() {
		if o != x && o.Device == x.Device && o.IsHere() && o.LeaseHost != s.Place {
			return fmt.Sprintf("it cannot share the lease of the device's memory with executor %s%s: start both as "+
				"one user of one machine and network namespace, or give its device another --name", o.Name,
				OnHost(o.Host))
		}
	}
	return ""
}
