package bench

import (
	"context"
	"errors"
	"fmt"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// NetworkPacking is the packing of a plan's residencies and scratch.
type NetworkPacking struct {
	Packing
	Policy  string      `json:"policy"`
	Percent int         `json:"budget_percent"` // of the slot peak under none-live; 0: no limit
	Budget  graph.Bytes `json:"budget_bytes"`
	Need    graph.Bytes `json:"need_bytes,omitempty"` // no plan fits, and this budget is needed; nothing was packed

	// Apart has each span as a buffer of its own: an online allocator may place a residency again. nil: nothing was
	// packed.
	Apart *MethodPacking `json:"online_spans_apart"`
}

const (
	networkBatch  = 16
	networkDevice = "a6000"
)

// networkBudgets are in percent of the slot peak under none-live.
var networkBudgets = []int{70, 50, 30}

// network is one model's job and the device that it is planned for.
type network struct {
	device  *sim.Device
	request scheduler.Request
	live    graph.Bytes // slot peak under none-live
}

// openNetwork returns a network whose device the caller closes.
func openNetwork(ctx context.Context, model string) (*network, error) {
	w, err := task.Load([]string{model}, task.Settings{Batch: networkBatch})
	if err != nil {
		return nil, err
	}
	facts, err := cost.Device(networkDevice)
	if err != nil {
		return nil, err
	}
	n := &network{device: sim.New(facts, sim.Options{})}
	if n.request, n.live, err = requestAndLive(ctx, w, n.device); err != nil {
		n.device.Close()
		return nil, err
	}
	return n, nil
}

// network measures the plans of a model.
func (m *packer) network(model string) ([]NetworkPacking, error) {
	n, err := openNetwork(m.ctx, model)
	if err != nil {
		return nil, err
	}
	defer n.device.Close()
	rows := []NetworkPacking{{Packing: Packing{Instance: model + " none-live"}, Policy: "none-live"}}
	for _, percent := range networkBudgets {
		rows = append(rows, NetworkPacking{Packing: Packing{Instance: fmt.Sprintf("%s tensile %d%%", model, percent)},
			Policy: "tensile", Percent: percent, Budget: n.live * graph.Bytes(percent) / 100})
	}
	for i := range rows {
		row := &rows[i]
		n.request.Policy, n.request.Budget = row.Policy, row.Budget
		planned, err := planner.Plan(m.ctx, n.request)
		if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok {
			row.Need, row.Methods = over.Need, []MethodPacking{}
		} else if err != nil {
			return nil, err
		} else if err := m.plan(row, compile.Buffers(n.request.Jobs[0].Graph, planned.Jobs[0].Plan,
			n.device.Align())); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// plan packs the buffers of a plan.
func (m *packer) plan(row *NetworkPacking, buffers []pool.Buffer) error {
	var err error
	if row.Packing, err = m.all(row.Instance, buffers); err != nil {
		return err
	}
	l, took, err := m.pack(row.Instance, spansApart(buffers), pool.Options{Method: "online"})
	if err != nil {
		return err
	}
	apart := methodPacking("online", l, took)
	row.Apart = &apart
	return nil
}

// spansApart makes each span a buffer of its own.
func spansApart(buffers []pool.Buffer) []pool.Buffer {
	var apart []pool.Buffer
	for _, b := range buffers {
		for _, s := range b.Spans {
			apart = append(apart, pool.Buffer{Size: b.Size, Align: b.Align, Spans: []pool.Span{s}})
		}
	}
	return apart
}
