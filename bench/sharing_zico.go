package bench

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
)

// Zico's machines, section 7, and the devices that stand for their GPUs.
const (
	zicoLarge, zicoSmall = "v100", "rtx2080ti"

	zicoPaper = "Zico (USENIX ATC 2021)"
)

var zicoTables = []sharingTable{
	{"zico-3.1", zico + ", section 3.1: two ResNet-50 that take 70 % of a V100 each. The cost of a page fault is " +
		"chosen such that this number comes out", oneScene(zicoSeventy), zicoSeventySigns, nil},
	{"zico-5", zico + ", figures 5, 6 and 7: throughput of two copies of a network, and the memory that they hold. " +
		"The batches are small, as the networks of the paper leave the device idle; the capacity is such that the " +
		"demand is the paper's", zicoSmallBatches, zicoSameSigns, zicoSameSums},
	{"zico-5-full", zico + ", figure 5, with batches that fill the memory of the device", zicoSame, zicoSameSigns,
		zicoSameSums},
	{"zico-8", zico + ", figures 8 and 9: throughput of two networks, with small batches", zicoMixedSmall,
		zicoMixedSigns, zicoMixedSums},
	{"zico-8-full", zico + ", figure 8, with batches that fill the memory of the device", zicoMixed, zicoMixedSigns,
		zicoMixedSums},
	{"zico-10", zico + ", figure 10: two NASNet, whose budget changes", oneScene(zicoBudgets), zicoBudgetSigns, nil},
	{"zico-t1", zico + ", tables 1 and 2: what it costs to track and to share in small pieces", zicoPieces,
		zicoPiecesSigns, nil},
}

// The sums that sections 7.1 and 7.2 give.
var (
	zicoSameSums = []sharingSum{
		{figure: "zico-5", jobs: "nasnet-mobile", way: byZico, paper: 1.35},
		{figure: "zico-5", jobs: "gnmt", way: byZico, paper: 1.37},
		{figure: "zico-5", way: byZico, most: true, mps: true, paper: 4.7}}
	zicoMixedSums = []sharingSum{
		{figure: "zico-8", jobs: "rhn:1 gnmt", way: byZico, paper: 1.42},
		{figure: "zico-8", jobs: "nasnet-mobile:1 gnmt", way: byZico, paper: 1.46},
		{figure: "zico-8", jobs: "bert:1 gnmt", way: byZico, paper: 1.27},
		{figure: "zico-8", jobs: "nasnet-mobile:1 resnet110", way: byZico, paper: 1.15},
		{figure: "zico-8", way: byZico, mps: true, paper: 5.7},
		{figure: "zico-8", jobs: "rhn:1 gnmt", way: byZico, most: true, mps: true, paper: 5.1},
		{figure: "zico-8", jobs: "nasnet-mobile:1 gnmt", way: byZico, most: true, mps: true, paper: 8.3},
		{figure: "zico-8", jobs: "bert:1 gnmt", way: byZico, most: true, mps: true, paper: 6},
		{figure: "zico-8", jobs: "nasnet-mobile:1 resnet110", way: byZico, most: true, mps: true, paper: 6.5}}
)

func oneScene(scene sharingScene) func(bool) []sharingScene {
	return func(bool) []sharingScene { return []sharingScene{scene} }
}

// zicoWays are the ways of figures 5 and 8, and ours.
var zicoWays = []string{temporally, withMPS, ownArenas, byZico, byGates}

// percent returns a share of the memory of a device.
func percent(device string, share int) graph.Bytes {
	return sharingFacts(device).Memory * graph.Bytes(share) / 100
}

// zicoSeventy compares a job of two that exceed the device's memory with one that has half of its compute unit.
func zicoSeventy(b *sharingBench) (*sharingResult, error) {
	n := trained{model: "resnet50", optimizer: autodiff.SGD{}, copies: 2}
	n, err := b.within(zicoLarge, n, percent(zicoLarge, 70))
	if err != nil {
		return nil, err
	}
	s, err := b.scene("zico-3.1", zicoLarge, percent(zicoLarge, 100), n)
	if err != nil {
		return nil, err
	}
	row, err := s.row(withMPS)
	if err != nil {
		return nil, err
	}
	half := s.half(0)
	row.Measure, row.Paper = "times slower than alone on half of the device", pointer(8)
	row.Value = float64(s.ways[withMPS].iteration[0]) / half
	if row.Gates != nil {
		row.Gates = pointer(float64(s.ways[byGates].iteration[0]) / half)
	}
	return &sharingResult{rows: []SharingRow{*row}}, nil
}

