package wire

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tensile/graph"
	"tensile/plan"
)

// MaxLosses is the number of losses that fit a Result. A job of more iterations keeps none.
const MaxLosses = 1 << 18

// checker keeps the first thing that is wrong with a message.
type checker struct{ err error }

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// name checks the name of a job or executor.
func (c *checker) name(what, name string) {
	if err := CheckName(name); err != nil {
		c.fail("%s: %w", what, err)
	}
}

// text checks what is printed in one line.
func (c *checker) text(what, text string) {
	if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		c.fail("%s %s has the control character %q", what, quoted(text), r)
	}
}

// maxText bounds texts that others keep and pass on. One byte may be six in JSON.
const maxText = 8 << 10

// checkShort checks a line of limited length.
func (c *checker) checkShort(what, text string) {
	if c.text(what, text); len(text) > maxText {
		c.fail("%s has %d bytes, and %d at most", what, len(text), maxText)
	}
}

// checkAtLeast checks a number.
func checkAtLeast[N int | int64 | graph.Bytes | time.Duration](c *checker, what string, n, minimum N) {
	if n < minimum {
		c.fail("%s is %d, and cannot be less than %d", what, int64(n), int64(minimum))
	}
}

// checkAmong checks a word of a fixed set.
func checkAmong[S ~string](c *checker, what string, word S, words ...S) {
	if !slices.Contains(words, word) {
		c.fail("there is no %s %s (there are %v)", what, quoted(string(word)), words)
	}
}

// digest checks the digest of a graph: the name of an object.
func (c *checker) digest(d graph.Digest) { c.sha256("graph", string(d)) }

// sha256 checks a digest.
func (c *checker) sha256(what, d string) {
	const length = 64
	if len(d) != length || strings.Trim(d, "0123456789abcdef") != "" {
		c.fail("%s %s is no digest of %d hexadecimal digits", what, quoted(d), length)
	}
}

func (c *checker) spec(s *Spec) {
	c.name("job", s.Name)
	c.checkShort("model", s.Model)
	c.checkShort("weights", s.Weights)
	c.checkShort("source", s.Source)
	c.checkShort("data", s.Data)
	c.checkShort("save", s.Save)
	c.checkShort("from", s.From)
	c.replica(s.Replica)
	if s.Owner != "" {
		c.name("owner", s.Owner)
	}
	if s.Device != "" {
		c.name("device", s.Device)
	}
	c.digest(s.Graph)
}

func (c *checker) replica(r Replica) {
	switch {
	case r.Of == 0:
		if r != (Replica{}) {
			c.fail("replica number %d of group %d says not of how many it is", r.Number, r.Group)
		}
	case r.Of < 2 || r.Of > graph.MaxReplicas || r.Number >= r.Of:
		c.fail("replica %d of %d: there are 2 to %d, with numbers from 0", r.Number, r.Of, graph.MaxReplicas)
	}
}

func (c *checker) meeting(m *Meeting) {
	if m == nil {
		return
	}
	local, isLocal := strings.CutPrefix(m.Address, LocalMeeting)
	if at, err := netip.ParseAddrPort(m.Address); isLocal {
		c.name("address of a meeting", local)
	} else if err != nil || at.Port() == 0 {
		c.fail("meeting at %s: it is no IP address with a port", quoted(m.Address))
	}
	c.checkShort("address of a meeting", m.Address) // its zone may be anything
	const shortest = 16
	if c.checkShort("key of a meeting", m.Key); len(m.Key) < shortest {
		c.fail("key of a meeting has %d characters, and cannot have less than %d", len(m.Key), shortest)
	}
	c.sha256("certificate", m.Certificate)
}

func (c *checker) checkpoint(p *Checkpoint) {
	if p == nil {
		return
	}
	c.checkShort("checkpoint file", p.File)
	c.checkShort("checkpoint host", p.Host)
	c.checkShort("checkpoint folder", p.Folder)
}

func (c *checker) result(r *Result) {
	if r == nil {
		return
	}
	if len(r.Losses) > MaxLosses {
		c.fail("there are %d losses, and at most %d fit a message", len(r.Losses), MaxLosses)
	}
	checkAtLeast(c, "end_ns", r.End, r.Begin)
	c.checkShort("saved", r.Saved)
	c.checkShort("stored", r.Stored)
}

func (r Result) check() error {
	var c checker
	c.result(&r)
	return c.err
}

