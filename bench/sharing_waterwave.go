package bench

import (
	"fmt"
	"strings"

	"tensile/graph/autodiff"
)

// Waterwave's machines, section 5.1.1, and the devices that stand for their GPUs.
const (
	waveLarge, waveSmall = "v100", "p100"

	waterwavePaper = "Waterwave (IEEE TPDS 2023)"
)

// byHalves is Waterwave-s: an iteration is two node groups, up to its peak and from there on.
const byHalves = "waterwave-s"

var waterwaveTables = []sharingTable{
	{"waterwave-2", waterwave + ", figure 2: the most memory of an iteration of ResNet-50, by when blocks are freed. " +
		"The batch and the host's time for a step are chosen such that memory is at its peak of 5.4 GB after 50 ms",
		oneScene(waveFreed), waveFreedSigns, nil},
	{"waterwave-t1", waterwave + ", table 1 and section 5.5: the largest batch of each of some copies, of the " +
		"largest alone", waveLargest, waveLargestSigns, nil},
	{"waterwave-t2", waterwave + ", table 2: the same of two networks", waveTwo, waveTwoSigns, nil},
	{"waterwave-7", waterwave + ", figure 7: throughput of two copies of a network", waveSame, waveSameSigns,
		waveSameSums},
	{"waterwave-8", waterwave + ", figure 8: the largest batch by how much memory a node group allocates", waveSplits,
		waveSplitsSigns, nil},
}

// waveSameSums are those that section 5.3 gives.
var waveSameSums = []sharingSum{
	{figure: "waterwave-7", jobs: "resnet152", way: byWaterwave, most: true, paper: 1.1427},
	{figure: "waterwave-7", jobs: "tacotron2", way: byWaterwave, most: true, paper: 1.49},
	{figure: "waterwave-7", jobs: "resnet50", way: byWaterwave, most: true, mps: true, paper: 12},
	{figure: "waterwave-7", jobs: "bert", way: byWaterwave, most: true, mps: true, paper: 6.8},
	{figure: "waterwave-7", jobs: "tacotron2", way: byWaterwave, most: true, mps: true, paper: 3.1}}

// waveModel is a network of Waterwave's with the largest batches that table 1 has: alone, Waterwave-s, Waterwave.
type waveModel struct {
	model     string
	optimizer autodiff.Optimizer
	v100      [3]float64
	p100      [3]float64
}

var waveModels = []waveModel{
	{"resnet50", autodiff.SGD{}, [3]float64{406, 266, 370}, [3]float64{190, 120, 176}},
	{"resnet152", autodiff.SGD{}, [3]float64{186, 118, 160}, [3]float64{86, 62, 78}},
	{"nasnet-mobile", autodiff.SGD{}, [3]float64{560, 316, 544}, [3]float64{280, 192, 260}},
	{"inceptionv3", autodiff.SGD{}, [3]float64{332, 204, 310}, [3]float64{160, 106, 150}},
	{"bert", autodiff.Adam{}, [3]float64{138, 88, 124}, [3]float64{60, 38, 48}},
	{"tacotron2", autodiff.Adam{}, [3]float64{198, 96, 152}, [3]float64{98, 48, 72}},
}

func (m *waveModel) known(device string) [3]float64 {
	if device == waveSmall {
		return m.p100
	}
	return m.v100
}

// waveSplitSizes are the split sizes of figure 8, in GB.
var waveSplitSizes = []int{1, 2, 4, 6, 8, 12}

// waveRow is a largest batch.
func waveRow(figure, device, jobs, way string, batch, alone int, paper *float64) SharingRow {
	return SharingRow{Figure: figure, Device: device, Batch: fmt.Sprint(batch), Measure: "largest batch, of alone",
		Value: float64(batch) / float64(max(1, alone)), Paper: paper,
		ShareRow: ShareRow{Jobs: jobs, Sharing: way, Capacity: percent(device, 100)}}
}

// waveLargest is table 1, and three and four ResNet-50.
func waveLargest(quick bool) (scenes []sharingScene) {
	devices := []string{waveLarge, waveSmall}
	if quick {
		devices = devices[:1]
	}
	for _, device := range devices {
		for _, m := range waveModels {
			if quick && (m.model == "inceptionv3" || m.model == "nasnet-mobile") {
				continue
			}
			scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
				known := m.known(device)
				return b.largestOf(device, m, 2, map[string]*float64{byHalves: pointer(known[1] / known[0]),
					byWaterwave: pointer(known[2] / known[0])})
			})
		}
	}
	for i, batch := range []float64{336, 310} {
		copies := 3 + i
		scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
			m := waveModels[0]
			return b.largestOf(waveLarge, m, copies, map[string]*float64{byWaterwave: pointer(batch / m.v100[0])})
		})
	}
	return scenes
}

