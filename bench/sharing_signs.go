package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// chosen are the rows that some conditions hold for; an empty string is for any.
type chosen struct{ figure, jobs, sharing, measure string }

func (c chosen) of(rows []SharingRow) (found []SharingRow) {
	for _, r := range rows {
		if (c.figure == "" || r.Figure == c.figure) && strings.HasPrefix(r.Jobs, c.jobs) &&
			(c.sharing == "" || r.Sharing == c.sharing) && strings.HasPrefix(r.Measure, c.measure) {
			found = append(found, r)
		}
	}
	return found
}

// values are those of the chosen rows.
func (c chosen) values(rows []SharingRow) (all []float64) {
	for _, r := range c.of(rows) {
		all = append(all, r.Value)
	}
	return all
}

func mean(all []float64) float64 {
	var sum float64
	for _, v := range all {
		sum += v
	}
	return sum / float64(max(1, len(all)))
}

func least(all []float64) float64 {
	low := math.Inf(1)
	for _, v := range all {
		low = min(low, v)
	}
	return low
}

// falls reports whether each is less than the one before it.
func falls(all ...float64) bool {
	return slices.IsSortedFunc(all, func(a, b float64) int {
		if a > b {
			return -1
		}
		return 1
	})
}

const vsTemporal = "throughput vs temporal"

// zicoSeventySigns are what section 3.1 says.
func zicoSeventySigns(rows []SharingRow) []Sign {
	v := rows[0].Value
	return []Sign{{Claim: "two ResNet-50 of 70 % each are 8 times slower", Holds: v > 7.5 && v < 8.5,
		Got: fmt.Sprintf("%.1f", v), Why: "calibrated: the cost of a page fault was chosen for it"}}
}

// zicoSameSigns are what section 7.1 says of figures 5 to 7.
func zicoSameSigns(rows []SharingRow) (signs []Sign) {
	for _, way := range []string{byZico, byGates} {
		vs := func(model string) []float64 { return chosen{"zico-5", model, way, vsTemporal}.values(rows) }
		low := least(chosen{"zico-5", "", way, vsTemporal}.values(rows))
		signs = append(signs, Sign{Claim: way + ": faster than temporal sharing, all networks, all batches",
			Holds: low > 1, Got: fmt.Sprintf("least %.3f", low)})
		rnn, cnn, bert := mean(slices.Concat(vs("gnmt"), vs("rhn"))),
			mean(slices.Concat(vs("nasnet"), vs("resnet110"), vs("resnet50"))), mean(vs("bert"))
		signs = append(signs, Sign{Claim: way + ": gains most for RNNs, then CNNs, then BERT",
			Holds: falls(rnn, cnn, bert), Got: fmt.Sprintf("%.2f, %.2f, %.2f", rnn, cnn, bert)})
		fit, best := true, 0.0
		for _, r := range (chosen{"zico-5", "", way, vsTemporal}).of(rows) {
			if r.Demand <= 1 {
				fit = fit && r.MPS > .95 && r.MPS < 1.05
			}
			best = max(best, r.MPS)
		}
		signs = append(signs, Sign{Claim: way + ": as fast as MPS while all fits", Holds: fit, Got: "within 5 %"},
			Sign{Claim: way + ": up to 4.7 times as fast as MPS beyond", Holds: best > 2,
				Got: fmt.Sprintf("up to %.1f", best), Why: "the paper's batches are in a picture"})
		waits := func(model string) (wait float64) { // where the arenas exceed the memory
			wait = math.NaN()
			for _, r := range (chosen{"zico-7", model, way, ""}).of(rows) {
				if math.IsNaN(wait) && r.Demand > 1.05 {
					wait = r.Value
				}
			}
			return wait
		}
		if small, large := waits("resnet110"), waits("bert"); !math.IsNaN(small + large) {
			signs = append(signs, Sign{Claim: way + ": ResNet-110 waits less than BERT, which waits in each iteration",
				Holds: small < large, Got: fmt.Sprintf("%.3f and %.3f of an iteration", small, large)})
		}
	}
	over := true
	for _, r := range (chosen{"zico-5", "rhn", withMPS, ""}).of(rows) {
		over = over && r.Demand > 1
	}
	return append(signs, Sign{Claim: "RHN exceeds the memory at all batches", Holds: over, Got: "every row",
		Why: "batches and capacities are ours: an arena takes 55 % at least"})
}