// checkUnique checks that no two jobs have one name.
func checkUnique[T any](c *checker, jobs []T, name func(*T) string) {
	seen := make(map[string]bool, len(jobs))
	for i := range jobs {
		n := name(&jobs[i])
		if seen[n] {
			c.fail("job %s is there twice", quoted(n))
		}
		seen[n] = true
	}
}

func (o Orders) check() error {
	c := new(checker)
	c.name("executor", o.Executor)
	c.checkShort("device", o.On)
	for i := range o.Jobs {
		c.spec(&o.Jobs[i].Spec)
		checkAmong(c, "place to park", o.Jobs[i].Park, "", InMemory, OnDisk)
		c.checkShort("unplanned", o.Jobs[i].Unplanned)
		c.meeting(o.Jobs[i].Neighbour)
	}
	checkUnique(c, o.Jobs, func(j *Assignment) string { return j.Spec.Name })
	if o.Lease != nil {
		checkAmong(c, "memory sharing", o.Lease.Sharing, Gates, Zico, Waterwave, Slices)
		if o.Lease.Name != "" {
			c.name("lease", o.Lease.Name)
		}
	}
	if o.Refused != nil {
		c.name("refused life", o.Refused.Life)
		c.text("refusal", o.Refused.Reason)
	}
	return c.err
}

func (s Status) check() error {
	c := new(checker)
	c.name("executor", s.Executor)
	c.name("life", s.Life)
	c.checkShort("device", s.Device)
	c.checkShort("host", s.Host)
	c.checkShort("folder", s.Folder)
	c.checkShort("place", s.Place)
	c.checkShort("life", s.Life)
	for _, life := range s.Dead {
		c.name("dead life", life)
	}
	if s.Brings != nil {
		c.device(s.Brings)
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		c.name("job", j.Name)
		checkAmong(c, "state", j.State, Waiting, Running, Resting, Finished, Stopped, Failed, Suspended)
		c.checkpoint(j.Checkpoint)
		c.meeting(j.Meets)
		if len(j.Error) > maxText {
			c.fail("error has %d bytes, and %d at most", len(j.Error), maxText)
		}
		c.result(j.Result)
	}
	checkUnique(c, s.Jobs, func(j *JobStatus) string { return j.Name })
	return c.err
}

func (r Report) check() error {
	c := new(checker)
	c.name("executor", r.Executor)
	c.name("job", r.Job)
	for _, m := range r.Copies {
		checkAmong(c, "kind of copy", m.Kind, plan.Out, plan.In)
		checkAtLeast(c, "end_ns", m.End, m.Start)
	}
	return c.err
}

func (l Layout) check() error {
	c := new(checker)
	if l.Plan == nil {
		return fmt.Errorf("it has no plan")
	}
	c.name("job", l.Plan.Job)
	checkAtLeast(c, "epoch", l.Plan.Epoch, 1)
	c.digest(l.Plan.Graph)
	for _, o := range l.Offsets {
		if o > l.Arena {
			c.fail("offset %d lies outside the arena of %d bytes", o, l.Arena)
		}
	}
	for _, o := range l.Scratch {
		if o > l.Arena {
			c.fail("scratch at %d lies outside the arena of %d bytes", o, l.Arena)
		}
	}
	if n := len(l.Plan.Steps); len(l.Scratch) != 0 && len(l.Scratch) != n {
		c.fail("it has scratch for %d steps of %d", len(l.Scratch), n)
	}
	if l.Reasons != nil {
		l.Reasons.check(c, len(l.Plan.Steps))
	}
	return c.err
}

func (r Request) check() error {
	c := new(checker)
	checkAmong(c, "verb", r.Verb, Submit, Stop, Jobs, Park, Resume, SetBudget, SetWeight, Forget, TraceJob, Explain,
		SetGraph, Drain, SetShare)
	switch r.Verb {
	case Submit:
		if len(r.Specs) == 0 {
			c.fail("submit has no specs")
		}
		for i := range r.Specs {
			c.spec(&r.Specs[i])
		}
		checkUnique(c, r.Specs, func(s *Spec) string { return s.Name })
	case Jobs:
		if r.Job != "" || r.After != 0 {
			c.name("job", r.Job)
		}
	case Stop, Resume:
		c.name("job", r.Job)
	case Park:
		c.name("job", r.Job)
		checkAmong(c, "place to park", r.Place, InMemory, OnDisk)
	case SetBudget:
		c.checkShort("device", r.Device)
	case SetWeight:
		c.name("job", r.Job)
		checkAtLeast(c, "priority", r.Priority, 1)
	case Forget:
		c.name("executor", r.Executor)
	case Drain:
		c.name("device", r.Device)
	case SetShare:
		c.name("tenant", r.Tenant)
	case TraceJob:
		c.name("job", r.Job)
		checkAtLeast(c, "iterations", r.Iterations, 1)
	case Explain:
		c.name("job", r.Job)
		c.checkShort("storage", r.Storage)
	case SetGraph:
		c.name("job", r.Job)
		c.digest(r.Graph)
	}
	return c.err
}

