package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/golden"
	_ "tensile/internal/long" // the flag -long
	"tensile/plan"
)

// same compares what messages mean: losses by their bits, an empty list like none.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }),
	cmp.Comparer(func(a, b Loss) bool { return math.Float32bits(float32(a)) == math.Float32bits(float32(b)) }),
}

// TestGolden shows the form of each kind of message. A change of it is a new Version, if old messages read otherwise.
func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range samples() {
		seen[m.kind()] = true
		var got bytes.Buffer
		if err := json.Indent(&got, Encode(m), "", "  "); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("testdata", m.kind()+".json")
		golden.Compare(t, name, got.String())
		read, err := Decode(got.Bytes())
		if diff := cmp.Diff(m, read, same); err != nil || diff != "" {
			t.Errorf("%s: %v; read as another message (-want +got):\n%s", name, err, diff)
		}
	}
	if len(seen) != len(messages) {
		t.Errorf("there are samples of %d kinds, and %d kinds", len(seen), len(messages))
	}
}

// What the release before this one has written, in testdata/before, is read: its state folder is taken up.
func TestReleaseBefore(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "before", "*.json"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Decode(text); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if r, ok := m.(Record); ok && (r.Incarnation != 1 || r.Granted != 2 || r.Claim != 8192) {
			t.Errorf("%s is read as %+v", name, r)
		}
	}
}

// TestSamplesAreWhole shows that the goldens have every field.
func TestSamplesAreWhole(t *testing.T) {
	var whole func(path string, v reflect.Value)
	whole = func(path string, v reflect.Value) {
		if v.IsZero() {
			t.Errorf("%s is not set in the sample", path)
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				whole(path, v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				whole(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice:
			if v.Len() > 0 && v.Index(0).Kind() == reflect.Struct {
				whole(path+"[0]", v.Index(0))
			}
		}
	}
	for _, m := range samples() {
		whole(m.kind(), reflect.ValueOf(m))
	}
}

// TestRoundTrip writes and reads random messages.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(1000) {
		m := maker{rand.New(rand.NewPCG(seed, 0))}.message()
		text := Encode(m)
		got, err := Decode(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if diff := cmp.Diff(m, got, same); diff != "" {
			t.Fatalf("seed %d: -want +got:\n%s", seed, diff)
		}
		if again := Encode(got); !bytes.Equal(text, again) {
			t.Fatalf("seed %d: written again as\n%s, not\n%s", seed, again, text)
		}
	}
}

// TestUnknownFields shows that a release with one more field can talk to this one.
func TestUnknownFields(t *testing.T) {
	for _, m := range samples() {
		more := bytes.Replace(Encode(m), []byte(`"body":{`), []byte(`"later":[1],"body":{"later":{"x":1},`), 1)
		got, err := Decode(more)
		if diff := cmp.Diff(m, got, same); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", m.kind(), err, diff)
		}
	}
}

