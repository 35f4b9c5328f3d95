package predictor

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Model predicts latencies. It is not changed by predicting.
type Model struct {
	Devices []Device // known by their facts; those that were trained on are in the families of the groups
	Groups  []Group
	Note    string // What the model was trained on.
}

// Group is what was learned of some kinds of ops of one form.
type Group struct {
	Form     Form
	Kinds    []string
	Families []string // Families of devices in the training set.
	Like     []Device // one of each family
	Rows     int
	Mean     []float32 // per feature: to be subtracted,
	Scale    []float32 // to be divided by,
	Low      []float32 // and the range that was trained on
	High     []float32
	// per family, and one for all: latency over roofline time of large ops bound by arithmetic and by traffic
	Reach [][2]float64
	Nets  [][]layer // their mean is taken

	// What is added to the logarithm of the networks' p95 so that it is the 95th percentile: found with ops held back,
	// and by leaving families out.
	Seen   float64 `json:",omitempty"`
	Unseen float64 `json:",omitempty"`
}

// Prediction is what a model says of a call.
type Prediction struct {
	P50, P95 time.Duration
	Outside  float64 // how far outside of what was trained on, in doublings; 0: inside

	Equivalent bool // another kind stood for one that was not trained on
	Roofline   bool // nor was that one: it is the roofline
}

// Predict predicts calls on a device. A kind without training data is predicted as an equivalent kind, or by the
// roofline. Equal calls are predicted once. If the device's launch time was not measured, board and host are unknown:
// p50 assumes the usual launch time of other devices, p95 a host that takes twice as long and a slower board.
func (m *Model) Predict(d *Device, calls []Call) []Prediction {
	unknown := d.Launch == 0
	if unknown {
		other := *d
		other.Launch = usualLaunch(m.Devices)
		d = &other
	}
	out := make([]Prediction, len(calls))
	stand := make([]Call, len(calls))
	first := make(map[Call]int, len(calls))
	todo := make([][]int, len(m.Groups))
	for i, c := range calls {
		if _, twice := first[c]; twice {
			continue
		}
		first[c] = i
		stand[i] = c
		g, kind := m.groupFor(&c)
		if g < 0 {
			base := d.baseSeconds(&c)
			out[i] = Prediction{P50: durationOf(base), P95: durationOf(2 * base), Roofline: true}
			continue
		}
		stand[i].Kind, out[i].Equivalent = kind, kind != c.Kind
		todo[g] = append(todo[g], i)
	}
	for g, at := range todo {
		if len(at) > 0 {
			m.Groups[g].predict(d, stand, at, out)
		}
	}
	for i, c := range calls {
		if first[c] == i && unknown {
			out[i].P95 = durationOf(out[i].P95.Seconds()*board + d.Launch.Seconds())
		}
		out[i] = out[first[c]]
	}
	return out
}

// board is how many times slower another board with the same chip may be. In NeuSight's data the boards of training and
// test rows differ by 1.3 for T4, by 1.1 for A100.
const board = 1.2

// groupFor returns the group that predicts a call and the kind it is predicted as, its own if that was trained on.
// Group -1: no kind of the call's form was.
func (m *Model) groupFor(c *Call) (group int, kind string) {
	for _, kind := range append([]string{c.Kind}, equivalentKinds(c)...) {
		for i := range m.Groups {
			if g := &m.Groups[i]; g.Form == c.Form && slices.Contains(g.Kinds, kind) {
				return i, kind
			}
		}
	}
	return -1, ""
}

// loadSlack is by how much the load of a call may be above what was trained on: what a meter says is about so exact.
const loadSlack = 0.1

// KnowsLoad reports whether a call is of a kind that was trained on under about as much load as it has, and under less.
// Otherwise a prediction says nothing of what the load does to it: it is that for the load next to it.
func (m *Model) KnowsLoad(c *Call) bool {
	i, _ := m.groupFor(c)
	if i < 0 {
		return false
	}
	g := &m.Groups[i]
	load := slices.Index(featureNames(g.Form), "load")
	low, high := float64(g.Low[load]), float64(g.High[load])
	return high-low > loadSlack && c.Load <= high+loadSlack
}

// Device returns what the model knows of a device by name.
func (m *Model) Device(name string) (Device, error) {
	i := slices.IndexFunc(m.Devices, func(d Device) bool { return d.Name == name })
	if i < 0 {
		return Device{}, fmt.Errorf("the model does not know the device %q", name)
	}
	return m.Devices[i], nil
}

func durationOf(s float64) time.Duration { return max(1, time.Duration(math.Round(min(s, 1e6)*1e9))) }

