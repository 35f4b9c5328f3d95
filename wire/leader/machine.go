package leader

import (
	"errors"
	"time"

	"tensile/wire"
)

// Config is what a candidate knows of itself.
type Config struct {
	ID    string // the ID of this candidacy, which no other has
	Where string // host and process, for people
	Lease string // what the lease of the device's memory is called if this is the first leader of all

	Beat time.Duration // lies between two looks at the key, or two renewals of it; 0: 1s
	TTL  time.Duration // after which a key that has not changed is taken over; 0: 5s
}

// minLooks is how often at least a key is found unchanged before it is taken over: a clock may jump.
const minLooks = 3

func (c Config) withDefaults() Config {
	if c.Beat == 0 {
		c.Beat = time.Second
	}
	if c.TTL == 0 {
		c.TTL = 5 * time.Second
	}
	return c
}

// Machine decides whether this controller leads. It has one request to the store under way at most.
type Machine struct {
	// config are the machine's settings.
	config Config
	// pending is the request under way; zero: there is none.
	pending Output

	// leads says that this candidate leads.
	leads bool
	// mine is the Leadership that was tried last.
	mine wire.Leadership
	// tried is when that was.
	tried time.Duration
	// revision is that of the key when it was ours last.
	revision uint64
	// renewed is when the last write was sent that was certainly stored.
	renewed time.Duration

	// seen is the revision of the newest write of another candidate; 0: none is known.
	seen uint64
	// since is when that was seen first.
	since time.Duration
	// looks is how often it was seen.
	looks int
}

// New returns a machine that stands by.
func New(c Config) *Machine { return &Machine{config: c.withDefaults()} }

// Input is what the machine is told: one of these.
type Input struct {
	Tick    bool // Beat has passed
	Got     *Got // what became of the request under way
	Deposed bool // a stream has refused what a leader writes: another leads
	Resign  bool // the process ends
}

// Got is the answer to a request.
type Got struct {
	Holds    wire.Leadership // what was read
	Revision uint64          // of what was read or set
	Err      error           // wire.ErrNotFound, wire.ErrConflict; after any other it may or may not have been set
}

// Output is what the machine wants: one of these.
type Output struct {
	Read bool             // read the key
	Set  *Set             // set the key
	Lead *wire.Leadership // this controller leads from now on
	Lost *wire.Leadership // it leads no longer; who leads, as far as that is known
}

// Set is a request to set the key if it has a revision.
type Set struct {
	Value    wire.Leadership
	Revision uint64 // 0: it is not there
}

// Step tells the machine something. The answer to a request is to be given before the next tick.
func (m *Machine) Step(now time.Duration, in Input) []Output {
	switch {
	case in.Deposed && m.leads:
		return m.lose(wire.Leadership{})
	case in.Resign && m.leads:
		m.leads = false
		last := m.mine
		last.ID, last.Beat = "", last.Beat+1
		return []Output{{Set: &Set{last, m.revision}}}
	case in.Got != nil && m.pending.Read:
		m.pending = Output{}
		return m.read(now, *in.Got)
	case in.Got != nil && m.pending.Set != nil:
		m.pending = Output{}
		return m.set(*in.Got)
	case in.Tick && m.pending != (Output{}):
		return nil
	case in.Tick && m.leads:
		m.mine.Beat++
		return m.try(now, m.revision)
	case in.Tick:
		return m.ask(Output{Read: true})
	}
	return nil
}

// Until is when a leader that has not renewed the key has to leave alone what no stream would refuse. It is in the past
// where this controller does not lead.
func (m *Machine) Until() time.Duration {
	if !m.leads {
		return 0
	}
	return m.renewed + m.config.TTL - m.config.Beat
}

func (m *Machine) ask(o Output) []Output {
	m.pending = o
	return []Output{o}
}

// try sets the key.
func (m *Machine) try(now time.Duration, revision uint64) []Output {
	m.tried = now
	return m.ask(Output{Set: &Set{m.mine, revision}})
}

// claim tries to lead, after who holds the key.
func (m *Machine) claim(now time.Duration, after wire.Leadership, revision uint64) []Output {
	m.mine = wire.Leadership{ID: m.config.ID, Where: m.config.Where, Term: after.Term + 1, Lease: after.Lease}
	if m.mine.Lease == "" {
		m.mine.Lease = m.config.Lease
	}
	return m.try(now, revision)
}

// read handles what the key holds.
func (m *Machine) read(now time.Duration, got Got) []Output {
	switch {
	case errors.Is(got.Err, wire.ErrNotFound) && m.leads:
		return m.lose(wire.Leadership{}) // somebody has removed it
	case errors.Is(got.Err, wire.ErrNotFound):
		return m.claim(now, wire.Leadership{}, 0)
	case got.Err != nil:
		m.seen = 0 // nor could others set it, perhaps
		return nil
	case got.Holds.ID == m.config.ID && got.Holds.Term == m.mine.Term:
		if got.Holds.Beat < m.mine.Beat { // the answer to an earlier renewal was lost
			return m.try(now, got.Revision)
		}
		return m.confirm(got.Revision)
	case m.leads:
		return m.lose(got.Holds)
	case got.Holds.ID == "":
		return m.claim(now, got.Holds, got.Revision)
	case got.Revision != m.seen || now < m.since:
		m.seen, m.since, m.looks = got.Revision, now, 1
		return nil
	}
	if m.looks++; m.looks >= minLooks && now-m.since >= m.config.TTL {
		return m.claim(now, got.Holds, got.Revision)
	}
	return nil
}

// set handles the outcome of an attempt to set the key.
func (m *Machine) set(got Got) []Output {
	switch {
	case got.Err == nil:
		return m.confirm(got.Revision)
	case errors.Is(got.Err, wire.ErrConflict):
		return m.ask(Output{Read: true}) // perhaps an earlier try was stored, and its answer lost
	}
	m.seen = 0
	return nil
}

// confirm records that the key is as it was tried last.
func (m *Machine) confirm(revision uint64) []Output {
	m.revision, m.renewed = revision, m.tried
	if m.leads {
		return nil
	}
	m.leads = true
	lead := m.mine
	return []Output{{Lead: &lead}}
}

func (m *Machine) lose(to wire.Leadership) []Output {
	m.leads, m.seen = false, 0
	return []Output{{Lost: &to}}
}