// half is how many nanoseconds an iteration takes alone with half of the compute unit: its launches, and twice its
// work.
func (s *scene) half(job int) float64 {
	var u cost.Use
	f, g := s.options.Facts, s.tasks[job].Graph
	for op := range g.Ops {
		f.Sharing().Add(&u, f.Roofline(g.Cost(graph.OpID(op))))
	}
	return float64(u.Launch) + 2*float64(u.Work)
}

// zicoModels are the networks and their devices.
var zicoModels = []struct{ model, device string }{{"nasnet-mobile", zicoSmall}, {"resnet110-cifar", zicoSmall},
	{"resnet50", zicoLarge}, {"gnmt", zicoSmall}, {"rhn", zicoSmall}, {"bert", zicoLarge}}

// zicoBatches are the small batches: the paper's are in a picture.
var zicoBatches = map[string]int{"nasnet-mobile": 64, "resnet110-cifar": 64, "resnet50": 16, "gnmt": 16, "rhn": 64,
	"bert": 16}

// zicoSame are pairs of copies with batches that take shares of the memory each.
func zicoSame(quick bool) (scenes []sharingScene) {
	shares := []int{40, 65, 90}
	if quick {
		shares = []int{40, 90}
	}
	for _, of := range zicoModels {
		for i, share := range shares {
			if of.model == "rhn" { // beyond the limit at all batches
				share = max(share, 55+5*i)
			}
			scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
				n, err := b.within(of.device, trained{model: of.model, optimizer: autodiff.SGD{}, copies: 2},
					percent(of.device, share))
				if err != nil {
					return nil, err
				}
				s, err := b.scene("zico-5", of.device, percent(of.device, 100), n)
				if err != nil {
					return nil, err
				}
				rows, err := s.rows(zicoWays...)
				return &sharingResult{rows: rows}, err
			})
		}
	}
	return scenes
}

// zicoSmallBatches are pairs of copies with small batches, of which the capacity is a part.
func zicoSmallBatches(quick bool) (scenes []sharingScene) {
	for _, of := range zicoModels {
		demands := []int{80, 110, 140, 180}
		if of.model == "rhn" { // beyond the limit at all batches
			demands = []int{110, 125, 140, 180}
		}
		if quick {
			demands = demands[1:]
			demands = []int{demands[0], demands[2]}
			if of.model != "rhn" {
				demands = []int{80, 140}
			}
		}
		for _, demand := range demands {
			scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
				n := trained{model: of.model, optimizer: autodiff.SGD{}, copies: 2, batch: zicoBatches[of.model]}
				s, err := b.scene("zico-5", of.device, 0, n)
				if err != nil {
					return nil, err
				}
				s.demands(demand)
				return s.zicoFigures(demand == 140)
			})
		}
	}
	return scenes
}

// demands sets the capacity such that the arenas are so many percent of it together, or to the least that will do.
func (s *scene) demands(percent int) {
	s.capacity = max(s.least, s.paged(s.arenas*100/graph.Bytes(percent)))
}

// zicoFigures are figure 5, figure 6 and figure 7, which may be drawn.
func (s *scene) zicoFigures(draw bool) (*sharingResult, error) {
	var r sharingResult
	var err error
	if r.rows, err = s.rows(zicoWays...); err != nil {
		return nil, err
	}
	for _, way := range []string{byZico, byGates} {
		row, err := s.row(way)
		if err != nil {
			return nil, err
		}
		if s.ways[way] == nil || s.ways[byGates] == nil { // it does not fit
			continue
		}
		row.Figure, row.Measure = "zico-6", "memory held, of the device's"
		row.Value, row.Paper = float64(row.Touched)/float64(row.Capacity), nil
		row.Gates = pointer(float64(s.ways[byGates].touched) / float64(row.Capacity))
		r.rows = append(r.rows, *row)
		row.Figure, row.Measure = "zico-7", "wait of an iteration, of its time alone"
		row.Value = s.ways[way].gate * 1e6 / float64(s.solo[0])
		row.Gates = pointer(s.ways[byGates].gate * 1e6 / float64(s.solo[0]))
		if s.networks[0].model == "resnet110-cifar" && way == byZico {
			row.Paper = pointer(0) // TimeShift is about 0
		}
		r.rows = append(r.rows, *row)
		if draw && slices.Contains([]string{"resnet110-cifar", "bert"}, s.networks[0].model) {
			c := s.drawn(way, 3)
			c.Name = "zico-7-" + s.networks[0].model
			r.curves = append(r.curves, c)
		}
	}
	return &r, nil
}