func TestDecodeAs(t *testing.T) {
	text := Encode(Request{Verb: Jobs})
	if got, err := DecodeAs[Request](text); err != nil || got.Verb != Jobs {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := DecodeAs[Orders](text); err == nil || !strings.Contains(err.Error(), "kind request, not orders") {
		t.Errorf("%v", err)
	}
	if _, err := DecodeAs[Orders]([]byte("x")); err == nil {
		t.Error("no error")
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "no message of tensile"},
		{"x", "no message of tensile"},
		{"null", "version 0"},
		{"[]", "no message of tensile"},
		{"{}", "version 0, this tensile knows version 1: run"},
		{`{"version":2,"kind":"orders","body":{}}`, "version 2, this tensile knows version 1: run"},
		{`{"version":1.5,"kind":"orders","body":{}}`, "no message of tensile"},
		{`{"version":1,"kind":"greeting","body":{}}`, `no kind "greeting" of messages (there are answer, device, ` +
			`layout, leadership, learnt, orders, record, recorded, report, request, result, settings, status, ` +
			`tenants)`},
		{`{"version":1,"kind":"` + strings.Repeat("x", 500) + `","body":{}}`, `"xxxx`},
		{`{"version":1,"kind":"orders"}`, "decode orders: it has no body"},
		{`{"version":1,"kind":"orders","body":null}`, "it has no body"},
		{`{"version":1,"kind":"orders","body":[]}`, "it has no body"},
		{`{"version":1,"kind":"orders","body":{"executor":1}}`, "executor"},
		{`{"version":1,"kind":"orders","body":{"executor":"a"}} x`, "no message of tensile"},
		{`{"version":1,"kind":"orders","body":{}}`, "executor: the name"},
		{`{"version":1,"kind":"answer","body":{"error":"` + strings.Repeat("x", MaxMessage) + `"}}`,
			"over the limit of 8388608"},
		{strings.Repeat("[", 100_000), "no message of tensile"},
	} {
		_, err := Decode([]byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: %v; want %q", test.text, err, test.want)
		} else if len(err.Error()) > 400 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80s: the error is not one short line: %v", test.text, err)
		}
	}
	if _, err := Decode(make([]byte, MaxLayout+1)); err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("too large: %v", err)
	}
}

// TestLargeLayout shows that layouts may be larger than messages.
func TestLargeLayout(t *testing.T) {
	l := Layout{Plan: &plan.Plan{
		Job: "a", Epoch: 1, Graph: graph.Digest(strings.Repeat("0", 64)), Policy: strings.Repeat("x", MaxMessage),
	}}
	got, err := DecodeAs[Layout](Encode(l))
	if diff := cmp.Diff(l, got, same); err != nil || diff != "" {
		t.Errorf("%v\n%.200s", err, diff)
	}
}

