package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/wire"
)

// spec is a job that whoever submits it may submit.
func (d *door) spec() wire.Spec {
	d.names++
	s := wire.Spec{Name: fmt.Sprint("job", d.names), Model: "random", Iterations: endless, Priority: 1}
	if d.rng.IntN(4) == 0 {
		s.Script, s.Iterations, s.Graph = true, 0, d.pack(graphtest.Script(d.rng))
		return s
	}
	s.Graph, s.Device = d.pack(graphtest.New(d.rng, graphtest.Options{})), d.on()
	if d.rng.IntN(2) == 0 {
		s.Checkpoint, s.Restarts = wire.Interval{Iterations: 2}, 2
	}
	return s
}

// orders are the newest for an executor.
func (d *door) orders(executor string) wire.Orders {
	data, err := d.bus.Get(d.t.Context(), wire.OrdersKey(executor))
	if err != nil {
		return wire.Orders{Executor: executor}
	}
	o, err := wire.DecodeAs[wire.Orders](data)
	if err != nil {
		d.t.Fatalf("orders that were written cannot be read: %v", err)
	}
	return o
}

// status is what an executor that does as it is told says.
func (d *door) status(executor string) wire.Status {
	o := d.orders(executor)
	d.number[executor]++
	s := wire.Status{Executor: executor, Number: d.number[executor], Life: "1", Device: "model", Orders: o.Number}
	if b := d.brought[executor]; b != nil {
		s.Brings, s.Device = b, b.Identity
	}
	for _, a := range o.Jobs {
		j := wire.JobStatus{Name: a.Spec.Name, ID: a.Spec.ID, Incarnation: a.Incarnation, State: wire.Waiting}
		if l := d.layout(executor, &a); l != nil {
			j.State, j.Epoch, j.Arena, j.Iteration = wire.Running, a.Epoch, l.Arena, int(d.number[executor])
		}
		switch {
		case a.Stop:
			j.State, j.Arena = wire.Stopped, 0
		case a.Park == wire.InMemory:
			j.State, j.Arena = wire.Resting, 0
		case a.Park == wire.OnDisk:
			j.State, j.Arena = wire.Suspended, 0
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

// device is one that an executor of its name brings.
func (d *door) device(name string) *wire.Device {
	link := cost.Link{Rate: 5e9, Latency: time.Microsecond}
	return &wire.Device{Name: name, Model: "sim:" + name, Identity: name, Align: 64, Page: 4096, Budget: 40_000,
		HostMemory: 1 << 30, Context: 16, Facts: cost.Facts{Name: "lab", Compute: 1e12, Bandwidth: 1e11, Out: link,
			In: link, Host: link, Network: link, Memory: 1 << 33, ComputeShare: 0.5, BandwidthShare: 0.5, Parallel: 2}}
}

func (d *door) layout(executor string, a *wire.Assignment) *wire.Layout {
	data, err := d.bus.Load(d.t.Context(), wire.Bucket(executor), wire.LayoutObject(a.Spec.Name, a.Spec.ID, a.Epoch))
	if err != nil {
		return nil
	}
	l, err := wire.DecodeAs[wire.Layout](data)
	if err != nil {
		d.t.Fatalf("a layout that was written cannot be read: %v", err)
	}
	return &l
}

// a sender makes a message that is right, and says where it goes.
type sender struct {
	name    string
	message func(d *door) wire.Message
	send    func(d *door, data []byte)
}

var senders = []sender{
	{"user", (*door).request, func(d *door, data []byte) { d.bus.as("ada", data) }},
	{"viewer", func(d *door) wire.Message {
		return []wire.Request{{Verb: wire.Jobs}, {Verb: wire.Explain, Job: d.job()},
			{Verb: wire.Explain, Job: d.job(), Priority: 2}}[d.rng.IntN(3)]
	}, func(d *door, data []byte) { d.bus.as("eve", data) }},
	{"executor", func(d *door) wire.Message {
		if d.rng.IntN(4) == 0 { // one comes and brings a device
			return d.status(d.lab())
		}
		return d.says(d.some("adas", slices.Sorted(maps.Keys(d.brought))...))
	}, (*door).said},
	{"script", func(d *door) wire.Message { return d.says(d.script()) }, (*door).said},
}

// on is the name of a device, or "".
func (d *door) on() string { return d.some("", slices.Sorted(maps.Keys(d.brought))...) }

// job is the name of one that there may be.
func (d *door) job() string { return d.some("bob", fmt.Sprint("job", 1+d.rng.IntN(d.names))) }

func (d *door) some(a string, others ...string) string {
	if at := d.rng.IntN(1 + len(others)); at > 0 {
		return others[at-1]
	}
	return a
}

// lab is a new executor with a device, of which there are a few.
func (d *door) lab() string {
	name := fmt.Sprint("lab", d.number["bobs"])
	if len(d.brought) == 4 {
		delete(d.brought, slices.Min(slices.Collect(maps.Keys(d.brought))))
	}
	d.brought[name] = d.device(name)
	return name
}

// script is an executor of a script, if there is one.
func (d *door) script() string {
	name := "adas"
	jobs := d.jobs()
	for _, job := range slices.Sorted(maps.Keys(jobs)) {
		if r := jobs[job]; r.Spec.Script && !r.State.Over() && d.rng.IntN(2) == 0 {
			name = r.Executor
		}
	}
	if name == "" {
		name = "adas"
	}
	return name
}

func (d *door) request() wire.Message {
	q := wire.Request{Job: d.job(), Place: wire.InMemory, Priority: 2, Iterations: 3, Storage: "a", Executor: "bobs",
		Budget: 20_000, Device: d.on(), Tenant: "ada", Share: 2, Held: 512, Least: 64}
	q.Verb = []wire.Verb{wire.Submit, wire.Submit, wire.Submit, wire.Stop, wire.Park, wire.Resume, wire.SetBudget,
		wire.SetWeight, wire.Forget, wire.TraceJob, wire.Explain, wire.SetGraph, wire.Drain,
		wire.SetShare}[d.rng.IntN(14)]
	switch q.Verb {
	case wire.Submit:
		q.Specs = []wire.Spec{d.spec()}
		q.Graphs = d.packed
	case wire.SetGraph:
		q.Graph = d.pack(graphtest.Script(d.rng))
		q.Graphs = d.packed
	case wire.Drain:
		q.Device = d.on()
		if q.Device == "" {
			q.Device = "model"
		}
	}
	return q
}

// says is what an executor says, with all that it might say of its jobs.
func (d *door) says(executor string) wire.Message {
	s := d.status(executor)
	if executor != "adas" && d.brought[executor] == nil {
		s.Life = "script"
	}
	o := d.orders(executor)
	if len(s.Jobs) == 0 {
		return s
	}
	at := d.rng.IntN(len(s.Jobs))
	j, a := &s.Jobs[at], &o.Jobs[at]
	loss := wire.Loss(1)
	switch d.rng.IntN(8) {
	case 0:
		l := d.layout(executor, a)
		if l == nil {
			break
		}
		r := wire.Report{Executor: executor, Job: j.Name, ID: j.ID, Incarnation: j.Incarnation, Epoch: a.Epoch,
			Iteration: j.Iteration, Stall: 5, Gate: 5, Wall: 1000, Touched: 64, Loss: &loss}
		for range l.Plan.Steps {
			r.Steps = append(r.Steps, 1000)
		}
		for _, m := range l.Plan.Moves {
			if m.Kind == "out" || m.Kind == "in" {
				r.Copies = append(r.Copies, wire.Copy{Kind: m.Kind, Storage: m.Storage, After: m.After, Start: 1,
					End: 2})
			}
		}
		return r
	case 1:
		j.Checkpoint = &wire.Checkpoint{Iteration: j.Iteration, File: "a", Host: "here", Bytes: 512, Took: 5}
	case 2:
		j.Script = &wire.Allocated{Plan: 512, Reserve: 64, Touched: 512}
	case 3:
		free := graph.Bytes(64)
		j.State, j.Error, j.Free = wire.Failed, "no room", &free
	case 4:
		j.State = []wire.State{wire.Finished, wire.Stopped, wire.Failed, wire.Suspended}[d.rng.IntN(4)]
		j.Result = &wire.Result{Last: &loss, Begin: 1, End: 5, Stall: 2, Plans: 2, Arena: 512, SlotPeak: 512,
			Touched: 64}
		if d.rng.IntN(2) == 0 {
			j.Result.Stored = wire.ResultKey(executor, j.ID, j.Incarnation)
			left := wire.Encode(wire.Result{Losses: wire.Losses{1, 2}, Weights: map[int32]string{0: "a"}, Begin: 1,
				End: 2})
			if err := d.bus.Put(d.t.Context(), j.Result.Stored, d.change(left)); err != nil {
				d.t.Fatal(err)
			}
		}
	case 5:
		j.Begun, j.Since = j.Iteration+1, 1
		j.Meets = &wire.Meeting{Address: "10.0.0.7:40123", Key: strings.Repeat("K", 26),
			Certificate: string(d.bob.Spec.Graph)}
	case 6:
		s.Leaves, s.Dead, s.Life = d.rng.IntN(2) == 0, []string{"1"}, d.some("1", "2")
	}
	return s
}

// said has what an executor has said arrive where it alone may write.
func (d *door) said(data []byte) {
	var m struct {
		Kind string
		Body struct{ Executor, Job string }
	}
	_ = json.Unmarshal(data, &m) // some is no message any more
	executor := m.Body.Executor
	if executor == "bobs" || wire.CheckName(executor) != nil {
		executor = "adas"
	}
	if m.Kind == "report" {
		job := m.Body.Job
		if wire.CheckName(job) != nil {
			job = "bob"
		}
		_ = d.bus.Publish(wire.ReportSubject(executor, job), data)
		_ = d.bus.Publish(wire.TraceSubject(executor, job), data)
		return
	}
	if s, err := wire.DecodeAs[wire.Status](data); err == nil && d.brought[executor] != nil && s.Brings != nil {
		d.brought[executor] = s.Brings
	}
	_ = d.bus.Put(d.t.Context(), wire.StatusKey(executor), data)
}

// numbers are those at which something may go wrong.
var numbers = []json.Number{"0", "-1", "1", "2", "63", "65", "4096", "100000", "1152921504606846976",
	"4611686018427387904", "4611686018427387905", "9223372036854775807", "9223372036854775744", "-9223372036854775808",
	"9223372036854775808", "18446744073709551615", "4503599627370496", "4503599627370432", "9007199254740992",
	"9007199254740993", "72057594037927936", "70368744177664", "3600000000000", "1e308", "-1e308", "0.5", "1e-300",
	"2147483647", "-2147483648"}

// change changes a message at some places, mostly one.
func (d *door) change(data []byte) []byte {
	if d.rng.IntN(10) == 0 {
		return data
	}
	if d.rng.IntN(20) == 0 { // bytes
		data = bytes.Clone(data)
		data[d.rng.IntN(len(data))] ^= byte(1 << d.rng.IntN(8))
		return data
	}
	var tree any
	from := json.NewDecoder(bytes.NewReader(data))
	if from.UseNumber(); from.Decode(&tree) != nil {
		return data
	}
	within := tree
	if m, ok := tree.(map[string]any); ok && d.rng.IntN(10) > 0 {
		within = m["body"]
	}
	for more := true; more; more = d.rng.IntN(3) == 0 {
		var places []func()
		d.places(within, func(any) {}, &places)
		if len(places) == 0 {
			return data
		}
		places[d.rng.IntN(len(places))]()
	}
	out, err := json.Marshal(tree)
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// places collects what can be changed in a tree.
func (d *door) places(v any, set func(any), all *[]func()) {
	another := func(to func() any) { *all = append(*all, func() { set(to()) }) }
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			d.places(v[key], func(to any) { v[key] = to }, all)
			if d.rng.IntN(8) == 0 {
				*all = append(*all, func() { delete(v, key) })
			}
		}
	case []any:
		for i := range v {
			d.places(v[i], func(to any) { v[i] = to }, all)
		}
		if len(v) > 0 {
			another(func() any { return append(slices.Clone(v), v[d.rng.IntN(len(v))]) })
			another(func() any { return v[1:] })
		}
	case json.Number:
		for range 3 { // most of all
			another(func() any {
				if d.rng.IntN(3) == 0 { // near the end of what is a number
					return json.Number(fmt.Sprint(math.MaxInt64 - d.rng.Int64N(1<<d.rng.IntN(20))))
				}
				return numbers[d.rng.IntN(len(numbers))]
			})
		}
	case string:
		another(func() any {
			return d.some("", "bob", "job1", "bobs", "adas", "lab", "model", "*", "..", "a\nb", "memory", "disk",
				"running",
				"finished", "failed", "suspended", strings.Repeat("x", 200), string(d.bob.Spec.Graph), "cpu", v+"x")
		})
	case bool:
		another(func() any { return !v })
	case nil:
		another(func() any { return map[string]any{} })
	}
}

func readable(data []byte) bool {
	_, err := wire.Decode(data)
	return err == nil
}
