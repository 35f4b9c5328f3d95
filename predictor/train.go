package predictor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Options say how a model is trained. The zero value is the recommended setting.
type Options struct {
	Effort   float64 // epochs, relative to the recommended ones; 0: 1
	Nets     int     // networks per group, whose mean is taken; 0: 1
	Drop     float64 // share of samples shown without the identity of their device; 0: 0.3
	Hidden   []int   // sizes of the hidden layers; nil: by the form
	Seed     uint64
	Progress func(Progress) // may be nil
}

// Progress tells how far training is.
type Progress struct {
	Group string  // forms and kinds that are being trained
	Done  float64 // share of all the work
	Loss  float64 // the loss of the last epoch, which is about the mean absolute error of the logarithm
}

// recipes are the recommended settings per form.
var recipes = [forms]struct {
	hidden []int
	rows   int // seen in all epochs together, unless that is under 10 epochs or over 200
}{
	Gemm:   {[]int{128, 128, 128}, 2000e3},
	Conv:   {[]int{160, 160, 160}, 2000e3},
	Stream: {[]int{64, 64, 64}, 2000e3},
}

// Train makes a model of samples on devices.
func Train(samples []Sample, devices []Device, o Options) (*Model, error) {
	o.Effort, o.Nets, o.Drop = cmp.Or(o.Effort, 1), cmp.Or(o.Nets, 1), cmp.Or(o.Drop, 0.3)
	m := &Model{Devices: launchTimes(samples, devices)}
	devices = fillLaunches(m.Devices)
	var jobs []*task
	var all, done float64
	for _, kinds := range groupsOf(samples) {
		t := newTask(kinds, samples, devices)
		jobs = append(jobs, t)
		all += t.plan(&o)
	}
	if len(jobs) == 0 {
		return nil, errNoSamples
	}
	for _, t := range jobs {
		for net := range o.Nets {
			f := t.fitting
			f.seed = o.Seed + uint64(net)
			f.progress = func(epoch int, loss float64) {
				if done += t.cost; o.Progress != nil {
					o.Progress(Progress{t.name(), done / all, loss})
				}
			}
			layers, err := fit(&t.table, f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name(), err)
			}
			t.group.Nets = append(t.group.Nets, layers)
		}
		t.group.Seen = max(0, t.group.lateness(t.held, m.Devices))
		if err := t.leaveOut(samples, m.Devices, &o); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name(), err)
		}
		m.Groups = append(m.Groups, t.group)
	}
	return m, nil
}

// task is a group that is to be trained.
type task struct {
	group   Group
	table   table
	held    []Sample // back, to see how wide p95 is to be
	fitting fitting
	cost    float64 // Cost of an epoch.
}

func (t *task) name() string {
	if kinds := t.group.Kinds; len(kinds) == 1 {
		return kinds[0]
	}
	return t.group.Form.String()
}

// apart are kinds with a group of their own: shared with linear, both do worse.
var apart = []string{"bmm"}

// groupsOf lists the kinds of samples by the groups that they are learned in: one per form, but for those apart.
func groupsOf(samples []Sample) [][]string {
	groups := make(map[string][]string)
	for i := range samples {
		s := &samples[i]
		key := s.Form.String()
		if slices.Contains(apart, s.Kind) {
			key = s.Kind
		}
		if !slices.Contains(groups[key], s.Kind) {
			groups[key] = append(groups[key], s.Kind)
		}
	}
	var all [][]string
	for _, key := range sorted(groups) {
		slices.Sort(groups[key])
		all = append(all, groups[key])
	}
	return all
}