// TestCheck changes one thing in the samples, to nonsense.
func TestCheck(t *testing.T) {
	sample := func(kind string) Message {
		for _, m := range samples() {
			if m.kind() == kind {
				return m
			}
		}
		panic("wire: no sample of " + kind)
	}
	orders := func(change func(*Orders)) Message { m := sample("orders").(Orders); change(&m); return m }
	spec := func(change func(*Spec)) Message { return orders(func(o *Orders) { change(&o.Jobs[0].Spec) }) }
	status := func(change func(*Status)) Message { m := sample("status").(Status); change(&m); return m }
	job := func(change func(*JobStatus)) Message { return status(func(s *Status) { change(&s.Jobs[0]) }) }
	result := func(change func(*Result)) Message { return job(func(j *JobStatus) { change(j.Result) }) }
	report := func(change func(*Report)) Message { m := sample("report").(Report); change(&m); return m }
	meets := func(change func(*Meeting)) Message {
		return job(func(j *JobStatus) { m := *j.Meets; change(&m); j.Meets = &m })
	}
	layout := func(change func(*Layout)) Message { m := sample("layout").(Layout); change(&m); return m }
	record := func(change func(*Record)) Message { m := sample("record").(Record); change(&m); return m }
	device := func(change func(*Device)) Message {
		return status(func(s *Status) { d := *s.Brings; change(&d); s.Brings = &d })
	}
	facts := func(change func(*cost.Facts)) Message { return device(func(d *Device) { change(&d.Facts) }) }
	learnt := func(change func(*Learnt)) Message { m := sample("learnt").(Learnt); change(&m); return m }

	for _, test := range []struct {
		m    Message
		want string
	}{
		{status(func(s *Status) { s.Host = "gpu\u009b2J" }), `host "gpu\u009b2J" has the control character '\u009b'`},
		{orders(func(o *Orders) { o.Executor = "" }), "executor: the name"},
		{orders(func(o *Orders) { o.Executor = "*" }), "executor: the name"},
		{orders(func(o *Orders) { o.Executor = "a/b" }), "executor: the name"},
		{orders(func(o *Orders) { o.Executor = strings.Repeat("a", maxName+1) }), "129 bytes"},
		{orders(func(o *Orders) { o.Number = -1 }), "number is -1"},
		{orders(func(o *Orders) { o.Jobs[0].Epoch = -1 }), "epoch is -1"},
		{orders(func(o *Orders) { o.Jobs[0].At = -1 }), "at is -1"},
		{meets(func(m *Meeting) { m.Address = "lab1:80" }), `meeting at "lab1:80"`},
		{meets(func(m *Meeting) { m.Address = "10.0.0.7:0" }), `meeting at "10.0.0.7:0"`},
		{meets(func(m *Meeting) { m.Address = "[fe80::1%\n]:80" }), "address of a meeting"},
		{meets(func(m *Meeting) { m.Key = "short" }), "key of a meeting has 5 characters"},
		{meets(func(m *Meeting) { m.Certificate = "" }), "certificate \"\" is no digest"},
		{orders(func(o *Orders) { o.Link.Out = -1 }), "link out is -1, and cannot be less than 0"},
		{orders(func(o *Orders) { o.Lease.Sharing = NoSharing }),
			`no memory sharing "" (there are [gates zico waterwave slices])`},
		{orders(func(o *Orders) { o.Lease.Capacity = -1 }), "capacity_bytes is -1"},
		{orders(func(o *Orders) { o.Lease.Name = "../a" }), "lease: the name"},
		{orders(func(o *Orders) { o.Lease.Number = -1 }), "lease number is -1"},
		{orders(func(o *Orders) { o.Jobs = append(o.Jobs, o.Jobs[0]) }), `job "lenet.1" is there twice`},
		{spec(func(s *Spec) { s.Name = "\n" }), "job: the name"},
		{spec(func(s *Spec) { s.Model = "a\x1b[2J" }), "model"},
		{spec(func(s *Spec) { s.Save = "a\nb" }), "save"},
		{spec(func(s *Spec) { s.Graph = "" }), "no digest"},
		{spec(func(s *Spec) { s.Graph = graph.Digest(strings.Repeat(">", 64)) }), "no digest"},
		{spec(func(s *Spec) { s.Replica.Number = -1 }), "jobs spec replica number is -1, and cannot be less than 0"},
		{spec(func(s *Spec) { s.Replica.Number = 3 }), "replica 3 of 3"},
		{spec(func(s *Spec) { s.Replica = Replica{Of: 1} }), "replica 0 of 1"},
		{spec(func(s *Spec) { s.Replica.Of = graph.MaxReplicas + 1 }), "replica 1 of 1025"},
		{spec(func(s *Spec) { s.Replica.Group = -1 }), "replica group is -1"},
		{spec(func(s *Spec) { s.Replica = Replica{Number: 1} }), "replica number 1 of group 0 says not of how many"},
		{spec(func(s *Spec) { s.Iterations = -1 }), "iterations is -1"},
		{spec(func(s *Spec) { s.Iterations = math.MaxInt64 }), "iterations is 9223372036854775807, and cannot be more"},
		{spec(func(s *Spec) { s.Priority = -1 }), "priority is -1"},
		{spec(func(s *Spec) { s.Priority = 1001 }), "priority is 1001, and cannot be more than 1000"},
		{Request{Verb: SetWeight, Job: "a", Priority: 1001}, "priority is 1001, and cannot be more than 1000"},
		{spec(func(s *Spec) { s.SwapRate = 1.5 }), "max_swap_rate is 1.5"},
		{spec(func(s *Spec) { s.SwapRate = math.NaN() }), "max_swap_rate is NaN"},
		{device(func(d *Device) { d.Align = 3 }), "align_bytes of a device is 3, and must be a power of two"},
		{device(func(d *Device) { d.Align = 1 << 62 }), "align_bytes"},
		{device(func(d *Device) { d.Budget = math.MaxInt64 - 1<<20 }),
			"brings budget_bytes is 9223372036853727231, and "},
		{device(func(d *Device) { d.HostMemory = -1 }), "brings host_memory_bytes is -1"},
		{facts(func(f *cost.Facts) { f.Compute = cost.FLOPsPerSecond(math.Inf(1)) }), "facts Compute is +Inf"},
		{facts(func(f *cost.Facts) { f.Compute = 0 }), "compute of a device is 0"},
		{Request{Verb: Jobs, Budget: math.MaxInt64}, "budget_bytes is 9223372036854775807"},
		{device(func(d *Device) { d.Page = 1 << 62 }),
			"brings page_bytes is 4611686018427387904, and cannot be more than 70368744177664"},
		{device(func(d *Device) { d.Context = math.MaxInt64 }), "context_bytes is 9223372036854775807"},
		{facts(func(f *cost.Facts) { f.Launch = math.MaxInt64 }), "facts Launch is 9223372036854775807"},
		{facts(func(f *cost.Facts) { f.In.Latency = MaxLatency + 1 }), "latency of a device's link in is"},
		{facts(func(f *cost.Facts) { f.Network.Latency = -1 }), "facts Network Latency is -1"},
		{facts(func(f *cost.Facts) { f.Network.Rate = -1 }), "facts Network Rate is -1"},
		{status(func(s *Status) { s.Executor = "" }), "executor"},
		{status(func(s *Status) { s.Life = "" }), "life"},
		{status(func(s *Status) { s.Orders = math.MaxInt64 }), "orders is 9223372036854775807, and cannot be more"},
		{status(func(s *Status) { s.Number = math.MaxInt64 }), "number is 9223372036854775807, and cannot be more"},
		{status(func(s *Status) { s.Device = strings.Repeat("<", maxText+1) }), "device has 8193 bytes"},
		{status(func(s *Status) { s.Device = "\x00" }), "device"},
		{status(func(s *Status) { s.Number = -1 }), "number"},
		{status(func(s *Status) { s.Orders = -1 }), "orders is -1"},
		{status(func(s *Status) { s.Jobs = append(s.Jobs, s.Jobs[0]) }), "twice"},
		{job(func(j *JobStatus) { j.Name = "" }), "job: the name"},
		{job(func(j *JobStatus) { j.State = "paused" }), `no state "paused" (there are [waiting running resting ` +
			`finished stopped failed suspended])`},
		{job(func(j *JobStatus) { j.Epoch = -1 }), "epoch"},
		{job(func(j *JobStatus) { j.Arena = -1 }), "arena_bytes"},
		{job(func(j *JobStatus) { free := graph.Bytes(math.MaxInt64); j.Free = &free }), "free_bytes is 9223372"},
		{job(func(j *JobStatus) { j.Iteration = -1 }), "iteration"},
		{job(func(j *JobStatus) { j.Begun = -1 }), "begun is -1"},
		{result(func(r *Result) { r.Losses = make([]float32, MaxLosses+1) }), "262145 losses"},
		{result(func(r *Result) { r.Weights = map[int32]string{-1: ""} }), "result weights is -1"},
		{result(func(r *Result) { r.Begin = -1 }), "begin_ns"},
		{job(func(j *JobStatus) { j.Error = strings.Repeat("<", maxText+1) }), "error has 8193 bytes"},
		{result(func(r *Result) { r.End = r.Begin - 1 }), "end_ns is 0, and cannot be less than 1"},
		{result(func(r *Result) { r.Left = -1 }), "left_ns"},
		{result(func(r *Result) { r.Gate = -1 }), "gate_ns is -1"},
		{result(func(r *Result) { r.First = -1 }), "first_ns"},
		{result(func(r *Result) { r.Stall = -1 }), "stall_ns"},
		{result(func(r *Result) { r.Touched = -1 }), "touched_bytes"},
		{result(func(r *Result) { r.Arena = -1 }), "arena_bytes"},
		{result(func(r *Result) { r.SlotPeak = -1 }), "slot_peak_bytes"},
		{result(func(r *Result) { r.Plans = -1 }), "plans"},
		{result(func(r *Result) { r.Transition = -1 }), "transition_ns"},
		{report(func(r *Report) { r.Executor = "" }), "executor"},
		{report(func(r *Report) { r.Job = "" }), "job"},
		{report(func(r *Report) { r.Epoch = -1 }), "epoch"},
		{report(func(r *Report) { r.Iteration = -1 }), "iteration"},
		{report(func(r *Report) { r.Steps = []time.Duration{1, -1} }), "steps_ns"},
		{report(func(r *Report) { r.Stall = -1 }), "stall_ns"},
		{report(func(r *Report) { r.Gate = -1 }), "gate_ns is -1"},
		{report(func(r *Report) { r.Wall = -1 }), "wall_ns"},
		{layout(func(l *Layout) { l.Plan = nil }), "no plan"},
		{layout(func(l *Layout) { l.Plan.Job = "" }), "job"},
		{layout(func(l *Layout) { l.Plan.Epoch = 0 }), "epoch is 0, and cannot be less than 1"},
		{layout(func(l *Layout) { l.Plan.Graph = "x" }), "no digest"},
		{layout(func(l *Layout) { l.Arena = -1 }), "arena_bytes"},
		{layout(func(l *Layout) { l.Arena = graph.MaxTotal + 1 }), "arena_bytes"},
		{layout(func(l *Layout) { l.Offsets[0] = -1 }), "offsets is -1"},
		{layout(func(l *Layout) { l.Offsets[0] = l.Arena + 1 }), "offset 4097"},
		{layout(func(l *Layout) { l.Scratch[0] = l.Arena + 1 }), "scratch at 4097"},
		{layout(func(l *Layout) { l.Reasons.Decisions[0].To = 4 }), "decision 0, from step 1 to 4, is not"},
		{layout(func(l *Layout) { l.Reasons.Decisions[0].From = -2 }), "reasons decisions f is -2"},
		{layout(func(l *Layout) { l.Reasons.Decisions[0].Text = 2 }), "a plan of 2 steps with 2 reasons"},
		{layout(func(l *Layout) { l.Scratch = l.Scratch[:1] }), "1 steps of 2"},
		{Request{}, `no verb ""`},
		{Request{Verb: "reboot"}, `no verb "reboot"`},
		{Request{Verb: Submit}, "submit has no spec"},
		{Request{Verb: Submit, Specs: []Spec{{}}}, "job: the name"},
		{orders(func(o *Orders) { o.Refused.Life = "" }), "refused life: the name"},
		{orders(func(o *Orders) { o.Refused.Why = "a\nb" }), "refusal"},
		{status(func(s *Status) { s.Host = "\x1b[2J" }), "host"},
		{status(func(s *Status) { s.Since = -1 }), "since_ns is -1"},
		{status(func(s *Status) { s.Jobs[0].Checkpoint.Took = MaxTook + 1 }), "checkpoint took_ns is 86400000000001"},
		{record(func(r *Record) { r.Plans = -1 }), "plans is -1"},
		{record(func(r *Record) { r.Budget = -1 }), "budget_bytes is -1"},
		{record(func(r *Record) { r.Device = "a\nb" }), "device"},
		{Request{Verb: Stop}, "job: the name"},
		{Request{Verb: Resume}, "job: the name"},
		{Request{Verb: Park, Job: "a"}, "no place to park"},
		{Request{Verb: SetBudget, Budget: -1}, "budget_bytes is -1"},
		{Request{Verb: SetWeight, Job: "a"}, "priority is 0"},
		{Request{Verb: Forget}, "executor: the name"},
		{record(func(r *Record) { r.Checkpoint.Iteration = -1 }), "checkpoint iteration is -1"},
		{record(func(r *Record) { r.Park = "garage" }), `no place to park "garage"`},
		{record(func(r *Record) { r.Spec.Checkpoint.Every = -1 }), "checkpoint every_ns is -1"},
		{record(func(r *Record) { r.Spec.Owner = "a/b" }), "owner"},
		{Answer{Jobs: []Record{{}}}, "job: the name"},
		{record(func(r *Record) { r.State = "asleep" }), `no phase "asleep"`},
		{record(func(r *Record) { r.Executor = "a/b" }), "executor"},
		{record(func(r *Record) { r.Seq = -1 }), "order is -1"},
		{record(func(r *Record) { r.Applied = -1 }), "applied_epoch is -1"},
		{record(func(r *Record) { r.Claim = -1 }), "claim_bytes is -1"},
		{record(func(r *Record) { r.Base = r.Claim + 1 }), "base_bytes is 8193, and cannot be more than claim_bytes"},
		{record(func(r *Record) { r.Sharing = "all" }),
			`no memory sharing "all" (there are [none gates zico waterwave slices])`},
		{record(func(r *Record) { r.Result.Plans = -1 }), "plans"},
		{Settings{Device: "a\nb"}, "device"},
		{Settings{Device: "a", Budget: -1}, "budget_bytes is -1"},
		{Leadership{}, "term is 0"},
		{Leadership{Term: 1, Beat: -1}, "beat is -1"},
		{Leadership{Term: 1, ID: "a\nb"}, "id"},
		{learnt(func(l *Learnt) { l.Device = "a\nb" }), "device"},
		{learnt(func(l *Learnt) { l.Ops = make([]LearntOp, MaxLearnt+1) }), "latencies of 4097 ops, and at most 4096"},
		{learnt(func(l *Learnt) { l.Ops[0].Signature = "ab" }), `op "ab" is no signature of 32`},
		{learnt(func(l *Learnt) { l.Ops = append(l.Ops, l.Ops[0]) }), "is there twice"},
		{learnt(func(l *Learnt) { l.Ops[0].Latency = -1 }), "latency_ns is -1"},
		{learnt(func(l *Learnt) { l.Ops[0].Latency = time.Hour + 1 }), "latency_ns is 3600000000001"},
		{learnt(func(l *Learnt) { l.Ops[0].Reports = 0 }), "reports is 0"},
	} {
		err := Check(test.m)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", test.m.kind(), err, test.want)
		}
		func() {
			defer func() { recover() }()
			Encode(test.m)
			t.Errorf("%s that is wrong (%s) is written", test.m.kind(), test.want)
		}()
	}
}

