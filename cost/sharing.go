package cost

import (
	"math"
	"time"
)

// Sharing is how the jobs on a device share its compute unit. An op is a launch, which competes with nothing, and work.
// The zero value is a device on which jobs do not slow one another down.
type Sharing struct {
	Launch time.Duration `json:"launch_ns"` // of an op: the part of its time, up to this, in which it does no work
	Share  float64       `json:"share"`     // of the unit that a job at work uses, if no other does; 0: none
}

// Sharing returns how jobs share the device.
func (f Facts) Sharing() Sharing { return Sharing{f.Launch, 1 / float64(max(1, f.Parallel))} }

// Use is what an iteration of a job takes alone on a device.
type Use struct{ Launch, Work time.Duration }

// Add counts an op that takes so long alone.
func (s Sharing) Add(u *Use, alone time.Duration) {
	launch := min(alone, s.Launch)
	u.Launch, u.Work = u.Launch+launch, u.Work+alone-launch
}

// Use adds up the ops of an iteration.
func (s Sharing) Use(alone []time.Duration) Use {
	var u Use
	for _, a := range alone {
		s.Add(&u, a)
	}
	return u
}

// Busy is the part of an iteration alone that is work, 0 to 1.
func (u Use) Busy() float64 { return u.busy(1) }

// busy is the part of an iteration that is work when that takes so many times as long as alone.
func (u Use) busy(stretch float64) float64 {
	work := float64(stretch * float64(u.Work))
	if work <= 0 {
		return 0
	}
	return work / (float64(u.Launch) + work)
}

// Stretch returns how many times as long as alone work takes beside others that are at work, so many in the mean.
func (s Sharing) Stretch(others float64) float64 {
	return max(1, float64(s.Share*others)+s.Share)
}

// Stretches returns, for each of some jobs that run together, how many times as long as alone its work takes.
func (s Sharing) Stretches(jobs []Use) []float64 {
	stretches := s.others(jobs, quickMixes)
	for i, others := range stretches {
		stretches[i] = s.Stretch(others)
	}
	return stretches
}

// Beside returns how long an op takes beside others that is so long alone: its launch, and its work by the stretch.
func (s Sharing) Beside(alone time.Duration, stretch float64) time.Duration {
	launch := min(alone, s.Launch)
	return launch + time.Duration(math.Round(stretch*float64(alone-launch)))
}

// Alone is the inverse of Beside.
func (s Sharing) Alone(beside time.Duration, stretch float64) time.Duration {
	launch := min(beside, s.Launch)
	return launch + time.Duration(math.Round(float64(beside-launch)/stretch))
}

// maxMixes and quickMixes limit the time of Others and of Stretches, which is asked for at each turn of jobs' courses.
const (
	maxMixes   = 1 << 14
	quickMixes = 1 << 7
)

// Others returns, for each of some jobs that run together, how many of the others are at work in the mean while it is.
//
// Jobs alternate between launches and work, and share the unit evenly: a closed queueing network of one server with
// processor sharing and one of delays, in which a job that begins work finds the others as they would be without it
// (Reiser and Lavenberg, Mean-Value Analysis of Closed Multichain Queuing Networks, 1980). Equal jobs are one class, so
// that the means follow from those of all smaller mixes of classes. Where there are too many of these, they follow from
// those of the mixes with one job less, and these from the mean of all their jobs less the job's own, which is a little
// too many.
func (s Sharing) Others(jobs []Use) []float64 { return s.others(jobs, maxMixes) }

// others is Others by at most so many mixes.
func (s Sharing) others(jobs []Use, most int) []float64 {
	class := make(map[Use]int)
	var uses []Use
	var count []int
	mixes := 1
	for _, u := range jobs {
		c, known := class[u]
		if !known {
			c = len(uses)
			class[u], uses, count = c, append(uses, u), append(count, 0)
		}
		count[c]++
	}
	for _, n := range count {
		if mixes *= n + 1; mixes > most {
			break
		}
	}
	mean := s.byMixes
	if mixes > most {
		mean = s.byLess
	}
	of := mean(uses, count)
	others := make([]float64, len(jobs))
	for i, u := range jobs {
		others[i] = of[class[u]]
	}
	return others
}

// byMixes works out Others per class from smaller mixes. A mix has the number sum(k[c] * stride[c]), where k[c] is how
// many jobs of the class it has.
func (s Sharing) byMixes(uses []Use, count []int) []float64 {
	stride, mixes := make([]int, len(uses)), 1
	for c, n := range count {
		stride[c] = mixes
		mixes *= n + 1
	}
	working := make([]float64, mixes) // per mix: how many of its jobs are at work in the mean
	for mix := 1; mix < mixes; mix++ {
		for c, u := range uses {
			if k := mix / stride[c] % (count[c] + 1); k > 0 {
				working[mix] += float64(float64(k) * u.busy(s.Stretch(working[mix-stride[c]])))
			}
		}
	}
	others := make([]float64, len(uses))
	for c := range uses {
		others[c] = working[mixes-1-stride[c]]
	}
	return others
}

// byLess works out Others per class from what byMean says of the mixes that have one job less.
func (s Sharing) byLess(uses []Use, count []int) []float64 {
	others := make([]float64, len(uses))
	met := make([]float64, len(uses))
	for c := range uses {
		count[c]--
		s.byMean(uses, count, met)
		for o, u := range uses {
			others[c] += float64(float64(count[o]) * u.busy(s.Stretch(met[o])))
		}
		count[c]++
	}
	return others
}

// byMean works out Others per class from the mean of all jobs, in rounds that come nearer to it.
func (s Sharing) byMean(uses []Use, count []int, others []float64) {
	const rounds, near = 64, 1e-6
	clear(others)
	var before float64
	for range rounds {
		var working float64
		for c, u := range uses {
			working += float64(float64(count[c]) * u.busy(s.Stretch(others[c])))
		}
		for c, u := range uses {
			others[c] = max(0, working-u.busy(s.Stretch(others[c])))
		}
		if math.Abs(working-before) < near {
			return
		}
		before = working
	}
}
