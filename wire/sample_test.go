package wire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/explain"
)

// samples has a message of each kind in which every field is set; TestSamplesAreWhole holds them to that.
func samples() []Message {
	loss := Loss(2.25)
	digest := graph.Digest(strings.Repeat("0123456789abcdef", 4))
	spec := Spec{
		Name: "lenet.1", ID: 6, Model: "lenet", Graph: digest, Seed: 1 << 63, Iterations: 50, Priority: 2,
		SwapRate: 0.5,
		Data:     "data/mnist", Weights: "in/lenet.safetensors", Source: "in/lenet.onnx", Save: "out/lenet.safetensors",
		From: "in/40.safetensors", Checkpoint: Interval{5 * time.Minute, 100}, Keep: 3, Restarts: 5, AnyDevice: true,
		Owner: "ada", Device: "lab-cpu", Script: true, Held: 512, Least: 1024,
		Replica: Replica{Number: 1, Of: 3, Group: 5},
	}
	checkpoint := &Checkpoint{Iteration: 10, File: "lenet.1-6/1-10.safetensors", Host: "lab", Folder: "ABC",
		Bytes: 4096, Took: time.Second}
	result := &Result{
		Losses:  []float32{2.3025851, float32(math.Inf(1)), math.Float32frombits(0x7fc00001)},
		Weights: map[int32]string{0: "ab12", 7: "cd34"},
		Begin:   1, End: 5 * time.Second, Left: 1, First: 700 * time.Millisecond, Stall: 3 * time.Millisecond,
		Gate:    4 * time.Millisecond,
		Touched: 4096, Arena: 8192, SlotPeak: 6144,
		Plans: 2, Transition: 700, Last: &loss, Stored: "result-lenet_2e1-6",
		Saved: "out/lenet.safetensors",
	}
	meeting := &Meeting{Address: "10.0.0.7:40123", Key: "QG5ZKDYV6A2MUE7XHXN5LTXQHU", Certificate: string(digest)}
	free := graph.Bytes(2048)
	brought := Device{Name: "lab-cpu", Model: "cpu", Identity: "cpu/gonum", Host: "lab", Align: 64,
		Page: 4096, Context: 1 << 28, Budget: 1 << 30, HostMemory: 1 << 31, Limited: true, Drained: true,
		Facts: cost.Facts{Name: "cpu", Compute: 1e11, Bandwidth: 1e10, Out: cost.Link{Rate: 5e9, Latency: 10},
			In: cost.Link{Rate: 6e9, Latency: 20}, Host: cost.Link{Rate: 7e9, Latency: 30}, Memory: 1 << 33,
			Network:      cost.Link{Rate: 8e9, Latency: 40},
			ComputeShare: 0.5, BandwidthShare: 0.75, Launch: 100, Parallel: 2}}
	record := Record{
		Spec: spec, Order: 4, State: JobQueued, Reason: "waits for 3MiB", Diverged: true,
		Wait:     Wait{For: WaitMemory, Bytes: 3 << 20, Until: time.Hour},
		Executor: "e1", Executors: []string{"e0", "e1"}, Incarnation: 1,
		From: 10, At: 12, Restarts: 1, Checkpoint: checkpoint, Park: OnDisk, Preempted: true, Target: "lab2-cpu",
		Waiting: 1700000001 * time.Second,
		Held: []Holding{{Executor: "e0", Life: "4710-1", ID: 6, Incarnation: 1, Bytes: 4096, Host: 8192,
			On: "lab-cpu"}}, Epoch: 3,
		Cleared: 1, Granted: 2, Applied: 1,
		Claim: 8192, Base: 4096, Sharing: Gates, Speed: 0.5, Slowdown: 1.5, Measured: 1.75, On: "lab-cpu", Host: 12288,
		Arena: 4096, SlotPeak: 4000, Iteration: 12,
		PlansMade:  2,
		Latencies:  "updated",
		PlanReason: "drift",
		Result:     result, Link: Rates{Out: 5e9, In: 6.5e9},
		Plans: 1, Device: "cpu", Budget: 1 << 30, Submitted: 1700000000 * time.Second, Pace: 20 * time.Millisecond,
		Gate: time.Millisecond,
		Loss: &loss, Script: &Allocated{Plan: 4096, Reserve: 256, Touched: 4000, Hooks: true}, Unplanned: "a 512MiB op",
	}
	took := 3 * time.Millisecond
	past := &explain.Past{Waited: map[string]time.Duration{"memory": time.Second}, Iterations: 3, Alone: 30, Took: 12,
		Stall: 4, Gate: 5, Out: 4096, In: 8192, Plans: map[string]int64{"arrival": 1}, Restarts: 1,
		Arena: 8192, Touched: 4096}
	explained := &explain.Job{Job: "lenet.1", Model: "lenet", Device: "cpu", State: "running", Reason: "waits for 3MiB",
		Over: true, Remedy: "raise the budget", Past: past,
		Iteration: 12, Of: 50, Budget: 1 << 30, Taken: 1 << 20, Shared: true,
		Holders: []explain.Holder{{Job: "lenet.1", State: "running", Priority: 2, Bytes: 8192, Base: 4096, Away: true}},
		Has: &explain.Plan{Epoch: 3, Stands: explain.ToCome, Outcome: explain.Outcome{Job: "lenet.1", Arena: 4096,
			Iteration: 30, Stall: 2, Swapped: 512, Recomputes: 3, Speed: 0.5}},
		Time: &explain.Time{Number: 11, Iteration: 28, Alone: 1, Variants: 2, Again: 3, Beside: 4, Stall: 5, Gate: 6,
			Rest: 7},
		Stalls: []explain.Stall{{Kind: "in", Storage: "fc6.w.m", Bytes: 4096, Op: "fc6.w.update", Stall: 5,
			Takes: 9}},
		StallsRest: 1,
		Plans: []explain.Alternative{{Budget: 1 << 31, Priority: 5, Error: "there is none", Same: true,
			Jobs: []explain.Outcome{{Job: "mlp", Arena: 4096, Iteration: 30, Stall: 2, Swapped: 512, Recomputes: 3,
				Speed: 0.5}},
			Waiting: []string{"lenet.1"}}}}
	life := &explain.Storage{Job: "lenet.1", Storage: "fc6.w.m", Role: graph.State, Bytes: 4096, Epoch: 3,
		Iteration: 30, Begins: true, Stands: explain.InForce, Unsaid: true,
		Events: []explain.Event{{What: explain.Updated, Step: 5, Op: "fc6.w.update", Start: 10, Takes: 2,
			Measured: &took}},
		Decisions: []explain.Decision{{Storage: "fc6.w.m", Bytes: 4096, Kind: "swap", From: "a", To: "b", FreeSlots: 4,
			Away: 1.5, Freed: 6144, Cost: 0.25, Reason: "both copies fit"}}}
	return []Message{
		Orders{Executor: "e1", On: "d1", Number: 9, Jobs: []Assignment{{Spec: spec, Incarnation: 2, From: 10,
			Park: InMemory, Epoch: 3, Stop: true, Copies: true,
			Trace: Trace{Number: 8, Iterations: 3}, Unplanned: "a 512MiB op",
			At: 40, Neighbour: meeting}},
			Leave: true, Elsewhere: []int64{5}, Life: "4711-1",
			Link: Rates{Out: 5e9, In: 6e9}, Refused: &Refusal{Life: "4712-1",
				Reason: "e1 runs already on lab since 12:01"},
			Lease: &Lease{Sharing: Gates, Capacity: 1 << 30, Number: 1700000000, Name: "ab12", Page: 4096}},
		Status{Executor: "e1", Number: 12, Life: "4711-1", Device: "cpu", Host: "lab", Folder: "ABC",
			Place: "boot 1",
			Since: 1764000000000000000, Orders: 9, Dead: []string{"4711-0"}, Leaves: true, Brings: &brought,
			Jobs: []JobStatus{{
				Name: "lenet.1", ID: 6, Incarnation: 2, Checkpoint: checkpoint, State: Failed, Epoch: 3,
				Arena: 4096, Iteration: 12,
				Begun: 14, Since: 8, Meets: meeting, Alone: true,
				Error: "device: out of memory",
				Lacks: true, Damaged: true, Diverged: true,
				Free:   &free,
				Result: result,
				Script: &Allocated{Plan: 4096, Reserve: 256, Touched: 4000, Hooks: true},
			}}},
		*result,
		Report{
			Executor: "e1", Job: "lenet.1", ID: 6, Incarnation: 2, Epoch: 3, Iteration: 12,
			Steps: []time.Duration{1000, 0, 2000},
			Stall: 5, Gate: 7,
			Wall: 3100, Touched: 4096, Loss: &loss,
			Copies: []Copy{{Kind: plan.In, Storage: 5, After: 1, Start: 10, End: 30,
				Stall: 4}},
		},
		Layout{
			Plan: &plan.Plan{
				Job: "lenet.1", Epoch: 3, Policy: "tensile", Graph: digest, Passes: []string{"inplace"},
				Steps: []plan.Step{{Op: 1, Want: 3, Variant: "gemm", Scratch: 256, Join: true},
					{Op: 2, Want: 1, Variant: "x", Scratch: 1, Join: true}},
				Moves: []plan.Move{{Kind: plan.Out, Storage: 5, After: 1, Sync: true, Delay: 10}},
				Entry: []graph.StorageID{1, 2}, Made: []time.Duration{100, 200},
			},
			Offsets: []graph.Bytes{256, 512}, Scratch: []graph.Bytes{768, 1024}, Arena: 4096,
			Reasons: &Reasons{Out: cost.Link{Rate: 5e9, Latency: 10}, In: cost.Link{Rate: 6e9, Latency: 20},
				Unplanned: 300, Speed: 0.5, Decisions: []Decision{{Storage: 5, Kind: scheduler.Swap, From: 1, To: 2,
					Freed: 1, Away: 10, Cost: 3, Text: 1}}, Texts: []string{"it is small", "both copies fit"}},
		},
		Request{Verb: Submit, Specs: []Spec{spec}, Job: "lenet.1", After: 3,
			Graphs: []Packed{{Graph: []byte{1}, Latency: []time.Duration{5}}},
			Place:  OnDisk, Priority: 2, Iterations: 3,
			Executor: "lab2",
			Budget:   1 << 30, Device: "cpu", Undo: true, Graph: digest, Held: 512, Least: 1024, Storage: "fc6.w.m",
			Tenant: "ada", Share: 3},
		Answer{Error: "job lenet.1: there is one of that name", Jobs: []Record{record}, More: true,
			Trouble: "the controller's disk is full",
			Device:  "cpu", Budget: 1 << 30, Link: Rates{Out: 5e9, In: 6e9}, HostMemory: 1 << 31, ByHand: true,
			Contexts: Contexts{Processes: 3, Each: 1 << 28}, Sharing: Gates, Explained: explained, Storage: life,
			Devices: []DeviceState{{Device: brought, Own: true, Used: 4096, HostUsed: 8192, Jobs: 2, Executors: 3,
				Silent: 1}},
			Tenants: []TenantState{{Name: "ada", Share: 3, Running: 1, Waiting: 2, Speed: 0.75, Behind: 4,
				Served: 5}},
			Credentials: "{\"url\":\"nats://lab:4222\"}"},
		record,
		brought,
		Recorded{Latency: []time.Duration{1000, 0}},
		Settings{Device: "cpu", Budget: 1 << 20},
		Tenants{Shares: map[string]int{"ada": 3}, Debts: []TenantDebt{{Device: "gpu0", Tenant: "ada", Debt: -4}}},
		Leadership{ID: "K5ZQ", Where: "lab1, process 4711", Term: 2, Beat: 17, Lease: "B7WX"},
		Learnt{Device: "cpu", Ops: []LearntOp{{Signature: graph.Signature(digest[:graph.SignatureDigits]),
			Latency: 2 * time.Millisecond, Reports: 16}}},
	}
}