// A message type with a number that says nothing of its bound does not pass.
func TestEveryNumberHasABound(t *testing.T) {
	type inner struct {
		Number  int
		Bounded int `bound:"count"`
	}
	type outer struct {
		Text   string
		Least  float64 `bound:"least"` // no word of the table
		Lists  []inner
		Map    map[int32]string
		Whole  *inner `bound:"count"`
		Unused any
	}
	var without []string
	walkerOf(reflect.TypeFor[outer](), "", "outer", &without)
	want := []string{"outer.Least", "outer.Lists.Number", "outer.Map", "outer.Unused"}
	if !slices.Equal(without, want) {
		t.Errorf("without a bound are %v, want %v", without, want)
	}
	for kind, of := range messages {
		without = nil
		if walkerOf(of, "", kind, &without); len(without) > 0 {
			t.Errorf("without a bound are %v", without)
		}
	}
}

// Each number of each message is checked: what is beyond its bound is refused, in a message that is right otherwise.
func TestEveryBoundHolds(t *testing.T) {
	tried := 0
	for _, m := range samples() {
		whole := reflect.New(reflect.TypeOf(m)).Elem()
		whole.Set(reflect.ValueOf(m))
		var each func(v reflect.Value, word string)
		each = func(v reflect.Value, word string) {
			try := func(set func()) {
				before := reflect.ValueOf(v.Interface())
				set()
				if err := Check(whole.Interface().(Message)); err == nil && word != "any" {
					t.Errorf("%s with %v of bound %q is right", m.kind(), v, word)
				}
				v.Set(before)
				tried++
			}
			switch {
			case v.Kind() == reflect.Struct:
				for i := range v.NumField() {
					own := word
					if tag, ok := v.Type().Field(i).Tag.Lookup("bound"); ok {
						own = tag
					}
					each(v.Field(i), own)
				}
			case v.Kind() == reflect.Pointer:
				each(v.Elem(), word)
			case v.Kind() == reflect.Slice:
				for i := range v.Len() {
					each(v.Index(i), word)
				}
			case v.CanInt() && v.Type().Bits() == 64:
				try(func() { v.SetInt(math.MinInt64) })
				try(func() { v.SetInt(math.MaxInt64) })
			case v.CanFloat() && v.Type().Bits() == 64:
				try(func() { v.SetFloat(math.NaN()) })
				try(func() { v.SetFloat(math.Inf(1)) })
			}
		}
		each(whole, "")
	}
	if tried < 500 {
		t.Errorf("%d numbers were tried", tried)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(Encode(m))
	}
	for seed := range uint64(50) {
		f.Add(Encode(maker{rand.New(rand.NewPCG(seed, 0))}.message()))
	}
	f.Add([]byte(`{"version":1,"kind":"status","body":{"executor":"a","life":"b","jobs":[{"name":"c",` +
		`"state":"failed","result":{"losses":["0x7f800000",null]}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Decode(text)
		if err != nil {
			if m != nil {
				t.Errorf("an error and a message: %v", err)
			}
			return
		}
		again, err := Decode(Encode(m))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if diff := cmp.Diff(m, again, same); diff != "" {
			t.Errorf("read again it differs:\n%s", diff)
		}
	})
}

// A number in the envelope is read again, and readers of the message pass over it.
func TestNumbered(t *testing.T) {
	plain := Encode(Orders{Executor: "x", Number: 7, Jobs: []Assignment{}})
	numbered := Numbered(plain, 1<<40)
	for _, m := range [][]byte{plain, numbered} {
		if o, err := DecodeAs[Orders](m); err != nil || o.Number != 7 {
			t.Errorf("%s is read as %+v: %v", m, o, err)
		}
	}
	if n, err := NumberOf(plain); n != 0 || err != nil {
		t.Errorf("%s has number %d: %v", plain, n, err)
	}
	if n, err := NumberOf(numbered); n != 1<<40 || err != nil {
		t.Errorf("%s has number %d: %v", numbered, n, err)
	}
	for _, text := range []string{"", "{}", string(numbered[:len(numbered)-3]), string(Numbered(plain, -1)),
		strings.Replace(string(numbered), `"executor":"x"`, `"executor":""`, 1)} {
		if n, err := NumberOf([]byte(text)); err == nil {
			t.Errorf("%s has number %d", text, n)
		}
	}
}

// Each text of a spec is one of its paths, or none: who adds one says which, as executors open paths of users in some
// folders alone.
func TestPathsOfSpec(t *testing.T) {
	var s Spec
	paths := make(map[string]bool)
	for _, path := range s.Paths() {
		*path = "a path"
	}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String {
			paths[v.Type().Field(i).Name] = f.String() == "a path"
		}
	}
	want := map[string]bool{"Weights": true, "Source": true, "Data": true, "Save": true, "From": true, "Name": false,
		"Model": false, "Graph": false, "Owner": false, "Device": false}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("texts of a spec that are paths (-want +got):\n%s", diff)
	}
}

// Messages with the older words of the lease's methods keep their meaning.
func TestOldSharing(t *testing.T) {
	for word, want := range map[string]Sharing{"shift": Zico, "pairs": Waterwave, "zico": Zico, "gates": Gates, "": ""} {
		var l Lease
		if err := json.Unmarshal([]byte(`{"memory_sharing":"`+word+`"}`), &l); err != nil || l.Sharing != want {
			t.Errorf("%q is %q (%v), want %q", word, l.Sharing, err, want)
		}
	}
}