// predict fills out for the calls at some places.
func (g *Group) predict(d *Device, calls []Call, at []int, out []Prediction) {
	var x []float32
	calls, wider := g.narrowRows(calls, at)
	far := make([]float64, len(at))
	sums := make([]float64, len(at)*outputs)
	for view, weight := range g.deviceWeights(d) {
		if weight == 0 {
			continue
		}
		family := view - 1
		x = x[:0]
		for i, c := range at {
			x, far[i] = g.appendRow(x, d, &calls[c], family)
		}
		for _, layers := range g.Nets {
			for i, v := range forwardPass(layers, x, len(at)) {
				sums[i] += weight * float64(v) / float64(len(g.Nets))
			}
		}
	}
	attained, band := g.attained(d), g.Unseen
	if slices.Contains(g.Families, d.Family()) {
		band = g.Seen
	}
	for i, c := range at {
		p50, p95 := sums[2*i], max(sums[2*i], sums[2*i+1])+band
		base := d.baseSeconds(&calls[c])
		p95 = p50 + (p95-p50)*(1+wider[i]/outsideScale)
		if far[i] > 0 { // towards the roofline, at what large ops reach of it
			near := 1 / (1 + far[i]/outsideScale)
			p50, p95 = near*p50+(1-near)*math.Log(attained[boundBy(d, &calls[c])]), p95-p50
			p95 = p50 + p95*(1+far[i]/outsideScale)
		}
		p := &out[c]
		p.Outside, p.P50 = max(far[i], wider[i]), durationOf(base*math.Exp(p50))
		p.P95 = max(p.P50, durationOf(base*math.Exp(p95)))
	}
}

// narrowRows replaces rows that are wider than any in the training data by more rows of the largest known width, with
// the same traffic: kernels for long rows are no slower per byte. It returns by how many doublings, beyond the slack,
// the rows are too wide.
func (g *Group) narrowRows(calls []Call, at []int) (narrowed []Call, wider []float64) {
	wider = make([]float64, len(at))
	if g.Form != Stream {
		return calls, wider
	}
	widest := math.Exp2(float64(g.High[slices.Index(featureNames(Stream), "width")]))
	narrowed = slices.Clone(calls)
	for i, c := range at {
		if d := &narrowed[c].Dims; float64(d.K) > widest {
			times := float64(d.K) / widest
			wider[i] = max(0, math.Log2(times)-slack)
			d.M, d.K = int(math.Round(float64(d.M)*times)), int(math.Round(widest))
		}
	}
	return narrowed, wider
}

// outsideScale is the distance from the trained range, in doublings, at which roofline and network count the same.
const outsideScale = 8

// slack is how many doublings outside of the trained range still count as inside.
const slack = 0.5

// boundBy is 0 for a call that arithmetic bounds, 1 for one that traffic does.
func boundBy(d *Device, c *Call) int {
	if arithmetic, traffic := d.bounds(c); arithmetic >= traffic {
		return 0
	}
	return 1
}

// deviceWeights weighs the ways in which a network is asked about a device: 0 as none of the families that were trained
// on, and 1+i as one of family i. A device of a known family counts as one of it alone. For an unseen device we average
// two predictions: one from its own specs (an extrapolation) and one from the known devices, weighted by similarity.
// The average has a lower error than either.
func (g *Group) deviceWeights(d *Device) []float64 {
	weights := make([]float64, 1+len(g.Families))
	if i := slices.Index(g.Families, d.Family()); i >= 0 {
		weights[1+i] = 1
		return weights
	}
	var own row
	own.device(d)
	var sum float64
	for i := range g.Like {
		var other row
		other.device(&g.Like[i])
		var square float64
		for j, v := range own.x {
			square += float64((v - other.x[j]) * (v - other.x[j]))
		}
		weights[1+i] = math.Exp(-math.Sqrt(square) / similarityScale)
		sum += weights[1+i]
	}
	for i := range g.Like {
		weights[1+i] *= 0.5 / sum
	}
	weights[0] = 0.5
	return weights
}

// similarityScale is the distance in doublings of facts over which likeness falls by e.
const similarityScale = 1

func (g *Group) attained(d *Device) [2]float64 {
	if i := slices.Index(g.Families, d.Family()); i >= 0 {
		return g.Reach[i]
	}
	return g.Reach[len(g.Families)]
}

// appendRow appends a call's features and returns how far outside of the trained range they are: the largest distance
// beyond the slack, in doublings, since nearly all features are logarithms to base 2. family is what the device is
// described as; -1: itself.
func (g *Group) appendRow(x []float32, d *Device, c *Call, family int) ([]float32, float64) {
	at := len(x)
	r := row{x: x}
	r.features(d, c)
	if family >= 0 && g.Families[family] != d.Family() {
		r.x = r.x[:len(r.x)-identity]
		r.device(&g.Like[family])
	}
	x = r.x
	var far float32
	if g.Mean != nil {
		f := x[at:]
		for i, v := range f {
			if inside := min(max(v, g.Low[i]), g.High[i]); inside != v {
				if i < len(f)-identity {
					far = max(far, inside-v, v-inside)
				}
				v = inside
			}
			f[i] = (v - g.Mean[i]) / g.Scale[i]
		}
	}
	for _, k := range g.Kinds {
		x = append(x, indicator(k == c.Kind))
	}
	for i := range g.Families {
		x = append(x, indicator(i == family))
	}
	return x, max(0, float64(far)-slack)
}

func indicator(b bool) float32 {
	if b {
		return 1
	}
	return 0
}
