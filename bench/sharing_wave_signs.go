package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// waveFreedSigns are what section 3.2 says of figure 2.
func waveFreedSigns(rows []SharingRow) []Sign {
	return []Sign{{Claim: "freed after computation memory explodes (13 against 5.4 GB)",
		Holds: rows[1].Value > 1.5*rows[0].Value, Got: fmt.Sprintf("%.1f against %.1f GB", rows[1].Value,
			rows[0].Value)}}
}

// waveLargestSigns are what sections 5.2 and 5.5 say.
func waveLargestSigns(rows []SharingRow) (signs []Sign) {
	of := func(device, jobs, way string) float64 {
		for _, r := range rows {
			if r.Device == device && r.Jobs == jobs && r.Sharing == way && r.Measure == "largest batch, of alone" {
				return r.Value
			}
		}
		return math.NaN()
	}
	gain, above, all := math.Inf(1), true, []float64{}
	var lowest string
	low := math.Inf(1)
	for _, m := range waveModels {
		jobs := m.model + ":2"
		p := of(waveLarge, jobs, byWaterwave)
		if math.IsNaN(p) { // it was not measured
			continue
		}
		gain = min(gain, p/of(waveLarge, jobs, byHalves))
		above = above && of(waveLarge, jobs, byGates) >= p
		all = append(all, p)
		if p < low {
			low, lowest = p, m.model
		}
	}
	signs = append(signs, Sign{Claim: "waterwave: a batch of .77 to .97 of that alone", Holds: slices.Min(all) > .7,
		Got: fmt.Sprintf("%.3f to %.3f", slices.Min(all), slices.Max(all))},
		Sign{Claim: "waterwave: least for Tacotron2", Holds: lowest == "tacotron2",
			Got: fmt.Sprintf("%s, %.3f", lowest, low)},
		Sign{Claim: "waterwave: about 1.5 times the batch of two node groups (waterwave-s)", Holds: gain > 1.2,
			Got: fmt.Sprintf("at least %.2f times", gain)},
		Sign{Claim: "gates: at least the batch of waterwave, all networks", Holds: above, Got: "every row"})
	if small := of(waveSmall, "bert:2", byWaterwave); !math.IsNaN(small) {
		signs = append(signs, Sign{Claim: "waterwave: less on 16 GB than on 32 GB for BERT (.800, .899)",
			Holds: small < of(waveLarge, "bert:2", byWaterwave),
			Got:   fmt.Sprintf("%.3f, %.3f", small, of(waveLarge, "bert:2", byWaterwave))})
	}
	two, three, four := of(waveLarge, "resnet50:2", byWaterwave), of(waveLarge, "resnet50:3", byWaterwave),
		of(waveLarge, "resnet50:4", byWaterwave)
	return append(signs, Sign{Claim: "waterwave: the batch falls with 2, 3 and 4 ResNet-50 (.916, .828, .764)",
		Holds: two >= three && three >= four, Got: fmt.Sprintf("%.3f, %.3f, %.3f", two, three, four)},
		Sign{Claim: "gates: four ResNet-50 have .98 of the batch alone",
			Holds: of(waveLarge, "resnet50:4", byGates) >= .98,
			Got:   fmt.Sprintf("%.3f", of(waveLarge, "resnet50:4", byGates))})
}

// waveTwoSigns are what section 5.2 says of table 2.
func waveTwoSigns(rows []SharingRow) []Sign {
	above := true
	for _, r := range rows {
		above = above && *r.Gates >= r.Value-.001
	}
	low := least(chosen{"", "", byWaterwave, ""}.values(rows))
	return []Sign{{Claim: "waterwave: about the batches of two equal networks", Holds: low > .7,
		Got: fmt.Sprintf("at least %.2f of alone", low)},
		{Claim: "gates: at least the batches of waterwave", Holds: above, Got: "every row"}}
}

// waveSameSigns are what section 5.3 says of figure 7.
func waveSameSigns(rows []SharingRow) (signs []Sign) {
	for _, way := range []string{byWaterwave, byGates} {
		best := func(model string) float64 {
			return slices.Max(append(chosen{"", model, way, vsTemporal}.values(rows), 0))
		}
		rnn, r152, bert := best("tacotron2"), best("resnet152"), best("bert")
		signs = append(signs, Sign{Claim: way + ": gains most for Tacotron2 (1.49), less for ResNet-152 (1.14)",
			Holds: rnn > r152, Got: fmt.Sprintf("%.2f, %.2f; BERT %.2f", rnn, r152, bert)})
		mps := func(model string) (most float64) {
			for _, r := range (chosen{"", model, way, vsTemporal}).of(rows) {
				most = max(most, r.MPS)
			}
			return most
		}
		r50, b, t := mps("resnet50"), mps("bert"), mps("tacotron2")
		signs = append(signs, Sign{Claim: way + ": beyond the memory faster than MPS: ResNet-50 (12), BERT (6.8), " +
			"Tacotron2 (3.1), in this order", Holds: falls(r50, b, t), Got: fmt.Sprintf("%.1f, %.1f, %.1f", r50, b, t)})
	}
	return signs
}

// waveSplitsSigns are what section 5.4 says of figure 8.
func waveSplitsSigns(rows []SharingRow) (signs []Sign) {
	var inner, all []string
	for i := 0; i < len(rows); {
		to := i
		for to < len(rows) && rows[to].Jobs == rows[i].Jobs {
			to++
		}
		var values []float64
		for _, r := range rows[i:to] {
			values = append(values, r.Value)
		}
		best := slices.Index(values, slices.Max(values))
		size := strings.Fields(strings.SplitN(rows[i+best].Measure, "split ", 2)[1])[0]
		all = append(all, fmt.Sprintf("%s %s GB", rows[i].Jobs, size))
		if values[len(values)-1] < values[best] && values[0] <= values[best] {
			inner = append(inner, rows[i].Jobs)
		}
		i = to
	}
	return []Sign{{Claim: "the largest batch falls where node groups are large, in each network",
		Holds: len(inner) == len(all), Got: "the best is at " + strings.Join(all, ", ")}}
}
