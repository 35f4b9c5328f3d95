package live

import (
	"time"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/observe/report"
	"tensile/peak"
	"tensile/wire"
)

// History is what was told of a controller. The zero value knows nothing. It belongs to one goroutine at a time.
type History struct {
	answer  wire.Answer
	at      time.Duration
	samples series[Sample]
	jobs    map[key]*job
}

// key is a job: a name may be given again after the job that had it was forgotten.
type key struct {
	name string
	id   int64
}

func keyOf(r *wire.Record) key { return key{r.Spec.Name, r.Spec.ID} }

// job is what was told of a job beside its record.
type job struct {
	losses series[Loss]
	last   int // iteration of the newest loss
	newest *Iteration
	plans  []Planned // oldest first
	layout *wire.Layout
	facts  facts
}

// facts are what a plan says about an iteration.
type facts struct {
	out, in graph.Bytes   // bytes copied each way
	alone   time.Duration // its ops, each executed once and nothing waited for; 0: the plan does not say
	without graph.Bytes   // the peak without the plan
}

// maxPlans is of how many plans of a job the history is kept, maxChanges how many changes of each.
const (
	maxPlans   = 50
	maxChanges = 60
)

// maxDevices is how many devices are shown; the first of a controller's list.
const maxDevices = 32

// maxTenants is how many tenants are shown; the first by name.
const maxTenants = 50

// Sample is what devices were used for at a time.
type Sample struct {
	At      int64             `json:"at_ms"` // since the Unix epoch
	Devices map[string]Moment `json:"devices"`
}

// Moment is what the memory and the link of a device were used for.
type Moment struct {
	Budget graph.Bytes            `json:"budget_bytes"` // 0: no limit
	Parts  map[string]graph.Bytes `json:"parts"`        // as PartsOf has them
	Link   wire.Rates             `json:"link"`         // what plans copy, by the pace of their jobs: bytes in a second
}

// Loss is the loss after an iteration.
type Loss struct {
	Iteration int       `json:"iteration"`
	Loss      wire.Loss `json:"loss"`
}

// Iteration is what was measured of one.
type Iteration struct {
	Iteration int           `json:"iteration"`
	Epoch     int64         `json:"epoch"`
	Wall      time.Duration `json:"wall_ns"`
	Stall     time.Duration `json:"stall_ns"`
	Gate      time.Duration `json:"gate_ns"`
}

// Planned is a plan that a job was given.
type Planned struct {
	// At is when the plan was heard of, in milliseconds since the Unix epoch.
	At int64 `json:"at_ms"`
	// Epoch numbers the plan.
	Epoch int64 `json:"epoch"`
	// Reason is why it was made.
	Reason string `json:"reason"`
	// Latencies says what it was made with, see wire.Record.
	Latencies string `json:"latencies"`
	// Arena is the size of its arena in bytes.
	Arena graph.Bytes `json:"arena_bytes"`
	// Steps is how many steps it has.
	Steps int `json:"steps"`
	// Swaps is how many storages it copies back to the device.
	Swaps int `json:"swaps"`
	// Again is how many of its steps repeat an op.
	Again int `json:"again"`
	// Since is the epoch that Changes are against; 0: there was no plan before.
	Since int64 `json:"since,omitzero"`
	// Changes are the first of the changes.
	Changes []report.Change `json:"changes"`
	// Left is how many changes are left out.
	Left int `json:"left,omitzero"`
	// Passes are the rewrites of its graph.
	Passes []string `json:"passes,omitzero"`
}

// TakeAnswer takes an answer to the verb jobs that was given at a time since the Unix epoch.
func (h *History) TakeAnswer(at time.Duration, a wire.Answer) {
	h.at, h.answer = at, a
	known := make(map[key]*job, len(a.Jobs))
	for i := range a.Jobs {
		k := keyOf(&a.Jobs[i])
		if known[k] = h.jobs[k]; known[k] == nil {
			known[k] = &job{last: -1}
		}
	}
	h.jobs = known
	s := Sample{At: at.Milliseconds(), Devices: make(map[string]Moment)}
	devices := memory.Devices(&a)
	for i := range devices[:min(len(devices), maxDevices)] {
		s.Devices[devices[i].Name] = Moment{Budget: devices[i].Budget, Parts: partsOf(&a, devices, i),
			Link: h.link(devices, i)}
	}
	h.samples.Add(s)
}

// link is what all jobs of a device copy in a second of its time, in the mean of an iteration.
func (h *History) link(devices []wire.DeviceState, device int) (r wire.Rates) {
	for i := range h.answer.Jobs {
		if job := &h.answer.Jobs[i]; memory.DeviceIndex(devices, job) == device {
			own := h.copies(job)
			r.Out, r.In = r.Out+own.Out, r.In+own.In
		}
	}
	return r
}

