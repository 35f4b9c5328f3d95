package bench

import (
	"tensile/graph"
	"tensile/models/passes"
	"tensile/scheduler/rivals/autoswap"
)

// free is table II.
func (s *swapping) free() (Table, error) {
	t := Table{Name: "autoswap-table-2", Title: "AutoSwap: the largest reduction of the load at no overhead, batch 100",
		Notes: []string{
			"loads are of what the graph's tensors take in a slot, in MB of 1e6 bytes, without the pool",
			"the paper's framework keeps other tensors than our graphs do, so that absolute loads differ; passes all " +
				"are those of the planner that work in place",
			"of table II the text gives VGG16 and ResNet50; which form its ResNet50 has is not confirmed: ours with " +
				"images of 128 has residual stages that begin with 32 x 32 pixels",
		},
		Free: &Free{Columns: []string{"network", "paper", "device", "passes", "iteration_ms", "load_mb", "free_load_mb",
			"reduction_percent", "swaps", "paper_load_mb", "paper_free_load_mb", "paper_reduction_percent"}}}
	for _, n := range s.networks() {
		for _, rewrites := range []string{"all", passes.None} {
			for _, on := range s.machines {
				r, err := s.request(&n, on, swapBatch, rewrites)
				if err != nil {
					return t, err
				}
				err = s.withLoad(r, func(l *swapLoad) {
					c := l.WithoutOverhead(autoswap.Options{}, l.count)
					var paper any
					if n.load > 0 {
						paper = 100 * (n.load - n.free) / n.load
					}
					t.Free.Add(n.name(), n.paper, on.name, rewrites, float64(l.Length())/1e6, inMB(l.peak),
						inMB(c.Load),
						reduction(l.peak, c.Load), len(c.Swaps), inPaper(n.load), inPaper(n.free), paper)
				})
				if err != nil {
					return t, err
				}
			}
		}
	}
	return t, nil
}

// scores is figure 9.
func (s *swapping) scores() (Table, error) {
	t := Table{Name: "autoswap-figure-9", Title: "AutoSwap: overhead in percent over the load limit by score, " +
		"vgg16-cifar at batch 100",
		Notes: []string{
			"AOA stands out: it picks the largest activations, several of which are needed back within a millisecond",
			"limits are in percent of the load, as the paper's are of its 647 MB; 43.3 % are its 280 MB",
			"spread is between the largest and the smallest overhead of the four scores; the paper says less than 3",
			"bo is the mixture; it begins with the four scores alone, so that it is not above the least of them",
			"the paper gives no overhead at 69.1 % (447 MB), 7.3 ms at 54.1 % (350 MB), less than 20 % at all limits",
		},
		Free: &Free{Columns: []string{"device", "limit_percent", "limit_mb", "doa", "aoa", "wdoa", "swdoa", "bo",
			"bo_ms",
			"spread", "bo_at_most_least", "paper_ms"}}}
	limits := []float64{90, 80, 75, 69.1, 65, 61.8, 58, 54.1, 50, 46, 43.3}
	if s.quick {
		limits = []float64{80, 69.1, 61.8, 54.1, 43.3}
	}
	paper := map[float64]float64{69.1: 0, 54.1: 7.3}
	for _, on := range s.machines {
		r, err := s.request(&swapNetwork{model: "vgg16-cifar"}, on, swapBatch, "all")
		if err != nil {
			return t, err
		}
		err = s.withLoad(r, func(l *swapLoad) {
			for _, percent := range limits {
				limit := graph.Bytes(percent / 100 * float64(l.peak))
				line := []any{on.name, percent, inMB(limit)}
				var least, most float64
				for i, score := range []autoswap.Score{autoswap.DOA, autoswap.AOA, autoswap.WDOA, autoswap.SWDOA} {
					c, ok := l.Within(limit, autoswap.Options{Score: score}, l.count)
					if !ok {
						return
					}
					over := l.overhead(c)
					if line = append(line, over); i == 0 {
						least, most = over, over
					}
					least, most = min(least, over), max(most, over)
				}
				c, _ := l.Within(limit, autoswap.Options{}, l.count)
				var given any
				if ms, ok := paper[percent]; ok {
					given = ms
				}
				bo := l.overhead(c)
				line = append(line, bo, float64(c.Time-l.Length())/1e6, most-least, bo <= least, given)
				t.Free.Add(line...)
			}
		})
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// overheads is figure 11.
func (s *swapping) overheads() (Table, error) {
	t := Table{Name: "autoswap-figure-11", Title: "AutoSwap: overhead in percent over the reduction of the load, " +
		"batch 100",
		Notes: []string{"the paper has the reduction of the footprint, with SmartPool, and draws the figure without " +
			"numbers; its text says less than 15 % at a reduction of 60 %",
			"least_mb is the load with all that may be swapped away, least for the method"},
		Free: &Free{Columns: []string{"network", "device", "reduction_percent", "limit_mb", "least_mb",
			"overhead_percent"}}}
	steps := []int{20, 30, 40, 50, 60}
	for _, n := range s.networks() {
		for _, on := range s.machines {
			r, err := s.request(&n, on, swapBatch, "all")
			if err != nil {
				return t, err
			}
			err = s.withLoad(r, func(l *swapLoad) {
				_, least := l.Least(autoswap.Options{})
				for _, step := range steps {
					limit := l.peak * graph.Bytes(100-step) / 100
					var overhead any
					if c, ok := l.Within(limit, autoswap.Options{}, l.count); ok {
						overhead = l.overhead(c)
					}
					t.Free.Add(n.name(), on.name, step, inMB(limit), inMB(least), overhead)
				}
			})
			if err != nil {
				return t, err
			}
		}
	}
	return t, nil
}