// newTask gathers the samples of some kinds, of which there are some.
func newTask(kinds []string, samples []Sample, devices []Device) *task {
	t := &task{group: Group{Kinds: kinds}}
	g := &t.group
	var mine []*Sample
	of := 0
	for i := range samples {
		if s := &samples[i]; slices.Contains(kinds, s.Kind) {
			if of++; of%holdBack == 0 {
				t.held = append(t.held, *s)
				continue
			}
			mine, g.Form = append(mine, s), s.Form
			if f := devices[s.Device].Family(); !slices.Contains(g.Families, f) {
				g.Families = append(g.Families, f)
			}
		}
	}
	slices.Sort(g.Families)
	for _, f := range g.Families {
		i := slices.IndexFunc(mine, func(s *Sample) bool { return devices[s.Device].Family() == f })
		g.Like = append(g.Like, devices[mine[i].Device])
	}
	g.Rows = len(mine)
	g.fitScales(mine, devices)
	g.measureReach(mine, devices)
	for _, s := range mine {
		d := &devices[s.Device]
		t.table.x, _ = g.appendRow(t.table.x, d, &s.Call, slices.Index(g.Families, d.Family()))
		t.table.y = append(t.table.y, float32(math.Log(s.Seconds/devices[s.Device].baseSeconds(&s.Call))))
	}
	t.table.width = len(t.table.x) / len(mine)
	t.table.secret = [2]int{t.table.width - len(g.Families), t.table.width}
	return t
}

// plan settles how the task is trained, and returns the cost of it.
func (t *task) plan(o *Options) float64 {
	r := recipes[t.group.Form]
	hidden := r.hidden
	if o.Hidden != nil {
		hidden = o.Hidden
	}
	rows := len(t.table.y)
	epochs := max(1, int(math.Round(o.Effort*float64(min(max(r.rows/rows, 10), 200)))))
	t.fitting = fitting{hidden: hidden, epochs: epochs, batch: min(256, max(16, rows/32)), rate: 2e-3, drop: o.Drop}
	width := t.table.width
	for _, h := range append(slices.Clone(hidden), outputs) {
		t.cost += float64(rows) * float64(width) * float64(h)
		width = h
	}
	return t.cost * float64(epochs*o.Nets)
}

// fitScales works out mean, spread and range of each feature.
func (g *Group) fitScales(samples []*Sample, devices []Device) {
	var r row
	var sum, square []float64
	for _, s := range samples {
		r.x = r.x[:0]
		r.features(&devices[s.Device], &s.Call)
		if sum == nil {
			sum, square = make([]float64, len(r.x)), make([]float64, len(r.x))
			g.Low, g.High = slices.Clone(r.x), slices.Clone(r.x)
		}
		for i, v := range r.x {
			sum[i] += float64(v)
			square[i] += float64(v) * float64(v)
			g.Low[i], g.High[i] = min(g.Low[i], v), max(g.High[i], v)
		}
	}
	n := float64(len(samples))
	for i := range sum {
		mean := sum[i] / n
		g.Mean = append(g.Mean, float32(mean))
		g.Scale = append(g.Scale, float32(math.Sqrt(max(square[i]/n-mean*mean, 0))))
		if g.Scale[i] < 1e-3 {
			g.Scale[i] = 1 // it never changed
		}
	}
}

// measureReach takes the median of latency over base of the ops that take longest by the roofline, per family and
// bound.
func (g *Group) measureReach(samples []*Sample, devices []Device) {
	large := slices.Clone(samples)
	slices.SortStableFunc(large, func(a, b *Sample) int {
		return cmp.Compare(devices[b.Device].Roofline(&b.Call), devices[a.Device].Roofline(&a.Call))
	})
	large = large[:max(1, len(large)/4)]
	ratios := make([][2][]float64, len(g.Families)+1)
	for _, s := range large {
		d := &devices[s.Device]
		ratio := s.Seconds / d.baseSeconds(&s.Call)
		for _, f := range []int{slices.Index(g.Families, d.Family()), len(g.Families)} {
			b := boundBy(d, &s.Call)
			ratios[f][b] = append(ratios[f][b], ratio)
		}
	}
	for _, r := range ratios {
		g.Reach = append(g.Reach, [2]float64{median(r[0]), median(r[1])})
	}
}

// median of some numbers, which it sorts; 1 of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 1
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// holdBack: one sample in holdBack is held back from training, to calibrate p95.
const holdBack = 50

