package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"tensile/device"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/plan/compile"
	"tensile/plan/proof"
	"tensile/scheduler/planner"
)

// RealSharingOptions say what MeasureRealSharing measures.
type RealSharingOptions struct {
	Network    string // copies of it share the memory
	Settings   task.Settings
	Copies     []int
	Iterations int // of each job
	Rounds     int // each has every way once
	Progress   func(done float64)
}

// RealSharing is what is measured unless other things are named: minutes on two cores.
func RealSharing(quick bool) RealSharingOptions {
	o := RealSharingOptions{Network: "resnet110-cifar", Copies: []int{2, 4}, Iterations: 5, Rounds: 3,
		Settings: task.Settings{Batch: 4, Optimizer: autodiff.SGD{}}}
	if quick {
		o.Settings.Batch, o.Iterations = 2, 3
	}
	return o
}

// RealSharingReport is what copies of a network that share memory take on a device with data.
type RealSharingReport struct {
	Device string           `json:"device"`
	Rows   []RealSharingRow `json:"rows"`
}

// RealSharingRow is one way to share. Throughput is compared with the same jobs one after the other in the same round;
// of all rounds there is the median, the least and the most.
type RealSharingRow struct {
	Jobs        string      `json:"jobs"`
	Sharing     string      `json:"sharing"`
	Capacity    graph.Bytes `json:"capacity_bytes"`
	Arenas      graph.Bytes `json:"arenas_bytes"`
	Alternating [3]float64  `json:"throughput_vs_alternating"`
	Speed       [3]float64  `json:"speed_of_each_vs_alone"`
	Identical   bool        `json:"identical"` // all losses and weights are those of each job alone, in all rounds
}

// realSharing is copies that are measured.
type realSharing struct {
	ctx      context.Context
	d        device.Device
	options  RealSharingOptions
	tasks    []task.Task
	programs []proof.Proven
	bits     []uint64 // of each job alone
}

