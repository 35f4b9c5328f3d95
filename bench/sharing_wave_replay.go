package bench

import (
	"cmp"
	"fmt"
	"time"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models/task"
)

// waveSplits is figure 8.
func waveSplits(quick bool) (scenes []sharingScene) {
	sizes := waveSplitSizes
	if quick {
		sizes = []int{2, 6, 12}
	}
	for k, m := range waveModels {
		if quick && k > 1 && m.model != "bert" || m.model == "tacotron2" {
			continue
		}
		scenes = append(scenes, func(b *sharingBench) (*sharingResult, error) {
			n := trained{model: m.model, optimizer: m.optimizer, copies: 2}
			alone, err := b.largestWithin(waveLarge, n, percent(waveLarge, 100))
			if err != nil {
				return nil, err
			}
			gates, err := b.largestCopies(waveLarge, byGates, nil, n, alone.batch)
			if err != nil {
				return nil, err
			}
			r := &sharingResult{}
			for _, gb := range sizes {
				batch, err := b.largestCopies(waveLarge, byWaterwave, []int64{int64(gb) * 1e9}, n, alone.batch)
				if err != nil {
					return nil, err
				}
				n := n
				n.batch = max(1, batch)
				j, err := b.memory(waveLarge, n)
				if err != nil {
					return nil, err
				}
				run := round([]*streamed{j.streamed, j.streamed}, int64(percent(waveLarge, 100)), int64(gb)*1e9)
				row := waveRow("waterwave-8", waveLarge, m.model+":2", byWaterwave, batch, alone.batch, nil)
				row.Measure = fmt.Sprintf("largest batch, of alone, split %d GB (%d pairs, %d forced syncs)", gb,
					run.Pairs, run.Forced)
				row.Gates = pointer(float64(gates) / float64(alone.batch))
				r.rows = append(r.rows, row)
			}
			return r, nil
		})
	}
	return scenes
}

// waveFreed is figure 2.
func waveFreed(b *sharingBench) (*sharingResult, error) {
	n, err := b.largestWithin(waveSmall, trained{model: "resnet50", optimizer: autodiff.SGD{}}, 5_400_000_000)
	if err != nil {
		return nil, err
	}
	m, err := b.memory(waveSmall, n)
	if err != nil {
		return nil, err
	}
	tasks, err := task.Load([]string{n.model}, n.settings())
	if err != nil {
		return nil, err
	}
	f, g := sharingFacts(waveSmall), tasks[0].Graph
	takes := make([]time.Duration, len(g.Ops))
	for op := range g.Ops {
		takes[op] = f.Roofline(g.Cost(graph.OpID(op)))
	}
	const peakAt = 50 * time.Millisecond
	at := m.streamed.freed(1, takes, false).At // in steps
	dispatch := peakAt / cmp.Or(at, 1)
	r := &sharingResult{}
	for _, of := range []struct {
		when     string
		computed bool
		peak     float64
	}{{"scheduling", false, 5.4}, {"computation", true, 13}} {
		run := m.streamed.freed(dispatch, takes, of.computed)
		row := SharingRow{Figure: "waterwave-2", Device: waveSmall, Batch: fmt.Sprint(n.batch),
			Measure: fmt.Sprintf("GB at the peak, freed after %s, at %v", of.when, run.At.Round(time.Millisecond)),
			Value:   float64(run.Peak) / 1e9, Paper: pointer(of.peak), Gates: pointer(float64(m.peak) / 1e9),
			ShareRow: ShareRow{Jobs: "resnet50:1", Sharing: ownArenas, Capacity: percent(waveSmall, 100),
				Touched: run.Peak}}
		r.rows = append(r.rows, row)
	}
	return r, nil
}