// launchTimes estimates the launch time of each device: the latency that half a percent of its stream samples are
// below. 0 for a device without such samples.
func launchTimes(samples []Sample, devices []Device) []Device {
	const enough = 200
	streams := make([][]float64, len(devices))
	for i := range samples {
		if s := &samples[i]; s.Form == Stream {
			streams[s.Device] = append(streams[s.Device], s.Seconds)
		}
	}
	known := slices.Clone(devices)
	for i := range known {
		if d := &known[i]; d.Launch == 0 && len(streams[i]) >= enough {
			slices.Sort(streams[i])
			d.Launch = max(durationOf(quantile(streams[i], 0.005)), time.Microsecond)
		}
	}
	return known
}

// fillLaunches fills in launch times that were not measured with the usual one.
func fillLaunches(devices []Device) []Device {
	known := slices.Clone(devices)
	usual := usualLaunch(devices)
	for i := range known {
		known[i].Launch = cmp.Or(known[i].Launch, usual)
	}
	return known
}

// usualLaunch is the median of the known launch times.
func usualLaunch(devices []Device) time.Duration {
	const usual = 25 * time.Microsecond // on a GPU
	var known []time.Duration
	for i := range devices {
		if l := devices[i].Launch; l > 0 {
			known = append(known, l)
		}
	}
	if len(known) == 0 {
		return usual
	}
	slices.Sort(known)
	return known[len(known)/2]
}

// lateness is the 95th percentile of the logarithm of measured latency over predicted p95.
func (g *Group) lateness(samples []Sample, devices []Device) float64 {
	if len(samples) == 0 {
		return 0
	}
	late := make([]float64, len(samples))
	for i, p := range g.predictions(samples, devices) {
		late[i] = math.Log(samples[i].Seconds / p.P95.Seconds())
	}
	slices.Sort(late)
	return quantile(late, 0.95)
}

// predictions are those of samples of the group's kinds.
func (g *Group) predictions(samples []Sample, devices []Device) []Prediction {
	m := Model{Devices: devices, Groups: []Group{*g}}
	predictions := make([]Prediction, len(samples))
	for d := range devices {
		var calls []Call
		var at []int
		for i := range samples {
			if samples[i].Device == d {
				calls, at = append(calls, samples[i].Call), append(at, i)
			}
		}
		for i, p := range m.Predict(&devices[d], calls) {
			predictions[at[i]] = p
		}
	}
	return predictions
}

// Leaving a family out: the number of samples that train a network without it, of optimizer steps in all, and of the
// family's samples that are then predicted.
const (
	leftOutSamples = 12000
	leftOutRows    = 120e3
	leftOutTests   = 2000
	leftOutBatch   = 64
)

// caution is added to the largest error of a family that was left out, in the logarithm, for devices that are worse.
const caution = 0.2

// leaveOut measures the error for unseen devices by leaving out one family after the other.
func (t *task) leaveOut(samples []Sample, measured []Device, o *Options) error {
	g := &t.group
	if len(g.Families) < 3 {
		return nil
	}
	mine := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return !slices.Contains(g.Kinds, s.Kind) })
	for n, family := range g.Families {
		rest, out := SplitFamily(mine, measured, family)
		rest, out = thinned(rest, leftOutSamples), thinned(out, leftOutTests)
		unknown := slices.Clone(measured) // on hosts of which nothing is known either
		for i := range unknown {
			if unknown[i].Family() == family {
				unknown[i].Launch = 0
			}
		}
		less := newTask(g.Kinds, rest, fillLaunches(unknown))
		less.plan(o)
		f := less.fitting
		f.batch = min(f.batch, leftOutBatch)
		f.epochs = max(1, int(math.Round(o.Effort*leftOutRows/float64(len(rest)))))
		f.seed = o.Seed + uint64(n)
		layers, err := fit(&less.table, f)
		if err != nil {
			return err
		}
		less.group.Nets = [][]layer{layers}
		g.Unseen = max(g.Unseen, caution+less.group.lateness(out, unknown))
	}
	return nil
}

// thinned picks evenly spaced samples, limit of them at most.
func thinned(samples []Sample, limit int) []Sample {
	if len(samples) <= limit {
		return samples
	}
	some := make([]Sample, limit)
	for i := range some {
		some[i] = samples[i*len(samples)/limit]
	}
	return some
}