func (a Answer) check() error {
	c := new(checker)
	c.checkShort("device", a.Device)
	for i := range a.Jobs {
		c.record(&a.Jobs[i])
	}
	for i := range a.Devices {
		a.Devices[i].check(c)
	}
	for _, t := range a.Tenants {
		c.checkShort("tenant", t.Name)
		checkAtLeast(c, "share", t.Share, 1)
	}
	c.text("trouble", a.Trouble)
	c.checkShort("credentials", a.Credentials)
	return c.err
}

func (Recorded) check() error { return nil }

func (r Record) check() error {
	c := new(checker)
	c.record(&r)
	return c.err
}

func (c *checker) record(r *Record) {
	c.spec(&r.Spec)
	checkAmong(c, "phase", r.State, JobQueued, JobStarting, JobRunning, JobUnknown, JobParking, JobParked, JobStopping,
		JobFinished, JobStopped, JobFailed)
	checkAmong(c, "place to park", r.Park, "", InMemory, OnDisk)
	checkAmong(c, "memory sharing", r.Sharing, NoSharing, Gates, Zico, Waterwave, Slices)
	c.checkpoint(r.Checkpoint)
	for _, h := range r.Held {
		c.name("executor that holds bytes", h.Executor)
		c.checkShort("life that holds bytes", h.Life)
		c.checkShort("device of held bytes", h.On)
	}
	if len(r.Executors) > maxExecutors {
		c.fail("there are %d executors, and %d at most", len(r.Executors), maxExecutors)
	}
	for _, executor := range r.Executors {
		if executor != "*" {
			c.name("executor", executor)
		}
	}
	if r.Executor != "" {
		c.name("executor", r.Executor)
	}
	if r.Base > r.Claim {
		c.fail("base_bytes is %d, and cannot be more than claim_bytes, %d", int64(r.Base), int64(r.Claim))
	}
	c.checkShort("device that it is on", r.On)
	c.checkShort("target", r.Target)
	c.checkShort("latencies", r.Latencies)
	c.checkShort("device", r.Device)
	c.result(r.Result)
	c.checkShort("unplanned", r.Unplanned)
}

func (s Settings) check() error {
	c := new(checker)
	c.checkShort("device", s.Device)
	return c.err
}

func (t Tenants) check() error {
	c := new(checker)
	for _, name := range slices.Sorted(maps.Keys(t.Shares)) {
		c.name("tenant", name)
		checkAtLeast(c, "share", t.Shares[name], 1)
	}
	for _, d := range t.Debts {
		if d.Device != "" {
			c.name("device", d.Device)
		}
		if d.Tenant != "" {
			c.name("tenant", d.Tenant)
		}
	}
	return c.err
}

func (l Leadership) check() error {
	c := new(checker)
	c.checkShort("id", l.ID)
	c.checkShort("where", l.Where)
	c.checkShort("lease", l.Lease)
	checkAtLeast(c, "term", l.Term, 1)
	return c.err
}

// MaxLatency bounds what an op may have taken on average: a graph of them can be added.
const MaxLatency = time.Hour

func (l Learnt) check() error {
	c := new(checker)
	c.checkShort("device", l.Device)
	if len(l.Ops) > MaxLearnt {
		c.fail("there are latencies of %d ops, and at most %d are kept", len(l.Ops), MaxLearnt)
	}
	seen := make(map[graph.Signature]bool, len(l.Ops))
	for _, op := range l.Ops {
		s := string(op.Signature)
		if len(s) != graph.SignatureDigits || strings.Trim(s, "0123456789abcdef") != "" {
			c.fail("op %s is no signature of %d hexadecimal digits", quoted(s), graph.SignatureDigits)
		}
		if seen[op.Signature] {
			c.fail("op %s is there twice", quoted(s))
		}
		seen[op.Signature] = true
		checkAtLeast(c, "reports", op.Reports, 1)
	}
	return c.err
}
