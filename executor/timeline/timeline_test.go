package timeline_test

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"
	"strings"
	"testing"
	"time"

	"tensile/controller"
	"tensile/controller/local"
	"tensile/device"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/executor/timeline"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"

	_ "tensile/scheduler/rivals"
)

// run is what two networks did on a simulated device, and what was told of it.
type run struct {
	traces   map[string][]*executor.Trace
	sections []timeline.Section
	stall    map[string]time.Duration // of the reports
	gate     map[string]time.Duration
}

// setting are networks, a simulated device whose kernels take another time than planned, and a part of what the
// networks need there.
type setting struct {
	tasks  []task.Task
	device device.Device
	on     planner.Device
	first  scheduler.Request
	budget graph.Bytes
}

func settingOf(t *testing.T, share float64, models ...string) *setting {
	t.Helper()
	w, err := task.Load(models, task.Settings{Batch: 4, Image: 32, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	s := &setting{tasks: w, device: sim.New(facts, sim.Options{Noise: .1, Seed: 1, Page: 4 * graph.KiB})}
	s.on = planner.Describe(s.device, planner.Roofline(facts))
	if s.first, err = s.on.FirstRequest(w); err != nil {
		t.Fatal(err)
	}
	peaks, err := planner.Vanilla(t.Context(), s.first)
	if err != nil {
		t.Fatal(err)
	}
	var live graph.Bytes
	for _, b := range peaks.Live {
		live += b
	}
	s.budget = graph.Bytes(share * float64(live))
	return s
}

func newRun() *run {
	return &run{traces: make(map[string][]*executor.Trace), stall: make(map[string]time.Duration),
		gate: make(map[string]time.Duration)}
}

// add takes what a section has done, by way of what travels.
func (r *run) add(t *testing.T, recorder *timeline.Recorder, job string, did *executor.Trace) {
	t.Helper()
	r.traces[job] = append(r.traces[job], did)
	data, err := timeline.Encode(recorder.Add(job, did))
	if err != nil {
		t.Fatal(err)
	}
	s, err := timeline.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	r.sections = append(r.sections, s)
}

// train has networks train within a part of what they need.
func train(t *testing.T, sharing wire.Sharing, share float64, models ...string) *run {
	t.Helper()
	s, r := settingOf(t, share, models...), newRun()
	c := controller.Config{Policy: "tensile", Budget: s.budget, MemorySharing: sharing}
	recorder := timeline.Recorder{Device: s.device.Name(), Origin: time.Hour}
	_, err := local.Train(t.Context(), s.device, s.on, s.tasks, local.Options{Config: c, Iterations: 6,
		Observe: func(it local.Iterated) {
			r.stall[it.Report.Job] += it.Report.Stall
			r.gate[it.Report.Job] += it.Report.Gate
		},
		Trace: func(job string, did *executor.Trace) { r.add(t, &recorder, job, did) }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// park has networks train likewise, each in an arena of its own. The first one is parked twice, and goes on when the
// others have trained meanwhile.
func park(t *testing.T, share float64, models ...string) *run {
	t.Helper()
	s, r := settingOf(t, share, models...), newRun()
	s.first.Budget, s.first.Policy = s.budget, "tensile"
	planned, err := planner.Plan(t.Context(), s.first)
	if err != nil {
		t.Fatal(err)
	}
	const iterations = 10
	recorder := timeline.Recorder{Device: s.device.Name(), Origin: time.Hour}
	first, parks, rests := s.tasks[0].Name, int64(0), 0
	var h *executor.Host
	h = executor.NewHost(s.device, func(e executor.Event) {
		switch {
		case e.Refused != nil || e.Ended != nil && e.Ended.Err != nil:
			t.Fatalf("job %s: %v, %+v", e.Job, e.Refused, e.Ended)
		case e.Trace != nil:
			r.add(t, &recorder, e.Job, e.Trace)
		case e.Parked > 0:
			rests = 1
		case e.Report != nil:
			r.stall[e.Job] += e.Report.Stall
			r.gate[e.Job] += e.Report.Gate
			if e.Job == first && (e.Report.Iteration == 1 || e.Report.Iteration == 5) {
				parks++
				h.Park(first, parks, 0)
			} else if e.Job != first && rests > 0 {
				if rests++; rests == 3 {
					rests = 0
					h.Resume(first)
				}
			}
		}
	})
	for i, k := range s.tasks {
		n := iterations
		if i > 0 {
			n *= 3 // it trains for as long as the first one is parked
		}
		h.Submit(executor.SpecOf(k, n, nil), planned.Programs[i])
		h.Trace(k.Name, n+1) // its way Home as well
	}
	for busy := true; busy; {
		if busy, err = h.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, did := range r.sections {
		if did.Job == first && did.Kind == timeline.Epilogue {
			left++
		}
	}
	if parks != 2 || left != 3 {
		t.Fatalf("job %s was parked %d times, and went Home %d times", first, parks, left)
	}
	return r
}

// runs are those that traces are read back of.
func runs(t *testing.T) map[string]*run {
	return map[string]*run{
		"arenas":    train(t, wire.NoSharing, .6, "lenet:2"),
		"gates":     train(t, wire.Gates, .5, "lenet:2"),
		"zico":      train(t, wire.Zico, .5, "lenet:2"),
		"waterwave": train(t, wire.Waterwave, .5, "lenet:2"),
		"parks":     park(t, .75, "lenet:2"),
	}
}

// event is one of the Trace Event Format, for who reads it.
type event struct {
	Name     string   `json:"name"`
	Phase    string   `json:"ph"`
	Process  int      `json:"pid"`
	Thread   int      `json:"tid"`
	At       float64  `json:"ts"` // in microseconds
	Duration *float64 `json:"dur"`
	ID       int      `json:"id"`
	Args     struct {
		Name  string      `json:"name"`
		Bytes graph.Bytes `json:"bytes"`
	} `json:"args"`
}

type thread struct{ process, id int }

// nanos is a time of an event.
func nanos(us float64) time.Duration { return time.Duration(math.Round(us * 1000)) }

// A trace that is read back says what reports and arenas say: on no thread do two slices overlap, stalls and gates add
// up to those reported, memory is that of the bytes between a write and the last read of it, arrows end where a stall
// does.
func TestWrite(t *testing.T) {
	for name, r := range runs(t) {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := timeline.Write(&b, r.sections); err != nil {
				t.Fatal(err)
			}
			var trace struct {
				Events []event `json:"traceEvents"`
			}
			if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
				t.Fatal(err)
			}
			r.verify(t, trace.Events)
			var stall, gate time.Duration
			for job := range r.traces {
				stall, gate = stall+r.stall[job], gate+r.gate[job]
			}
			if stall == 0 || (gate > 0) != (name != "arenas" && name != "parks") {
				t.Errorf("stalls %v, gates %v", stall, gate)
			}
		})
	}
}

// What a stall waited for is what its command waits for that ended last: as one finds who forgets nothing of a program.
// A section knows its job and its number, and begins with what the one before has left.
func TestStalls(t *testing.T) {
	causes := 0
	for name, r := range runs(t) {
		told := make(map[string][]timeline.Section)
		for _, s := range r.sections {
			told[s.Job] = append(told[s.Job], s)
		}
		for job, traces := range r.traces {
			var all map[program.Stream][]timeline.Cause
			for n, did := range traces {
				s := told[job][n]
				if s.Number != n || s.Iteration != did.Iteration || s.Epoch != did.Program.Plan.Epoch ||
					s.Arena != did.Program.Arena || len(s.Spans) != len(did.Events) {
					t.Fatalf("%s, job %s: section %d is %+v", name, job, n, s)
				}
				if n == 0 || traces[n-1].Program != did.Program {
					all = make(map[program.Stream][]timeline.Cause)
				}
				held := graph.Bytes(0)
				if n > 0 {
					held = told[job][n-1].Held
					for _, l := range told[job][n-1].Levels {
						held += l.More
					}
				}
				if s.Held != held {
					t.Fatalf("%s, job %s: section %d begins with %d bytes, the one before ends with %d", name, job, n,
						s.Held, held)
				}
				before := make(map[program.Stream]int)
				for stream, list := range all {
					before[stream] = len(list)
				}
				free := time.Hour + did.Begin
				for i := range s.Spans {
					c, sp := &did.Section.Commands[i], &s.Spans[i]
					if c.Kind.Unit() == program.Compute && did.Gates != nil {
						stall := max(0, sp.Start-free) - did.Gates[i]
						want := (*timeline.Cause)(nil)
						for _, w := range c.Waits {
							k := before[w.Stream] + w.Count
							if k <= 0 || k > len(all[w.Stream]) || stall <= 0 {
								continue
							}
							if by := all[w.Stream][k-1]; told[job][by.Section].Spans[by.Span].End > free {
								free, want = told[job][by.Section].Spans[by.Span].End, &by
							}
						}
						if sp.Stall != stall || sp.Gate != did.Gates[i] || (sp.After == nil) != (want == nil) ||
							want != nil && *sp.After != *want {
							t.Fatalf("%s, job %s: command %d of section %d: stall %v, gate %v, after %v; want %v, %v, "+
								"%v", name, job, i, n, sp.Stall, sp.Gate, sp.After, stall, did.Gates[i], want)
						}
						if want != nil {
							causes++
						}
						free = sp.End
					}
					all[c.Stream] = append(all[c.Stream], timeline.Cause{Section: n, Span: i})
				}
			}
		}
	}
	if causes < 20 {
		t.Errorf("%d stalls of which it is known what they waited for", causes)
	}
}

func (r *run) verify(t *testing.T, events []event) {
	jobs := make(map[int]string)
	threads := make(map[thread][]event)
	spent := make(map[string]time.Duration)
	memory := make(map[string]map[time.Duration]graph.Bytes)
	starts, stops, stalls := make(map[int]float64), make(map[int]event), make(map[float64]bool)
	for _, e := range events {
		job := jobs[e.Process]
		switch e.Phase {
		case "M":
			if e.Name == "process_name" {
				jobs[e.Process], _, _ = strings.Cut(e.Args.Name, " on ")
			}
		case "X":
			at := thread{e.Process, e.Thread}
			threads[at] = append(threads[at], e)
			if e.Name == "stall" || e.Name == "gate" {
				spent[e.Name+job] += nanos(*e.Duration)
				stalls[math.Round(1000*(e.At+*e.Duration))] = true
			}
		case "C":
			if memory[job] == nil {
				memory[job] = make(map[time.Duration]graph.Bytes)
			}
			memory[job][nanos(e.At)] = e.Args.Bytes
		case "s":
			starts[e.ID] = e.At
		case "f":
			stops[e.ID] = e
		}
	}
	for at, list := range threads {
		sort.SliceStable(list, func(i, k int) bool { return list[i].At < list[k].At })
		for i := 1; i < len(list); i++ {
			if before := list[i-1]; nanos(before.At+*before.Duration) > nanos(list[i].At) {
				t.Errorf("thread %v: %s at %v overlaps %s at %v", at, list[i].Name, list[i].At, before.Name, before.At)
			}
		}
	}
	if len(starts) == 0 || len(starts) != len(stops) {
		t.Errorf("%d arrows begin, %d end", len(starts), len(stops))
	}
	for id, e := range stops {
		if starts[id] > e.At || !stalls[math.Round(1000*e.At)] {
			t.Errorf("arrow %d from %v to %v, where no stall ends", id, starts[id], e.At)
		}
	}
	origin := r.origin()
	for job, traces := range r.traces {
		if got := spent["stall"+job]; got != r.stall[job] {
			t.Errorf("%s: stalls of %v, reported %v", job, got, r.stall[job])
		}
		if got := spent["gate"+job]; got != r.gate[job] {
			t.Errorf("%s: gates of %v, reported %v", job, got, r.gate[job])
		}
		want := occupied(traces)
		if len(want) < 100 {
			t.Errorf("%s: memory changes %d times", job, len(want))
		}
		last := graph.Bytes(-1)
		for _, at := range sorted(want) {
			got, told := memory[job][at+time.Hour-origin]
			if !told && last == want[at] {
				continue
			}
			if last = want[at]; got != want[at] {
				t.Fatalf("%s: memory of %d bytes at %v, want %d", job, got, at, want[at])
			}
		}
		for at, held := range memory[job] {
			if held > arena(traces) {
				t.Errorf("%s: %d bytes at %v in an arena of %d", job, held, at, arena(traces))
			}
		}
	}
}

// arena is the largest one that a job had.
func arena(traces []*executor.Trace) (most graph.Bytes) {
	for _, t := range traces {
		most = max(most, t.Program.Arena)
	}
	return most
}

// origin is when the trace begins.
func (r *run) origin() time.Duration {
	origin := time.Duration(math.MaxInt64)
	for _, s := range r.sections {
		for _, sp := range s.Spans {
			origin = min(origin, sp.Start)
		}
	}
	return origin
}

// occupied returns how many bytes of an arena have content from each time on, byte by byte: from when it is written to
// the end of all that uses it before it is written again, or of the last use at all.
func occupied(traces []*executor.Trace) map[time.Duration]graph.Bytes {
	const cell = 4
	type stay struct {
		from, to      time.Duration
		there         bool
		read, written int // by the command of this number
	}
	now := make([]stay, arena(traces)/cell)
	more := make(map[time.Duration]graph.Bytes)
	number := 0
	for _, t := range traces {
		for i := range t.Section.Commands {
			c, e := &t.Section.Commands[i], t.Events[i]
			number++
			each := func(a program.Address, size graph.Bytes, do func(*stay)) {
				if a != program.Nowhere && t.Program.Regions[a.Region] == program.Arena {
					for k := a.Offset / cell; k < (a.Offset+size+cell-1)/cell; k++ {
						do(&now[k])
					}
				}
			}
			read := func(s *stay) { s.to, s.read = max(s.to, e.End), number }
			write := func(s *stay) {
				if s.read == number || s.written == number { // in place
					return
				}
				if s.there {
					more[s.from] += cell
					more[s.to] -= cell
				}
				*s = stay{e.Start, e.End, true, 0, number}
			}
			switch c.Kind {
			case program.Kernel:
				op := &t.Program.Graph.Ops[c.Op]
				for k, tensor := range op.Inputs {
					each(c.Inputs[k], t.Program.Graph.Tensors[tensor].Bytes(), read)
				}
				for k, tensor := range op.Outputs {
					each(c.Outputs[k], t.Program.Graph.Tensors[tensor].Bytes(), write)
				}
				each(c.Scratch, c.ScratchBytes, write)
			case program.Out:
				each(c.Device, c.Bytes, read)
			case program.In:
				each(c.Device, c.Bytes, write)
			}
		}
	}
	for _, s := range now {
		if s.there {
			more[s.from] += cell
			more[s.to] -= cell
		}
	}
	var held graph.Bytes
	for _, at := range sorted(more) {
		held += more[at]
		more[at] = held
	}
	return more
}

// sorted returns times in their order.
func sorted(m map[time.Duration]graph.Bytes) []time.Duration {
	times := make([]time.Duration, 0, len(m))
	for at := range m {
		times = append(times, at)
	}
	sort.Slice(times, func(i, k int) bool { return times[i] < times[k] })
	return times
}