// maker makes random messages.
type maker struct{ *rand.Rand }

func (r maker) name() string {
	const letters = "abzABZ019-_. :,+äß漢"
	runes := []rune(letters)
	name := make([]rune, 1+r.IntN(maxName/4))
	for i := range name {
		name[i] = runes[r.IntN(len(runes))]
	}
	return "n" + string(name)
}

func (r maker) text() string {
	return []string{"", "one line", "two\nlines\t", "\u2028 \\ \" \x7f", strings.Repeat("long ", 50)}[r.IntN(5)]
}

func (r maker) line() string {
	return strings.NewReplacer("\n", "", "\t", "", "\x7f", "").Replace(r.text())
}
func (r maker) digest() graph.Digest {
	var d strings.Builder
	for range 64 {
		d.WriteByte("0123456789abcdef"[r.IntN(16)])
	}
	return graph.Digest(d.String())
}
func (r maker) number() int64           { return r.Int64N(1<<53) >> r.IntN(53) }
func (r maker) bytes() graph.Bytes      { return graph.Bytes(r.number() / 2) }
func (r maker) duration() time.Duration { return time.Duration(r.Int64N(1 << (1 + r.IntN(52)))) }
func (r maker) loss() float32           { return math.Float32frombits(r.Uint32()) }

func (r maker) spec() Spec {
	return Spec{
		Name: r.name(), ID: r.number(), Model: r.line(), Graph: r.digest(), Seed: r.Uint64(),
		Iterations: int(r.number()), Priority: r.IntN(3),
		SwapRate: r.Float64() * float64(r.IntN(2)), Data: r.line(), Save: r.line(), From: r.line(),
		Checkpoint: Interval{r.duration(), int(r.number())}, Keep: r.IntN(3), Restarts: r.IntN(9), Owner: r.name(),
		Replica: r.replica(),
	}
}

