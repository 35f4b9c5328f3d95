package bench

import (
	"fmt"
	"time"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/plan/compile"
)

// gateCost is what a gate takes of the time of the thread that issues a job: to ask, to be granted, to hold other pages
// and to issue. It is by how much an iteration of executor.BenchmarkGate is longer with gates on the cpu device, by
// group: of the least of four each, on a machine with two cores and much else to do. That every page is backed and
// given back by the system is a part of it.
const gateCost = 40 * time.Microsecond

// zicoPieceSizes are what figures of tables 1 and 2 are about: by how much memory changes within a group, and what the
// paper gives for NASNet, ResNet-110, ResNet-50, GNMT, RHN and BERT, in percent.
var zicoPieceSizes = []struct {
	figure, piece string
	every         graph.Bytes // 0: every kernel
	paper         [6]float64
}{
	{"zico-t1", "every kernel", 0, [6]float64{78, 91, 97, 44, 94, 97}},
	{"zico-t1", "8 MB", 8e6, [6]float64{100, 100, 100, 89, 99, 99}},
	{"zico-t1", "256 MB", 256e6, [6]float64{100, 100, 100, 97, 99, 100}},
	{"zico-t2", "tensor", 1, [6]float64{94, 99, 98, 90, 96, 94}},
	{"zico-t2", "512 KB", 512 << 10, [6]float64{94, 99, 100, 97, 99, 99}},
}

// zicoPieces are tables 1 and 2: what gates cost a job alone that are this many, each gateCost.
func zicoPieces(quick bool) (scenes []sharingScene) {
	for k, of := range zicoModels {
		scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
			n := trained{model: of.model, optimizer: autodiff.SGD{}, batch: zicoBatches[of.model]}
			s, err := b.scene("", of.device, percent(of.device, 100), n)
			if err != nil {
				return nil, err
			}
			return s.pieces(k)
		})
	}
	return scenes
}

func (s *scene) pieces(paper int) (*sharingResult, error) {
	count := func(every graph.Bytes) (int, error) {
		page := s.planner.Page
		if every > 0 {
			page = min(page, max(every, 64<<10))
		}
		d, err := compile.ProveGroups(s.programs[0], page, every)
		if err != nil {
			return 0, err
		}
		return len(d.Groups().Body), nil
	}
	keeps := func(groups int) float64 {
		return float64(s.solo[0]) / float64(s.solo[0]+time.Duration(groups)*gateCost)
	}
	large, err := count(64 * graph.MiB)
	if err != nil {
		return nil, err
	}
	ours, err := count(0) // as compile.Divide recommends
	if err != nil {
		return nil, err
	}
	r := &sharingResult{}
	for _, p := range zicoPieceSizes {
		n := len(s.tasks[0].Graph.Ops)
		if p.every > 0 {
			if n, err = count(p.every); err != nil {
				return nil, err
			}
		}
		row := SharingRow{Figure: p.figure, Device: s.options.Facts.Name, Batch: s.batches(),
			Demand:  float64(s.arenas) / float64(s.capacity),
			Measure: fmt.Sprintf("throughput, tracked by %s (%d gates)", p.piece, n), Value: keeps(n),
			Gates: pointer(keeps(ours)), Paper: pointer(p.paper[paper] / 100),
			ShareRow: ShareRow{Jobs: s.set.Jobs[0], Sharing: byGates, Capacity: s.capacity, Least: s.least}}
		if p.figure == "zico-t2" {
			row.Measure = fmt.Sprintf("throughput, shared by %s (%d gates), of 64 MiB", p.piece, n)
			row.Value, row.Gates = keeps(n)/keeps(large), pointer(keeps(ours)/keeps(large))
		}
		r.rows = append(r.rows, row)
	}
	return r, nil
}
