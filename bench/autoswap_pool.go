package bench

import (
	"tensile/graph"
	"tensile/models/passes"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/rivals/autoswap"
)

// footprints is figure 10.
func (s *swapping) footprints() (Table, error) {
	t := Table{Name: "autoswap-figure-10", Title: "SmartPool and AutoSwap: footprint in MB over the batch",
		Notes: []string{"load is what cudaMalloc needs; online is best fit without knowledge of the future, in the " +
			"place of CnMem; combined is AutoSwap, by SWDOA, and SmartPool; overhead is that of the compiled program",
			"the paper draws the figure without numbers; its text says that up to a third of CnMem's footprint is " +
				"saved at no overhead"},
		Free: &Free{Columns: []string{"network", "device", "batch", "load_mb", "online_mb", "smartpool_mb",
			"combined_mb",
			"saved_percent", "overhead_percent"}}}
	batches := []int{50, 100, 150, 200}
	if s.quick {
		batches = []int{50, 100}
	}
	for _, n := range s.networks() {
		if n.paper == "" {
			continue
		}
		for _, batch := range batches {
			if err := s.footprint(&t, &n, s.machines[1], batch); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

func (s *swapping) footprint(t *Table, n *swapNetwork, on swapMachine, batch int) error {
	r, err := s.request(n, on, batch, "all")
	if err != nil {
		return err
	}
	heights, err := s.heights(r)
	if err != nil {
		return err
	}
	r.Options = scheduler.Options{Pack: "smartpool", Own: autoswap.Options{Score: autoswap.SWDOA}}
	planned, err := planner.Plan(s.ctx, r)
	if err != nil {
		return err
	}
	j := planned.Jobs[0]
	t.Free.Add(n.name(), on.name, batch, inMB(heights.load), inMB(heights.online), inMB(heights.smartpool),
		inMB(planned.Arena), reduction(heights.online, planned.Arena),
		100*float64(planned.Timing(0).Iteration-j.Unplanned)/float64(j.Unplanned))
	return nil
}

// heights are what pools make of the blocks of a job that frees everything after its last use.
type heights struct{ load, online, smartpool graph.Bytes }

func (s *swapping) heights(r scheduler.Request) (h heights, err error) {
	r.Policy = "none-live"
	planned, err := planner.Plan(s.ctx, r)
	if err != nil {
		return h, err
	}
	buffers := compile.Buffers(r.Jobs[0].Graph, planned.Jobs[0].Plan, r.Align)
	m := &packer{ctx: s.ctx}
	h.load = graph.Bytes(pool.Load(buffers))
	for method, height := range map[string]*graph.Bytes{"online": &h.online, "smartpool": &h.smartpool} {
		l, _, err := m.pack(r.Jobs[0].Graph.Name, buffers, pool.Options{Method: method})
		if err != nil {
			return h, err
		}
		*height = graph.Bytes(l.Height)
	}
	return h, nil
}

// pools is table I.
func (s *swapping) pools() (Table, error) {
	t := Table{Name: "smartpool-table-1", Title: "SmartPool: competitive ratio, the footprint over the load, batch 100",
		Notes: []string{"online is best fit without knowledge of the future, in place of CnMem; the load is " +
			"what cudaMalloc needs; the times of malloc calls are not measured",
			"of table I the text gives VGG13's ratio, the worst with 1.016, and that SmartPool is up to 13.3 % " +
				"below CnMem, with VGG11"},
		Free: &Free{Columns: []string{"network", "paper", "passes", "load_mb", "smartpool_ratio", "online_ratio",
			"saved_percent", "paper_smartpool_ratio", "paper_saved_percent"}}}
	ratios, saved := map[string]any{"VGG13": 1.016}, map[string]any{"VGG11": 13.3}
	for _, n := range s.networks() {
		for _, rewrites := range []string{"all", passes.None} {
			r, err := s.request(&n, s.machines[0], swapBatch, rewrites)
			if err != nil {
				return t, err
			}
			h, err := s.heights(r)
			if err != nil {
				return t, err
			}
			t.Free.Add(n.name(), n.paper, rewrites, inMB(h.load), float64(h.smartpool)/float64(h.load),
				float64(h.online)/float64(h.load), reduction(h.online, h.smartpool), ratios[n.paper], saved[n.paper])
		}
	}
	return t, nil
}