func (r maker) replica() Replica {
	if r.IntN(2) == 0 {
		return Replica{}
	}
	of := 2 + r.IntN(graph.MaxReplicas-1)
	return Replica{Number: r.IntN(of), Of: of, Group: r.number()}
}

func (r maker) meeting() *Meeting {
	if r.IntN(2) == 0 {
		return nil
	}
	address := fmt.Sprintf("%s:%d", []string{"127.0.0.1", "[fe80::1%eth0]", "[2001:db8::7]"}[r.IntN(3)],
		1+r.IntN(1<<16-1))
	if r.IntN(4) == 0 {
		address = LocalMeeting + string(r.digest()[:26])
	}
	return &Meeting{Address: address, Key: string(r.digest()[:26]),
		Certificate: string(r.digest())}
}

func (r maker) checkpoint() *Checkpoint {
	if r.IntN(2) == 0 {
		return nil
	}
	return &Checkpoint{Iteration: int(r.number()), File: r.line(), Host: r.line(), Folder: r.line(), Bytes: r.bytes(),
		Took: time.Duration(r.number()) % MaxTook}
}

func (r maker) place() Place { return []Place{InMemory, OnDisk}[r.IntN(2)] }

func (r maker) result() *Result {
	if r.IntN(2) == 0 {
		return nil
	}
	result := &Result{
		Begin: r.duration() / 2, Left: r.duration(), First: r.duration(), Stall: r.duration(),
		Touched: r.bytes(), Arena: r.bytes(), SlotPeak: r.bytes(),
		Plans: r.IntN(9), Transition: r.duration(), Saved: r.line(),
		Weights: map[int32]string{},
	}
	result.End = result.Begin + r.duration()/2
	for range r.IntN(4) {
		result.Losses = append(result.Losses, r.loss())
		result.Weights[r.Int32()] = r.line()
	}
	return result
}

