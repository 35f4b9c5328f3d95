package external

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tensile/graph"
)

const (
	maxOps     = 1 << 17 // and storages, and boundaries
	maxTensors = 1 << 19
	maxActions = 1 << 20 // of a plan
	maxText    = 8 << 10
	maxNumber  = 1 << 53
	maxTime    = 1 << 53
)

// checker keeps the first thing that is wrong with a message.
type checker struct{ err error }

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// text checks a line.
func (c *checker) text(what, text string) {
	if len(text) > maxText {
		c.fail("%s has %d bytes, and %d at most", what, len(text), maxText)
	}
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 {
		c.fail("%s has a control character", what)
	}
}

// checkRange checks a number.
func checkRange[N int | int64 | graph.Bytes | graph.OpID | graph.StorageID | time.Duration](c *checker, what string,
	n N, from, to int64) {
	if int64(n) < from || int64(n) > to {
		c.fail("%s is %d, and must be from %d to %d", what, int64(n), from, to)
	}
}

// atMost checks how many of something there are.
func (c *checker) atMost(what string, n, most int) {
	if n > most {
		c.fail("there are %d %s, and %d at most", n, what, most)
	}
}

// times checks durations.
func (c *checker) times(what string, all []time.Duration) {
	for _, d := range all {
		checkRange(c, what, d, 0, maxTime)
	}
}

// storages checks ids that ascend.
func (c *checker) storages(what string, ids []graph.StorageID) {
	c.atMost(what, len(ids), maxOps)
	for i, s := range ids {
		if checkRange(c, what, s, 0, maxOps-1); i > 0 && ids[i-1] >= s {
			c.fail("%s do not ascend at %d", what, s)
		}
	}
}

// maxRank is the highest rank of a process on its host.
const maxRank = 1<<16 - 1

func (h Hello) check() error {
	c := &checker{}
	checkRange(c, "pid", h.PID, 1, math.MaxInt32)
	if h.Framework != "torch" {
		c.text("framework", h.Framework)
		c.fail("framework %.40q is not known: torch", h.Framework)
	}
	c.text("release", h.Release)
	if h.Rank != nil {
		checkRange(c, "rank", *h.Rank, 0, maxRank)
	}
	d := &h.Device
	if d.Kind != "cpu" && d.Kind != "cuda" {
		c.fail("device of kind %.40q is not known: cpu, cuda", d.Kind)
	}
	c.text("device", d.Name)
	checkRange(c, "memory_bytes", d.Memory, 0, int64(graph.MaxBytes))
	checkRange(c, "least_bytes", d.Least, 0, int64(graph.MaxBytes))
	checkRange(c, "base_bytes", d.Base, 0, int64(graph.MaxBytes))
	checkRange(c, "out_bytes_per_s", d.Out, 0, maxNumber)
	checkRange(c, "in_bytes_per_s", d.In, 0, maxNumber)
	return c.err
}

func (r Recorded) check() error {
	c := &checker{}
	checkRange(c, "number", r.Number, 1, math.MaxInt32)
	checkRange(c, "held_bytes", r.Held, 0, int64(graph.MaxBytes))
	if r.Graph == nil {
		c.fail("there is no graph")
		return c.err
	}
	g := r.Graph
	c.atMost("ops", len(g.Ops), maxOps)
	c.atMost("storages", len(g.Storages), maxOps)
	c.atMost("tensors", len(g.Tensors), maxTensors)
	if c.err != nil {
		return c.err
	}
	if err := checkGraph(g); err != nil {
		return err
	}
	all := r.Held
	for _, s := range g.Storages {
		if all += s.Bytes; all > graph.MaxBytes {
			c.fail("its storages have more than %d bytes together, with what is held", graph.MaxBytes)
			break
		}
	}
	if len(r.Latency) != len(g.Ops) {
		c.fail("there are %d latencies, for %d ops", len(r.Latency), len(g.Ops))
	}
	c.times("latency_ns", r.Latency)
	return c.err
}

// checkGraph returns an error unless a graph is one that a script can have recorded.
func checkGraph(g *graph.Graph) error {
	c := &checker{}
	if c.text("name", g.Name); c.err == nil {
		c.err = g.Validate()
	}
	if c.err != nil {
		return c.err
	}
	if !g.Opaque() {
		c.fail("an op is not of kind %q", graph.Opaque)
	}
	for _, s := range g.Storages {
		switch c.text("name of a storage", s.Name); {
		case s.Role == graph.Input || s.Role == graph.Output:
			c.fail("storage %s has the role %s: what a script makes for itself is an activation", s.Name, s.Role)
		case s.PartOf != "" || s.Init != nil || s.Holds != graph.Anything:
			c.fail("storage %s: a script says neither part_of nor init nor holds", s.Name)
		}
	}
	for _, t := range g.Tensors {
		c.text("name of a tensor", t.Name)
		if t.DType != graph.Uint8 || t.Offset != 0 || t.Bytes() != g.Storages[t.Storage].Bytes {
			c.fail("tensor %s: it must be all of storage %s, of type uint8", t.Name, g.Storages[t.Storage].Name)
		}
	}
	for _, op := range g.Ops {
		c.text("name of an op", op.Name)
		c.text("layer of an op", op.Layer)
	}
	if len(g.Passes) > 0 {
		c.fail("passes do not rewrite what a script does")
	}
	return c.err
}