// copies is what a job copies in a second.
func (h *History) copies(r *wire.Record) wire.Rates {
	if r.State != wire.JobRunning || r.Pace <= 0 {
		return wire.Rates{}
	}
	f := &h.jobs[keyOf(r)].facts
	rate := func(b graph.Bytes) cost.BytesPerSecond {
		return cost.BytesPerSecond(float64(b) / r.Pace.Seconds())
	}
	return wire.Rates{Out: rate(f.out), In: rate(f.in)}
}

// TakeReport takes a report. That of a job which is not known yet is left out.
func (h *History) TakeReport(r *wire.Report) {
	j := h.jobs[key{r.Job, r.ID}]
	if j == nil {
		return
	}
	if j.newest == nil || r.Iteration >= j.newest.Iteration {
		j.newest = &Iteration{Iteration: r.Iteration, Epoch: r.Epoch, Wall: r.Wall, Stall: r.Stall, Gate: r.Gate}
	}
	if r.Loss != nil && r.Iteration > j.last { // those that are done again after a restart are the same
		j.last = r.Iteration
		j.losses.Add(Loss{r.Iteration, *r.Loss})
	}
}

// MissingPlans are the jobs with a plan that the history has not been told.
func (h *History) MissingPlans() (list []wire.Record) {
	for i := range h.answer.Jobs {
		r := &h.answer.Jobs[i]
		if j := h.jobs[keyOf(r)]; r.Granted > 0 && !r.State.Over() && (j.layout == nil ||
			j.layout.Plan.Epoch != r.Granted) {
			list = append(list, *r)
		}
	}
	return list
}

// TakePlan takes the plan of epoch Granted of a job that Unplanned has named.
func (h *History) TakePlan(r *wire.Record, g *graph.Graph, l *wire.Layout) {
	j := h.jobs[keyOf(r)]
	if j == nil {
		return
	}
	p := l.Plan
	_, without := peak.Vanilla(g)
	out, in := p.Copied(g)
	j.facts = facts{out: out, in: in, alone: p.Length() - p.Recomputation(), without: without}
	entry := Planned{At: h.at.Milliseconds(), Epoch: p.Epoch, Reason: r.PlanReason, Latencies: r.Latencies,
		Arena: l.Arena,
		Steps: len(p.Steps), Swaps: report.CountSwaps(g, p), Again: len(p.Steps) - len(g.Ops), Passes: p.Passes,
		Changes: []report.Change{}}
	if j.layout != nil && j.layout.Plan.Graph == p.Graph {
		entry.Since = j.layout.Plan.Epoch
		entry.Changes, entry.Left = truncated(report.Changes(g, j.layout.Plan, p))
	}
	if j.layout = l; len(j.plans) == maxPlans {
		j.plans = j.plans[1:]
	}
	j.plans = append(j.plans, entry)
}

func truncated(all []report.Change) (list []report.Change, left int) {
	n := min(len(all), maxChanges)
	return all[:n:n], len(all) - n
}

// Device is one of a controller's.
type Device struct {
	wire.DeviceState
	Link     wire.Rates `json:"link"`      // what it carries, in bytes a second; 0: that is not known
	LinkUsed wire.Rates `json:"link_used"` // the part of the link that is used, as in a Moment
}

// Overview is what a controller has, and its jobs.
type Overview struct {
	At         int64        `json:"at_ms"`        // since the Unix epoch
	Budget     graph.Bytes  `json:"budget_bytes"` // the sum over all devices; 0: one has no limit
	HostMemory graph.Bytes  `json:"host_memory_bytes"`
	Sharing    wire.Sharing `json:"memory_sharing"`
	Trouble    string       `json:"trouble"`
	Devices    []Device     `json:"devices"`
	Left       int          `json:"devices_left,omitzero"` // devices that are left out
	// Tenants are how tenants fare; none where nobody was given a share.
	Tenants     []wire.TenantState `json:"tenants"`
	TenantsLeft int                `json:"tenants_left,omitzero"` // that are left out
	// Saved is by how much what jobs use is less than their peaks without plans, as a share of these; 0: not known.
	Saved float64 `json:"saved"`
	Use
	Jobs []Job `json:"jobs"`
}

// Job is a job as jobs --json prints it, and what follows from that.
type Job struct {
	wire.Record
	// DeviceName is the name of the job's device; "": it has none yet.
	DeviceName string `json:"device_name"`
	// Rate is how many iterations it trains in a second of the device's time; 0: it does not train.
	Rate float64 `json:"iterations_per_second"`
	// TimeLeft is how long the rest of its iterations takes at that rate.
	TimeLeft time.Duration `json:"time_left_ns"`
	// Relative is the speed measured, as a share of that of its ops by the latencies of its plan, with nothing made
	// again or waited for; 0: not known. Where jobs share memory by gates these are the latencies of a job alone; where
	// they have arenas of their own, those beside the others.
	Relative float64 `json:"relative_speed"`
	// Without is its peak without the plan, in bytes; 0: unknown.
	Without graph.Bytes `json:"without_plan_bytes"`
	// Saved is the share of Without that the arena does without.
	Saved float64 `json:"saved"`
	// Copies is how much it copies in a second, in bytes.
	Copies wire.Rates `json:"copies"`
	// Curve is the loss at equal distances of iterations, from the first that was heard of to the newest; nil: there
	// are less than two.
	Curve []wire.Loss `json:"curve,omitzero"`
}