func (r maker) record() Record {
	record := Record{
		Spec: r.spec(), Order: r.number(), Reason: r.text(), Diverged: r.IntN(2) == 0,
		Wait: Wait{For: WaitMemory, Bytes: r.bytes(), Until: r.duration()}, Epoch: r.number(), Granted: r.number(),
		Applied: r.number(), Claim: r.bytes(), Arena: r.bytes(), SlotPeak: r.bytes(), Iteration: int(r.number()),
		PlansMade: r.IntN(9), PlanReason: r.text(), Result: r.result(), Plans: r.IntN(9), Device: r.line(),
		Budget: r.bytes(),
		State: []JobState{JobQueued, JobStarting, JobRunning, JobUnknown, JobParking, JobParked, JobStopping,
			JobFinished, JobStopped,
			JobFailed}[r.IntN(10)],
		Incarnation: r.number(), Restarts: r.IntN(9), Checkpoint: r.checkpoint(), Park: r.place(),
	}
	if r.IntN(2) == 0 {
		record.Executor = r.name()
		loss := Loss(r.loss())
		record.Plans, record.Submitted, record.Pace, record.Loss = r.IntN(9), r.duration(), r.duration(), &loss
	}
	return record
}

func (r maker) layout() Layout {
	l := Layout{Plan: &plan.Plan{Job: r.name(), Epoch: 1 + r.number()/2, Policy: r.line(), Graph: r.digest()},
		Arena: r.bytes()%graph.MaxTotal + 1}
	for range r.IntN(5) {
		l.Plan.Steps = append(l.Plan.Steps, plan.Step{Op: graph.OpID(r.Int32()), Want: plan.Outputs(r.Uint32()),
			Scratch: r.bytes()})
		l.Plan.Moves = append(l.Plan.Moves, plan.Move{Kind: plan.In, Storage: graph.StorageID(r.Int32()),
			After: r.IntN(9) - 1})
		l.Offsets = append(l.Offsets, graph.Bytes(r.Int64N(int64(l.Arena))))
		l.Scratch = append(l.Scratch, graph.Bytes(r.Int64N(int64(l.Arena))))
	}
	if n := len(l.Plan.Steps); n > 0 {
		s := &scheduler.Scheduled{Unplanned: r.duration()}
		for range r.IntN(4) {
			s.Decisions = append(s.Decisions, scheduler.Decision{Storage: graph.StorageID(r.Int32()),
				Kind: scheduler.Kind(r.IntN(3)), From: r.IntN(n+1) - 1, To: r.IntN(2 * n), Freed: r.IntN(n),
				Away: r.duration(), Cost: r.duration(), Reason: r.line()})
		}
		l.Reasons = ReasonsOf(s, r.Float64())
	}
	return l
}

