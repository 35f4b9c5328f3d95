package live

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/wire"
)

// A series keeps its first and its newest points, in order, and never more than it may.
func TestSeries(t *testing.T) {
	var s series[int]
	for i := range 20 * maxPoints {
		s.Add(i)
		p := s.Points()
		if len(p) > maxPoints || p[0] != 0 || p[len(p)-1] != i {
			t.Fatalf("after %d: %d points, from %d to %d", i, len(p), p[0], p[len(p)-1])
		}
		for k := 1; k < len(p); k++ {
			if p[k] <= p[k-1] || k >= len(p)-maxPoints/6 && p[k] != p[k-1]+1 {
				t.Fatalf("after %d: point %d is %d, after %d", i, k, p[k], p[k-1])
			}
		}
	}
}

// What parts of a device add up to is what is used of it, whatever jobs and devices there are, and no job is a part of
// two; what all devices have is what the controller counts with.
func TestParts(t *testing.T) {
	several := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		a := wire.Answer{Device: "sim", Contexts: wire.Contexts{Processes: r.IntN(3), Each: graph.Bytes(r.IntN(100))}}
		names := []string{""}
		if own := r.IntN(3); own > 0 { // else it is of a release that does not name it
			for i := range r.IntN(4) {
				names = append(names, fmt.Sprint("device ", i))
			}
			if names = names[r.IntN(2):]; len(names) == 0 {
				a.Device = ""
			}
		}
		used := make(map[string]graph.Bytes)
		claims := make(map[string]memory.Sum)
		for i := range r.IntN(6) {
			states := []wire.JobState{wire.JobQueued, wire.JobRunning, wire.JobParked, wire.JobFinished,
				wire.JobStarting}
			job := wire.Record{Spec: wire.Spec{Name: string(rune('a' + i))}, State: states[r.IntN(len(states))]}
			if len(names) > 0 && r.IntN(5) > 0 {
				job.On, job.Executor, job.Claim = names[r.IntN(len(names))], "x", graph.Bytes(r.IntN(1000))
			}
			if r.IntN(2) == 0 {
				job.Sharing, job.Base = wire.Gates, graph.Bytes(r.IntN(int(job.Claim)+1))
			}
			if len(names) > 0 && r.IntN(4) == 0 {
				job.Held = []wire.Holding{{Bytes: graph.Bytes(r.IntN(50)), On: names[r.IntN(len(names))]}}
				used[job.Held[0].On] += job.Held[0].Bytes
			}
			a.Jobs = append(a.Jobs, job)
			if job.Executor != "" {
				claims[job.On] = claims[job.On].Add(memory.ClaimOf(&job))
			}
		}
		for _, name := range names {
			used[name] += claims[name].Bytes()
			if name == "" {
				used[name] += a.Contexts.Sum()
			}
			if len(names) > 1 || name != "" {
				d := wire.DeviceState{Own: name == "", Used: used[name], Device: wire.Device{Name: name}}
				a.Devices = append(a.Devices, d)
			}
		}
		if names = names[:len(memory.Devices(&a))]; len(names) > 1 {
			several++
		}
		var sum graph.Bytes
		seen := make(map[string]bool)
		for i, name := range names {
			var device graph.Bytes
			for part, bytes := range partsOf(&a, memory.Devices(&a), i) {
				if device += bytes; bytes <= 0 || seen[part] {
					t.Errorf("seed %d: part %s is %d, a second time: %v", seed, part, bytes, seen[part])
				}
				seen[part] = !strings.HasPrefix(part, "/")
			}
			if sum += device; device != used[name] {
				t.Errorf("seed %d: parts of %q add up to %d, want %d", seed, name, device, used[name])
			}
		}
		if u := useOf(&a); len(names) > 1 && u.Used != sum {
			t.Errorf("seed %d: used %d, parts add up to %d", seed, u.Used, sum)
		}
	}
	if several == 0 {
		t.Error("no answer had several devices")
	}
}

// training is an answer with a job that trains.
func training(id int64, iteration int) wire.Answer {
	return wire.Answer{Device: "sim", Budget: 1000, Link: wire.Rates{Out: 10, In: 10}, Jobs: []wire.Record{{
		Spec:  wire.Spec{Name: "a", ID: id, Iterations: 100},
		State: wire.JobRunning, Iteration: iteration, Claim: 600, Arena: 600, Pace: 2 * time.Second}}}
}

func TestHistory(t *testing.T) {
	var h History
	loss := func(l float32) *wire.Loss { w := wire.Loss(l); return &w }
	h.TakeReport(&wire.Report{Job: "a", ID: 1, Iteration: 0, Loss: loss(9)}) // of nobody that is known
	h.TakeAnswer(time.Second, training(1, 40))
	for i, l := range []float32{4, 3, float32(math.NaN()), 2} {
		h.TakeReport(&wire.Report{Job: "a", ID: 1, Iteration: i, Epoch: 1, Wall: time.Duration(i), Loss: loss(l)})
	}
	h.TakeReport(&wire.Report{Job: "a", ID: 1, Iteration: 1, Loss: loss(7)}) // late
	d, ok := h.Detail("a", 0)
	text, err := json.Marshal(d.Losses)
	want := `[{"iteration":1,"loss":3},{"iteration":2,"loss":"0x7fc00000"},{"iteration":3,"loss":2}]`
	if !ok || err != nil || string(text) != want || d.Newest.Iteration != 3 || d.Newest.Wall != 3 {
		t.Errorf("losses %s, %v, want %s; newest %+v", text, err, want, d.Newest)
	}
	o := h.Overview()
	many := training(1, 40)
	many.Tenants = make([]wire.TenantState, maxTenants+2)
	var lab History
	lab.TakeAnswer(time.Second, many)
	if of := lab.Overview(); len(of.Tenants) != maxTenants || of.TenantsLeft != 2 || o.Tenants == nil {
		t.Errorf("%d tenants are shown, %d are not", len(of.Tenants), of.TenantsLeft)
	}
	if j := o.Jobs[0]; j.Rate != 0.5 || j.TimeLeft != 120*time.Second || o.Used != 600 || o.Running != 1 ||
		o.At != 1000 {
		t.Errorf("overview %+v", o)
	}
	if diff := cmp.Diff([]Sample{{At: 1000, Devices: map[string]Moment{"sim": {Budget: 1000,
		Parts: map[string]graph.Bytes{"a": 600}}}}}, h.Samples()); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	h.TakeAnswer(2*time.Second, training(2, 0)) // another of that name
	if d, _ := h.Detail("a", -1); len(d.Losses) > 0 || d.Newest != nil {
		t.Errorf("a job has what was heard of another: %+v", d)
	}
	h.TakeAnswer(3*time.Second, wire.Answer{})
	if _, ok := h.Detail("a", -1); ok || len(h.jobs) > 0 || len(h.Overview().Jobs) > 0 {
		t.Error("a job that was forgotten is there")
	}
}

// A job in the overview says in its JSON all that its record says.
func TestJobIsARecord(t *testing.T) {
	var h History
	a := training(1, 40)
	h.TakeAnswer(time.Second, a)
	var record, job map[string]any
	for _, v := range []struct {
		from any
		to   *map[string]any
	}{{a.Jobs[0], &record}, {h.Overview().Jobs[0], &job}} {
		text, err := json.Marshal(v.from)
		if err == nil {
			err = json.Unmarshal(text, v.to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range record {
		if diff := cmp.Diff(value, job[name]); diff != "" {
			t.Errorf("%s (-record +job):\n%s", name, diff)
		}
	}
}