// zicoMixedSigns are what section 7.2 says of figures 8 and 9.
func zicoMixedSigns(rows []SharingRow) (signs []Sign) {
	for _, way := range []string{byZico, byGates} {
		vs := func(jobs string) float64 { return mean(chosen{"zico-8", jobs, way, vsTemporal}.values(rows)) }
		rhGT, nnGT, btGT, nnRN := vs("rhn:1 gnmt"), vs("nasnet-mobile:1 gnmt"), vs("bert:1 gnmt"),
			vs("nasnet-mobile:1 resnet110")
		got := fmt.Sprintf("RH+GT %.2f, NN+GT %.2f, BT+GT %.2f, NN+RN %.2f", rhGT, nnGT, btGT, nnRN)
		signs = append(signs, Sign{Claim: way + ": faster than temporal sharing (1.42, 1.46, 1.27, 1.15)",
			Holds: min(rhGT, nnGT, btGT, nnRN) > 1, Got: got},
			Sign{Claim: way + ": pairs with a network of low use gain more than NN+RN",
				Holds: min(rhGT, nnGT, btGT) > nnRN, Got: got,
				Why: "in our graphs ResNet-110 leaves more of the device " +
					"idle than GNMT, and what GNMT holds between iterations leaves less to share"})
		var mps []float64
		for _, r := range (chosen{"zico-8", "", way, vsTemporal}).of(rows) {
			mps = append(mps, r.MPS)
		}
		signs = append(signs, Sign{Claim: way + ": in all pairs faster than MPS (5.7 times on average)",
			Holds: least(mps) > 1, Got: fmt.Sprintf("%.1f on average, least %.1f", mean(mps), least(mps))})
		slow := chosen{"zico-8", "nasnet-mobile:1 gnmt", way, "speed of"}.of(rows)
		if i := 1; len(slow) > 1 && slow[i].Capacity == slow[0].Capacity { // batches that fill the memory
			s := Sign{Claim: way + ": NN(30 %)+GT(90 %): NASNet a little slower than by turns", Got: fmt.Sprintf("%.2f",
				slow[i].Value), Holds: slow[i].Value < 1}
			if way == byGates {
				s.Claim, s.Holds = way+": in NN(30 %)+GT(90 %) neither is slower than by turns", slow[i].Value >= 1
			}
			signs = append(signs, s)
		}
		if ratio := least(chosen{"zico-9", "", way, ""}.values(rows)); !math.IsInf(ratio, 1) {
			signs = append(signs, Sign{Claim: way + ": ResNet-110 does several iterations in one of NASNet",
				Holds: ratio > 1.5, Got: fmt.Sprintf("%.2f", ratio)})
		}
	}
	return signs
}

// zicoBudgetSigns are what section 7.3 says of figure 10.
func zicoBudgetSigns(rows []SharingRow) (signs []Sign) {
	for _, way := range []string{byZico, byGates} {
		gap := chosen{"zico-10", "", way, ""}.of(rows)
		if len(gap) != 4 {
			continue
		}
		signs = append(signs, Sign{Claim: way + ": no gap at 70 %, one at 50 %, none again, and no iteration is lost",
			Holds: gap[0].Value == 0 && gap[1].Value > 0 && gap[2].Value == 0, Got: fmt.Sprintf("%.1f, %.1f, %.1f ms",
				gap[0].Value, gap[1].Value, gap[2].Value)},
			Sign{Claim: way + ": more than 70 % changes nothing", Holds: gap[3].Value == 0 &&
				math.Abs(gap[3].Alternating/gap[2].Alternating-1) < .02, Got: fmt.Sprintf("throughput %.3f and %.3f",
				gap[2].Alternating, gap[3].Alternating)})
	}
	return signs
}

// zicoPiecesSigns are what section 7.4 says of tables 1 and 2.
func zicoPiecesSigns(rows []SharingRow) (signs []Sign) {
	ordered, worst, whole := true, "", math.Inf(1)
	low := math.Inf(1)
	for i := 0; i+4 < len(rows); i += 5 {
		ordered = ordered && rows[i].Value <= rows[i+1].Value && rows[i+1].Value <= rows[i+2].Value &&
			rows[i+3].Value <= rows[i+4].Value
		if rows[i].Value < low {
			low, worst = rows[i].Value, rows[i].Jobs
		}
		whole = min(whole, *rows[i].Gates)
	}
	return []Sign{{Claim: "larger pieces cost less, in each network", Holds: ordered, Got: "every row"},
		{Claim: "tracking every kernel costs GNMT most", Holds: worst == "gnmt:1",
			Got: fmt.Sprintf("%s, %.2f", worst, low)},
		{Claim: "the groups of gates cost less than 1 % in each network", Holds: whole > .99,
			Got: fmt.Sprintf("at least %.4f is left", whole)}}
}