func (b *sharingBench) largestOf(device string, m waveModel, copies int, paper map[string]*float64) (*sharingResult,
	error) {
	n := trained{model: m.model, optimizer: m.optimizer, copies: copies}
	alone, err := b.within(device, n, percent(device, 100))
	if err != nil {
		return nil, err
	}
	figure, jobs := "waterwave-t1", fmt.Sprintf("%s:%d", m.model, copies)
	if copies > 2 {
		figure = "waterwave-5.5"
	}
	row := waveRow(figure, device, m.model+":1", ownArenas, alone.batch, alone.batch, nil)
	row.Measure = "largest batch alone, of the paper's"
	row.Value = float64(alone.batch) / m.known(device)[0]
	r := &sharingResult{}
	if copies == 2 {
		r.rows = append(r.rows, row)
	}
	ways := []string{byHalves, byWaterwave, byGates}
	if copies > 2 {
		ways = ways[1:]
	}
	for _, way := range ways {
		batch, err := b.together(device, way, splitsOf(way), n, alone.batch)
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, waveRow(figure, device, jobs, way, batch, alone.batch, paper[way]))
	}
	gates := r.rows[len(r.rows)-1].Value
	for i := range r.rows {
		if r.rows[i].Sharing != ownArenas {
			r.rows[i].Gates = pointer(gates)
		}
	}
	if copies > 2 { // section 5.5 has the throughput, too
		n.batch = r.rows[0].batchNumber()
		s, err := b.scene(figure, device, percent(device, 100), n)
		if err != nil {
			return nil, err
		}
		more, err := s.rows(temporally, byWaterwave, byGates)
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, more...)
	}
	return r, nil
}

func (r *SharingRow) batchNumber() (batch int) {
	fmt.Sscan(r.Batch, &batch)
	return batch
}

// waveTwo is table 2: as much of the largest batch alone for both networks as fits.
func waveTwo(quick bool) (scenes []sharingScene) {
	for _, pair := range []struct {
		models [2]int
		paper  [2]float64
	}{{[2]int{0, 4}, [2]float64{358, 116}}, {[2]int{0, 5}, [2]float64{370, 150}},
		{[2]int{4, 5}, [2]float64{120, 150}}} {
		if quick && pair.models[1] == 5 {
			continue
		}
		scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
			var names []string
			var alone [2]trained
			for i, m := range pair.models {
				w := waveModels[m]
				n, err := b.within(waveLarge, trained{model: w.model, optimizer: w.optimizer}, percent(waveLarge, 100))
				if err != nil {
					return nil, err
				}
				alone[i], names = n, append(names, w.model+":1")
			}
			r := &sharingResult{}
			for _, way := range []string{byWaterwave, byGates} {
				share, err := largest(100, way == byWaterwave, func(percents int) (bool, error) { // of both
					var jobs []*memorized
					for _, n := range alone {
						n.batch = max(1, n.batch*percents/100)
						m, err := b.memory(waveLarge, n)
						if err != nil {
							return false, err
						}
						jobs = append(jobs, m)
					}
					return fit(way, percent(waveLarge, 100), splitsOf(way), jobs...), nil
				})
				if err != nil {
					return nil, err
				}
				for i, m := range pair.models {
					row := waveRow("waterwave-t2", waveLarge, strings.Join(names, " "), way, alone[i].batch*share/100,
						alone[i].batch, nil)
					row.Measure = "largest batch of " + waveModels[m].model + ", of alone"
					if way == byWaterwave {
						row.Paper = pointer(pair.paper[i] / waveModels[m].v100[0])
					}
					r.rows = append(r.rows, row)
				}
			}
			for i := range r.rows {
				r.rows[i].Gates = pointer(r.rows[2+i%2].Value)
			}
			return r, nil
		})
	}
	return scenes
}

// waveSame is figure 7: a batch of 32 or what takes a share of the memory.
func waveSame(quick bool) (scenes []sharingScene) {
	shares := []int{10, 45, 88}
	if quick {
		shares = []int{10, 88}
	}
	for _, m := range waveModels {
		for i, share := range shares {
			scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
				n := trained{model: m.model, optimizer: m.optimizer, copies: 2, batch: 32}
				var err error
				if m.model != "resnet152" || i > 0 {
					if n, err = b.within(waveLarge, n, percent(waveLarge, share)); err != nil {
						return nil, err
					}
				}
				s, err := b.scene("waterwave-7", waveLarge, percent(waveLarge, 100), n)
				if err != nil {
					return nil, err
				}
				r := &sharingResult{}
				r.rows, err = s.rows(temporally, withMPS, ownArenas, byWaterwave, byGates)
				for k := range r.rows {
					if m.model == "resnet152" && i == 0 && r.rows[k].Sharing == byWaterwave {
						r.rows[k].Paper = pointer(1.1427)
					}
				}
				return r, err
			})
		}
	}
	return scenes
}