// Overview is the newest.
func (h *History) Overview() Overview {
	a := &h.answer
	o := Overview{At: h.at.Milliseconds(), Sharing: a.Sharing, Trouble: a.Trouble, Use: useOf(a), Devices: []Device{},
		Jobs: []Job{}}
	devices := memory.Devices(a)
	o.Budget, o.HostMemory = report.Budgets(devices)
	shown := min(len(a.Tenants), maxTenants)
	o.Tenants, o.TenantsLeft = append([]wire.TenantState{}, a.Tenants[:shown]...), len(a.Tenants)-shown
	var without, claimed graph.Bytes
	for i := range devices {
		if i == maxDevices {
			o.Left = len(devices) - i
			break
		}
		d := Device{DeviceState: devices[i], LinkUsed: h.link(devices, i),
			Link: wire.Rates{Out: devices[i].Facts.Out.Rate, In: devices[i].Facts.In.Rate}}
		o.Devices = append(o.Devices, d)
	}
	known := true
	for i := range a.Jobs {
		j := h.job(&a.Jobs[i])
		j.Curve = curveOf(h.jobs[keyOf(&a.Jobs[i])].losses.Points())
		if o.Jobs = append(o.Jobs, j); j.Claim > 0 {
			without, known = without+j.Without, known && j.Without > 0
		}
	}
	for i := range devices {
		for part, bytes := range partsOf(a, devices, i) {
			if part != unreachablePart && part != processesPart {
				claimed += bytes
			}
		}
	}
	if claimed > 0 && known && without > 0 {
		o.Saved = 1 - float64(claimed)/float64(without)
	}
	return o
}

func (h *History) job(r *wire.Record) Job {
	f := &h.jobs[keyOf(r)].facts
	j := Job{Record: *r, Copies: h.copies(r), Without: f.without}
	if devices := memory.Devices(&h.answer); memory.DeviceIndex(devices, r) >= 0 {
		j.DeviceName = devices[memory.DeviceIndex(devices, r)].Name
	}
	if r.State == wire.JobRunning && r.Pace > 0 {
		j.Rate = 1 / r.Pace.Seconds()
		j.TimeLeft = time.Duration(float64(r.Spec.Iterations-r.Iteration) * float64(r.Pace))
		j.Relative = float64(f.alone) / float64(r.Pace)
	}
	if arena := r.Arena; f.without > 0 && arena > 0 && !r.State.Over() {
		j.Saved = 1 - float64(arena)/float64(f.without)
	}
	return j
}

// Samples are the device's memory and link over time, oldest first, and never nil: in JSON none is an empty list. The
// caller does not change them.
func (h *History) Samples() []Sample {
	if p := h.samples.Points(); p != nil {
		return p
	}
	return []Sample{}
}

// Detail is what is known of one job.
type Detail struct {
	Job    Job        `json:"job"`
	Losses []Loss     `json:"losses"`
	Newest *Iteration `json:"newest"` // the newest iteration that was measured; nil: none
	Plans  []Planned  `json:"plans"`  // oldest first
}

// Detail is that of a job, with losses of iterations after one; false: there is none of that name.
func (h *History) Detail(name string, after int) (d Detail, ok bool) {
	for i := range h.answer.Jobs {
		r := &h.answer.Jobs[i]
		if r.Spec.Name != name {
			continue
		}
		j := h.jobs[keyOf(r)]
		d = Detail{Job: h.job(r), Losses: []Loss{}, Newest: j.newest, Plans: append([]Planned{}, j.plans...)}
		for _, l := range j.losses.Points() {
			if l.Iteration > after {
				d.Losses = append(d.Losses, l)
			}
		}
		return d, true
	}
	return Detail{}, false
}

// Layout is the plan that a job was last said to have, with its offsets; nil: none was told. link is the job's own
// share of the device's link, or that link.
func (h *History) Layout(name string) (r wire.Record, l *wire.Layout, link wire.Rates) {
	for i := range h.answer.Jobs {
		r := &h.answer.Jobs[i]
		if r.Spec.Name != name {
			continue
		}
		if link = r.Link; link == (wire.Rates{}) {
			devices := memory.Devices(&h.answer)
			if on := memory.DeviceIndex(devices, r); on >= 0 {
				link = wire.Rates{Out: devices[on].Facts.Out.Rate, In: devices[on].Facts.In.Rate}
			}
		}
		return *r, h.jobs[keyOf(r)].layout, link
	}
	return wire.Record{}, nil, wire.Rates{}
}