// zicoPair is two networks that take shares of the memory, in percent.
type zicoPair struct {
	name   string // as figure 8 has it
	models [2]string
	shares [][2]int
}

var zicoPairs = []zicoPair{
	{"RH+GT", [2]string{"rhn", "gnmt"}, [][2]int{{60, 60}, {90, 30}, {90, 90}}},
	{"NN+GT", [2]string{"nasnet-mobile", "gnmt"}, [][2]int{{60, 60}, {30, 90}, {90, 90}}},
	{"BT+GT", [2]string{"bert", "gnmt"}, [][2]int{{60, 60}, {90, 30}, {90, 90}}},
	{"NN+RN", [2]string{"nasnet-mobile", "resnet110-cifar"}, [][2]int{{60, 60}, {90, 30}, {90, 90}}},
}

// zicoMixed are the pairs of figure 8: all together exceed the device's memory. Only NN(30 %)+GT(90 %) is in the text.
func zicoMixed(quick bool) (scenes []sharingScene) {
	for _, p := range zicoPairs {
		for i, shares := range p.shares {
			if quick && i > 1 {
				break
			}
			scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) { return b.zicoFull(p, shares) })
		}
	}
	return scenes
}

// zicoMixedSmall are the pairs of figure 8 with small batches.
func zicoMixedSmall(quick bool) (scenes []sharingScene) {
	demands := []int{105, 120, 150}
	if quick {
		demands = []int{120}
	}
	for _, p := range zicoPairs {
		for i, demand := range demands {
			scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
				var pair []trained
				for _, model := range p.models {
					pair = append(pair, trained{model: model, optimizer: autodiff.SGD{}, batch: zicoBatches[model]})
				}
				s, err := b.scene("zico-8", zicoSmall, 0, pair...)
				if err != nil {
					return nil, err
				}
				s.demands(demand)
				return s.zicoPair(p, i == 0)
			})
		}
	}
	return scenes
}

// zicoFull is a pair whose batches take shares of the memory.
func (b *sharingBench) zicoFull(p zicoPair, shares [2]int) (*sharingResult, error) {
	var pair []trained
	for k, model := range p.models {
		n, err := b.within(zicoSmall, trained{model: model, optimizer: autodiff.SGD{}}, percent(zicoSmall, shares[k]))
		if err != nil {
			return nil, err
		}
		pair = append(pair, n)
	}
	s, err := b.scene("zico-8", zicoSmall, percent(zicoSmall, 100), pair...)
	if err != nil {
		return nil, err
	}
	return s.zicoPair(p, false)
}

// zicoPair are figure 8 of a pair, how fast the first one is, and perhaps figure 9.
func (s *scene) zicoPair(p zicoPair, draw bool) (r *sharingResult, err error) {
	r = &sharingResult{}
	if r.rows, err = s.rows(zicoWays...); err != nil {
		return nil, err
	}
	ofFirst := func(run *sharedRun) float64 { return float64(2*s.solo[0]) / float64(run.iteration[0]) }
	ratio := func(run *sharedRun) float64 { return float64(run.iteration[0]) / float64(run.iteration[1]) }
	for _, way := range []string{ownArenas, byZico, byGates} {
		row, err := s.row(way)
		if err != nil {
			return nil, err
		}
		run, gates := s.ways[way], s.ways[byGates]
		if run == nil || gates == nil { // they do not fit
			continue
		}
		row.Measure = fmt.Sprintf("speed of %s vs temporal", p.models[0])
		row.Value, row.Gates = ofFirst(run), pointer(ofFirst(gates))
		r.rows = append(r.rows, *row)
		if p.name == "NN+RN" && way != ownArenas {
			row.Figure, row.Measure = "zico-9", "iterations of ResNet-110 an iteration of NASNet"
			row.Value, row.Gates = ratio(run), pointer(ratio(gates))
			r.rows = append(r.rows, *row)
			if draw {
				c := s.drawn(way, 3)
				c.Name = "zico-9"
				r.curves = append(r.curves, c)
			}
		}
	}
	return r, nil
}