// MeasureRealSharing trains copies of a network on a device with data, in every way to share, one after the other.
func MeasureRealSharing(ctx context.Context, d device.Device, o RealSharingOptions) (*RealSharingReport, error) {
	r := &RealSharingReport{Device: d.Name()}
	for i, copies := range o.Copies {
		m := &realSharing{ctx: ctx, d: d, options: o}
		rows, err := m.measure(copies, func(done float64) {
			if o.Progress != nil {
				o.Progress((float64(i) + done) / float64(len(o.Copies)))
			}
		})
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

// realWays are the ways to share, and whether each job has an arena then.
var realWays = []string{ownArenas, takingTurns, byGates, byZico, byWaterwave}

func (m *realSharing) measure(copies int, progress func(float64)) (rows []RealSharingRow, err error) {
	name := fmt.Sprintf("%s:%d", m.options.Network, copies)
	if m.tasks, err = task.Load([]string{name}, m.options.Settings); err != nil {
		return nil, err
	}
	facts, err := cost.Device("a6000") // plans that move nothing are the same on any device
	if err != nil {
		return nil, err
	}
	on := planner.Describe(m.d, planner.Roofline(facts))
	r, err := on.FirstRequest(m.tasks)
	if err != nil {
		return nil, err
	}
	r.Policy = "none-live"
	planned, err := planner.Plan(m.ctx, r)
	if err != nil {
		return nil, err
	}
	m.programs = planned.Programs
	var arenas, bases, spread, largest graph.Bytes
	for _, p := range m.programs {
		d, err := compile.ProveGroups(p, on.Page, 0)
		if err != nil {
			return nil, err
		}
		base, peak := d.Groups().Base.Count(), d.Groups().Peak()
		arenas, largest = arenas+p.Program().Arena, max(largest, p.Program().Arena)
		bases, spread = bases+graph.Bytes(base)*on.Page, max(spread, graph.Bytes(peak-base)*on.Page)
	}
	largest = (largest + on.Page - 1) / on.Page * on.Page
	took := make(map[string][]float64) // per round, of the time one after the other
	same := true
	for round := range m.options.Rounds {
		var alone time.Duration
		for i := range m.tasks {
			run, bits, err := m.train(i, i+1, executor.Sharing{}, 0)
			if err != nil {
				return nil, err
			}
			if alone += run; round == 0 {
				m.bits = append(m.bits, bits...)
			}
			same = same && bits[0] == m.bits[i]
		}
		if !same {
			return nil, errors.New("jobs alone have other bits in another round")
		}
		for k, way := range realWays {
			capacity := bases + spread
			sharing := executor.Sharing{Lease: lease.NewMachine(lease.Options{Still: -1})}
			switch way {
			case ownArenas:
				sharing, capacity = executor.Sharing{}, 0
			case takingTurns:
				sharing.Turns, capacity = true, largest
				sharing.Lease = lease.NewMachine(lease.Options{Still: alone / time.Duration(2*len(m.tasks))})
			case byZico, byWaterwave:
				sharing.Method = way
			}
			run, bits, err := m.train(0, len(m.tasks), sharing, capacity)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
			took[way] = append(took[way], float64(alone)/float64(run))
			if round == 0 {
				rows = append(rows, RealSharingRow{Jobs: name, Sharing: way, Arenas: arenas, Identical: true,
					Capacity: map[bool]graph.Bytes{true: arenas, false: capacity}[capacity == 0]})
			}
			rows[k].Identical = rows[k].Identical && slices.Equal(bits, m.bits)
			progress((float64(round) + float64(k+1)/float64(len(realWays))) / float64(m.options.Rounds))
		}
	}
	for i := range rows {
		all := took[rows[i].Sharing]
		slices.Sort(all)
		rows[i].Alternating = [3]float64{all[len(all)/2], all[0], all[len(all)-1]}
		for k, v := range rows[i].Alternating {
			rows[i].Speed[k] = v / float64(len(m.tasks))
		}
	}
	return rows, nil
}

// train trains some of the jobs together and returns how long all of them took, and a digest of each one's losses and
// weights.
func (m *realSharing) train(from, to int, sharing executor.Sharing, capacity graph.Bytes) (took time.Duration,
	bits []uint64, err error) {
	tasks := m.tasks[from:to]
	bits = make([]uint64, len(tasks))
	left := len(tasks)
	h := executor.NewHost(m.d, func(e executor.Event) {
		if e.Refused != nil {
			err = e.Refused
		}
		if e.Ended == nil {
			return
		}
		if left--; e.Ended.Err != nil {
			err = e.Ended.Err
			return
		}
		i := slices.IndexFunc(tasks, func(t task.Task) bool { return t.Name == e.Job })
		for s := range tasks[i].Graph.Storages {
			for _, w := range e.Ended.Weights[graph.StorageID(s)] {
				bits[i] = digested(bits[i], math.Float32bits(w))
			}
		}
	})
	if sharing.Lease != nil {
		h.Share(sharing)
		h.Capacity(capacity, 0)
	}
	start := time.Now()
	for i, t := range tasks {
		loss := func(_ int, v float32) { bits[i] = digested(bits[i], math.Float32bits(v)) }
		h.Submit(executor.SpecOf(t, m.options.Iterations, loss), m.programs[from+i])
	}
	for left > 0 && err == nil {
		if _, e := h.Poll(m.ctx); e != nil {
			err = e
		}
	}
	took = time.Since(start)
	if e := h.Close(); err == nil {
		err = e
	}
	return took, bits, err
}

// digested adds a value to a digest (FNV-1a, a word at a time).
func digested(digest uint64, v uint32) uint64 { return (digest ^ uint64(v)) * 1099511628211 }

// WriteTable prints the report for people.
func (r *RealSharingReport) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s: copies that share memory; median (least to most) of all rounds\n", r.Device)
	fmt.Fprintln(t, "jobs\tsharing\tcapacity\tof arenas\tvs alternating\teach vs alone\tbits\t")
	for _, row := range r.Rows {
		spread := func(v [3]float64) string { return fmt.Sprintf("%.3f (%.3f to %.3f)", v[0], v[1], v[2]) }
		fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t\n", row.Jobs, row.Sharing, row.Capacity,
			float64(row.Capacity)/float64(row.Arenas), spread(row.Alternating), spread(row.Speed),
			map[bool]string{true: "identical", false: "DIFFERENT"}[row.Identical])
	}
	return t.Flush()
}
