package lease

import (
	"maps"
	"math"
	"time"
)

// Method decides when the machine grants what the rule allows: at once, later, or after something else. It grants
// nothing that (T) and (S) do not allow, and cannot delay for ever (doc.go). A method is pure and deterministic: what
// it knows is what it was told.
type Method interface {
	// Tell tells it what has happened, in order. Now never falls.
	Tell(now time.Duration, n Note)
	// When returns from when on a Want may be granted that the rule allows now: at now or before, at once; later, that
	// the machine is to ask again then, or when it is told something before; [Never], only the latter. It changes
	// nothing.
	When(now time.Duration, w *Want) time.Duration
}

var registered = map[string]func() Method{}

// Register makes methods known by their words. It is called when a program begins (package rivals).
func Register(methods map[string]func() Method) { maps.Copy(registered, methods) }

// NewMethod returns a new method by its word, nil if none is registered by that.
func NewMethod(word string) Method {
	if create := registered[word]; create != nil {
		return create()
	}
	return nil
}

// Never is a time that does not come.
const Never time.Duration = math.MaxInt64

// Note is one thing that has happened. Exactly one field is set. Its jobs have joined.
type Note struct {
	Joined   *Join
	Rejoined *Rejoin // as the job is when the method begins; those of the order come first, oldest first
	Asked    *Want   // for the first time by its number
	Granted  *Want
	Passed   *Passed // or a Want that was granted already has said so
	Left     *Leave
	Capacity *Capacity
}

// Group is what a job is expected to need for a group of commands, at the time of its Join.
type Group struct {
	Pages int           `json:"pages"`          // that it holds with this group and the one before in flight
	Time  time.Duration `json:"time,omitempty"` // of its kernels, alone; all 0: not known
}

// Limits of what a Join may say of groups.
const (
	MaxGroups = 4096 // of a section
	MaxTime   = 24 * time.Hour
)

// of returns the groups of the section that a Want is of; nil: they are not known.
func (j *Join) of(w *Want) []Group {
	if w.Snapshot {
		return j.Snapshot
	}
	return j.Body
}

// known reports whether what a Join says of groups makes sense.
func (j *Join) known() bool {
	for _, groups := range [][]Group{j.Body, j.Snapshot} {
		if len(groups) > MaxGroups {
			return false
		}
		for _, g := range groups {
			if g.Pages < 0 || g.Pages > j.Peak || g.Time < 0 || g.Time > MaxTime {
				return false
			}
		}
	}
	return true
}

// places reports whether a Want says of which of the groups of its Join it is.
func (j *Join) places(w *Want) bool {
	n := len(j.of(w))
	return n == 0 || 0 <= w.Group && w.Group < n && w.First == (w.Group == 0) && w.Last == (w.Group == n-1)
}

func (m *Machine) note(n Note) {
	if m.method != nil {
		m.method.Tell(m.now, n)
	}
}

// adopt begins with a method, which hears of all that have joined.
func (m *Machine) adopt(word string) {
	if m.word == word {
		return
	}
	m.word, m.method = word, nil
	if word != "" {
		m.method = m.options.Methods(word)
	}
	for _, k := range m.joined {
		k.delay = delay{}
	}
	if m.method == nil {
		return
	}
	tell := func(k *holder) {
		r := Rejoin{Join: k.Join, Hold: k.hold, Group: k.at.Group, InSnapshot: k.at.Snapshot}
		if k.began {
			r.Seniority, r.Rest = k.senior, k.rest
		}
		m.note(Note{Rejoined: &r})
	}
	for _, k := range m.order {
		tell(k)
	}
	for _, k := range m.joined {
		if !k.began {
			tell(k)
		}
		if k.asking {
			m.note(Note{Asked: &k.want})
		}
	}
}

// delay is what a method makes of a Want that the rule allows.
type delay struct {
	delayed bool          // in the pass that is under way, or was the last one
	until   time.Duration // while delayed
	from    int64         // while it waits: 1 + the iterations that had begun when it was delayed first; 0: it was not
	over    bool          // the method is not asked any more
}

// allows asks the method about a Want that the rule allows.
func (m *Machine) allows(k *holder) bool {
	if m.method == nil || k.over {
		return true
	}
	if k.from > 0 && m.begun+1-k.from >= m.longest() {
		k.over = true
		return true
	}
	at := m.method.When(m.now, &k.want)
	if at <= m.now {
		return true
	}
	k.delayed, k.until = true, at
	if k.from == 0 {
		k.from = m.begun + 1
	}
	return false
}

// longest returns how many iterations may begin while a method delays a Want: two of each job, so that a method may
// have an iteration of each begin in an order of its own, in the first round after the end of the second.
func (m *Machine) longest() int64 { return int64(max(m.options.Overtakes, 2*len(m.joined))) }

// relents ends a delay if nobody goes on by himself, and reports whether it has: that of the oldest of the order, or,
// if nobody there goes on, of the first of the queue.
func (m *Machine) relents() bool {
	if m.method == nil || m.moves() {
		return false
	}
	if m.live > 0 {
		k := m.order[0]
		k.over = k.delayed
		return k.over
	}
	for _, k := range m.queue {
		if k.delayed {
			k.over = true
			return true
		}
	}
	return false
}

// moves reports whether the machine will hear of some job that waits for nobody: it has groups in flight and asks for
// none, or is idle and holds more than its Base.
func (m *Machine) moves() bool {
	for _, k := range m.joined {
		if !k.aside && (k.began && !k.asking || !k.began && k.hold > k.Base) {
			return true
		}
	}
	return false
}
