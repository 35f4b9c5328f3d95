package predictor

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// SplitRandom takes a share of the samples out by chance. Order is kept.
func SplitRandom(samples []Sample, share float64, seed uint64) (train, test []Sample) {
	rng := rand.New(rand.NewPCG(seed, 0x73706c74))
	for _, s := range samples {
		if rng.Float64() < share {
			test = append(test, s)
		} else {
			train = append(train, s)
		}
	}
	return train, test
}

// SplitFamily takes the samples of one family of devices out.
func SplitFamily(samples []Sample, devices []Device, family string) (train, test []Sample) {
	for _, s := range samples {
		if devices[s.Device].Family() == family {
			test = append(test, s)
		} else {
			train = append(train, s)
		}
	}
	return train, test
}

// SplitLarge takes out, of each kind, the share of samples that take longest by the roofline.
func SplitLarge(samples []Sample, devices []Device, share float64) (train, test []Sample) {
	times := make(map[string][]float64)
	for i := range samples {
		s := &samples[i]
		times[s.Kind] = append(times[s.Kind], devices[s.Device].Roofline(&s.Call))
	}
	for _, t := range times {
		slices.SortFunc(t, func(a, b float64) int { return cmp.Compare(a, b) })
	}
	for _, s := range samples {
		if devices[s.Device].Roofline(&s.Call) > quantile(times[s.Kind], 1-share) {
			test = append(test, s)
		} else {
			train = append(train, s)
		}
	}
	return train, test
}

// Relevant are the samples that are learned together with some kinds; all, if none are named.
func Relevant(samples []Sample, kinds []string) []Sample {
	if len(kinds) == 0 {
		return samples
	}
	var wanted []string
	for _, group := range groupsOf(samples) {
		if slices.ContainsFunc(group, func(k string) bool { return slices.Contains(kinds, k) }) {
			wanted = append(wanted, group...)
		}
	}
	return slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return !slices.Contains(wanted, s.Kind) })
}