func (r maker) message() Message {
	switch r.IntN(11) {
	case 0:
		o := Orders{Executor: r.name(), Number: r.number(), Leave: r.IntN(2) == 0,
			Link: Rates{Out: cost.BytesPerSecond(r.Float64()), In: cost.BytesPerSecond(r.IntN(2))}}
		if r.IntN(2) == 0 {
			o.Refused = &Refusal{Life: r.name(), Reason: r.line()}
		}
		for i := range r.IntN(4) {
			o.Jobs = append(o.Jobs, Assignment{Spec: r.spec(), Incarnation: r.number(), From: int(r.number()),
				Epoch: r.number(), Stop: r.IntN(2) == 0, Park: r.place(), At: int(r.number()),
				Neighbour: r.meeting()})
			o.Jobs[i].Spec.Name += string(rune('a' + i)) // each another
		}
		return o
	case 1:
		s := Status{Executor: r.name(), Number: r.number(), Life: r.name(), Device: r.line(), Orders: r.number(),
			Place: r.line(),
			Host:  r.line(), Folder: r.line(), Since: r.number(), Leaves: r.IntN(2) == 0}
		for i := range r.IntN(4) {
			s.Jobs = append(s.Jobs, JobStatus{
				Name: r.name() + string(rune(97+i)), ID: r.number(), Incarnation: r.number(),
				State:      []State{Waiting, Running, Resting, Finished, Stopped, Failed, Suspended}[r.IntN(7)],
				Checkpoint: r.checkpoint(),
				Epoch:      r.number(), Arena: r.bytes(), Iteration: int(r.number()), Error: r.text(),
				Lacks: r.IntN(2) == 0, Damaged: r.IntN(2) == 0, Diverged: r.IntN(2) == 0,
				Result: r.result(), Begun: int(r.number()), Meets: r.meeting(),
				Alone: r.IntN(2) == 0, Since: int(r.number()),
			})
			if free := r.bytes(); r.IntN(2) == 0 {
				s.Jobs[i].Free = &free
			}
		}
		return s
	case 2:
		report := Report{Executor: r.name(), Job: r.name(), Incarnation: r.number(), Epoch: r.number(),
			Iteration: r.IntN(99),
			Stall:     r.duration(), Wall: r.duration(), Touched: r.bytes()}
		for range r.IntN(9) {
			report.Steps = append(report.Steps, r.duration())
		}
		if r.IntN(2) == 0 {
			loss := Loss(r.loss())
			report.Loss = &loss
		}
		return report
	case 3:
		return r.layout()
	case 4:
		return []Request{{Verb: Submit, Specs: []Spec{r.spec()}}, {Verb: Stop, Job: r.name()}, {Verb: Jobs},
			{Verb: Park, Job: r.name(), Place: r.place()}, {Verb: Resume, Job: r.name()},
			{Verb: SetBudget, Budget: r.bytes(), Device: r.line()}, {Verb: Forget, Executor: r.name()},
			{Verb: Drain, Device: r.name(), Undo: r.IntN(2) == 0},
			{Verb: SetShare, Tenant: r.name(), Share: r.IntN(MaxShare + 1)},
			{Verb: SetWeight, Job: r.name(), Priority: 1 + r.IntN(9)},
			{Verb: TraceJob, Job: r.name(), Iterations: 1 + r.IntN(9)}}[r.IntN(11)]
	case 5:
		a := Answer{Error: r.text(), Trouble: r.line()}
		for range r.IntN(3) {
			a.Jobs = append(a.Jobs, r.record())
		}
		return a
	case 6:
		l := Learnt{Device: r.line()}
		for range r.IntN(4) {
			l.Ops = append(l.Ops, LearntOp{Signature: graph.Signature(r.digest()[:graph.SignatureDigits]),
				Latency: r.duration() % MaxLatency, Reports: 1 + r.IntN(99)})
		}
		return l
	case 7:
		return Settings{Device: r.line(), Budget: r.bytes()}
	case 9:
		return Tenants{Shares: map[string]int{r.name(): 1 + r.IntN(MaxShare)},
			Debts: []TenantDebt{{Device: r.name(), Tenant: r.name(), Debt: time.Duration(r.number())}}}
	case 8:
		return Leadership{ID: r.line(), Where: r.line(), Term: 1 + r.number(), Beat: r.number(), Lease: r.line()}
	default:
		return r.record()
	}
}