func (p Plan) check() error {
	c := &checker{}
	checkRange(c, "number", p.Number, 1, maxNumber)
	checkRange(c, "graph", p.Graph, 0, math.MaxInt32)
	checkRange(c, "limit_bytes", p.Limit, 0, maxNumber) // of some of what is at most MaxBytes each
	checkRange(c, "plan_bytes", p.Bytes, 0, maxNumber)
	c.text("why", p.Why)
	if p.Graph == 0 && (p.Bytes != 0 || len(p.Entry) > 0 || len(p.Boundaries) > 0) {
		c.fail("there is a plan for no graph")
	}
	if p.Strict && (p.Graph != 0 || p.Limit == 0) {
		c.fail("it is strict, and no limit without a plan")
	}
	c.storages("entry", p.Entry)
	c.atMost("boundaries", len(p.Boundaries), maxOps+1)
	actions := 0
	for i, b := range p.Boundaries {
		if checkRange(c, "before", b.Before, 0, maxOps); i > 0 && p.Boundaries[i-1].Before >= b.Before {
			c.fail("boundaries do not ascend at %d", b.Before)
		}
		if len(b.Do) == 0 {
			c.fail("there is nothing to do before %d", b.Before)
		}
		for _, a := range b.Do {
			c.action(&a)
		}
		actions += len(b.Do)
	}
	c.atMost("actions", actions, maxActions)
	return c.err
}

func (c *checker) action(a *Action) {
	switch a.Do {
	case Out, Drop, In:
		if a.Storage == nil || a.Op != nil || len(a.Outputs) > 0 || a.Wait && a.Do == Drop {
			c.fail("%s has a storage and no op or outputs; a drop does not wait", a.Do)
			return
		}
		checkRange(c, "storage", *a.Storage, 0, maxOps-1)
	case Again:
		if a.Op == nil || a.Storage != nil || a.Wait {
			c.fail("again has an op and no storage, and does not wait")
			return
		}
		checkRange(c, "op", *a.Op, 0, maxOps-1)
		if !slices.IsSorted(a.Outputs) || len(slices.Compact(slices.Clone(a.Outputs))) != len(a.Outputs) {
			c.fail("outputs do not ascend")
		}
		for _, i := range a.Outputs {
			checkRange(c, "output", i, 0, 31)
		}
	default:
		c.fail("%.40q is nothing to do: out, drop, in, again", string(a.Do))
	}
}

func (a Applied) check() error {
	c := &checker{}
	checkRange(c, "plan", a.Plan, 1, maxNumber)
	checkRange(c, "iteration", a.Iteration, 0, maxNumber)
	checkRange(c, "reserved_bytes", a.Reserved, 0, int64(graph.MaxBytes))
	c.text("error", a.Error)
	return c.err
}

func (i Iteration) check() error {
	c := &checker{}
	checkRange(c, "iteration", i.Iteration, 1, maxNumber)
	checkRange(c, "graph", i.Graph, 0, math.MaxInt32)
	checkRange(c, "plan", i.Plan, 0, maxNumber)
	checkRange(c, "wall_ns", i.Wall, 0, maxTime)
	checkRange(c, "stall_ns", i.Stall, 0, int64(i.Wall))
	c.atMost("steps_ns", len(i.Steps), maxOps+maxActions)
	c.times("steps_ns", i.Steps)
	checkRange(c, "touched_bytes", i.Touched, 0, int64(graph.MaxBytes))
	checkRange(c, "reserved_bytes", i.Reserved, 0, int64(graph.MaxBytes))
	checkRange(c, "host_bytes", i.Host, 0, int64(graph.MaxBytes))
	checkRange(c, "faults", i.Faults, 0, maxNumber)
	checkRange(c, "retries", i.Retries, 0, maxNumber)
	if i.Plan != 0 && i.Graph == 0 {
		c.fail("plan %d is followed by a graph that was not sent", i.Plan)
	}
	return c.err
}

func (p Passive) check() error {
	c := &checker{}
	checkRange(c, "iteration", p.Iteration, 0, maxNumber)
	if p.Why == "" {
		c.fail("it does not say why")
	}
	c.text("why", p.Why)
	return c.err
}

func (p Parked) check() error {
	c := &checker{}
	checkRange(c, "number", p.Number, 1, maxNumber)
	checkRange(c, "iteration", p.Iteration, 0, maxNumber)
	checkRange(c, "reserved_bytes", p.Reserved, 0, int64(graph.MaxBytes))
	return c.err
}

func (e End) check() error {
	c := &checker{}
	checkRange(c, "iteration", e.Iteration, 0, maxNumber)
	c.text("error", e.Error)
	if e.Error != "" && e.Stopped {
		c.fail("it has failed, and was stopped")
	}
	return c.err
}

func (p Park) check() error { return numbered(p.Number) }

func (r Resume) check() error { return numbered(r.Number) }

func (Stop) check() error { return nil }

func numbered(n int64) error {
	c := &checker{}
	checkRange(c, "number", n, 1, maxNumber)
	return c.err
}
