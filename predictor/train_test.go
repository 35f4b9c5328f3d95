package predictor

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// trained is a model of the law, made once for all tests.
var trained = sync.OnceValues(func() (*Model, error) {
	return Train(measured(2400, 1, boards()), boards(), Options{Effort: 0.12, Hidden: []int{32, 32, 32}})
})

func model(t *testing.T) *Model {
	t.Helper()
	m, err := trained()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A model finds a law from samples, far better than the roofline, and says so on samples that it has not seen.
func TestTrainFindsALaw(t *testing.T) {
	e := Evaluate(model(t), measured(600, 2, boards()))
	t.Logf("mean error %.3f, roofline %.3f, covered %.3f", e.Overall, e.Roofline, e.Covered)
	if e.Overall > 0.08 || e.Overall > e.Roofline/4 {
		t.Errorf("the mean error is %.3f, that of the roofline %.3f", e.Overall, e.Roofline)
	}
	if e.Covered < 0.7 {
		t.Errorf("%.3f of the samples took no longer than their p95", e.Covered)
	}
	if len(e.Kinds) != 4 || len(e.Devices) != 3 || e.Kinds[0].Kind != "add" || !e.Devices[0].Seen {
		t.Errorf("got kinds %+v, devices %+v", e.Kinds, e.Devices)
	}
}

// Equal samples, options and seeds make equal models, to the byte of the file; other seeds others.
func TestTrainIsReproducible(t *testing.T) {
	file := func(seed uint64) []byte {
		m, err := Train(measured(300, 3, boards()), boards(), Options{Effort: 0.02, Seed: seed,
			Hidden: []int{16, 16, 16}})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "model")
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	if a, b, c := file(1), file(1), file(2); !bytes.Equal(a, b) || bytes.Equal(a, c) {
		t.Error("training is not a function of samples and seed")
	}
}

func TestTrainTellsProgress(t *testing.T) {
	var last Progress
	_, err := Train(measured(300, 3, boards()), boards(), Options{Effort: 0.02, Nets: 2, Hidden: []int{8, 8, 8},
		Progress: func(p Progress) {
			if p.Done < last.Done || !(p.Loss > 0) {
				t.Errorf("after %+v comes %+v", last, p)
			}
			last = p
		}})
	if err != nil || math.Abs(last.Done-1) > 1e-9 {
		t.Errorf("the last is %+v, %v", last, err)
	}
	if _, err := Train(nil, boards(), Options{}); err == nil {
		t.Error("nothing to train on is taken")
	}
}

// The forward pass of ours and gorgonia's agree on trained weights (the bound is that of float32 sums in another
// order).
func TestForwardAsGorgonia(t *testing.T) {
	m := model(t)
	calls := measured(200, 4, boards())
	for _, g := range m.Groups {
		var x []float32
		rows := 0
		for i := range calls {
			if calls[i].Form == g.Form {
				x, _ = g.appendRow(x, &m.Devices[calls[i].Device], &calls[i].Call, calls[i].Device)
				rows++
			}
		}
		got, want := forwardPass(g.Nets[0], x, rows), slowForward(t, g.Nets[0], x, rows)
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-5*max(1, math.Abs(float64(want[i]))) {
				t.Fatalf("%v: value %d is %v, gorgonia says %v", g.Form, i, got[i], want[i])
			}
		}
	}
}

// slowForward has gorgonia compute what forward does.
func slowForward(t *testing.T, layers []layer, x []float32, rows int) []float32 {
	t.Helper()
	g := gorgonia.NewGraph()
	leaves := 0
	leaf := func(r, c int, data []float32) *gorgonia.Node {
		leaves++ // names tell leaves of one shape apart
		return gorgonia.NodeFromAny(g, tensor.New(tensor.WithShape(r, c), tensor.WithBacking(slices.Clone(data))),
			gorgonia.WithName(fmt.Sprint(leaves)))
	}
	h := leaf(rows, layers[0].In, x)
	for l, a := range layers {
		h = gorgonia.Must(gorgonia.Add(gorgonia.Must(gorgonia.Mul(h, leaf(a.In, a.Out, a.W))),
			gorgonia.Must(gorgonia.Mul(leaf(rows, 1, newFilled(rows, 1)), leaf(1, a.Out, a.B)))))
		if l+1 < len(layers) {
			h = gorgonia.Must(gorgonia.Rectify(h))
		}
	}
	vm := gorgonia.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	return h.Value().Data().([]float32)
}

// A prediction does not depend on what is predicted beside it; p95 is not below p50.
func TestPredictAlone(t *testing.T) {
	m := model(t)
	d := &m.Devices[1]
	var calls []Call
	for _, s := range measured(100, 5, boards()) {
		calls = append(calls, s.Call, s.Call)
	}
	calls = append(calls, Call{Kind: "softmax", Form: Stream, Dims: stream(10, 10, 1, 1)}, Call{Kind: "huh", Form: Gemm,
		Dims: Dims{B: 1, M: 5, N: 5, K: 5}})
	together := m.Predict(d, calls)
	for i, c := range calls {
		p := together[i]
		alone := m.Predict(d, calls[i:i+1])[0]
		if diff := float64(p.P50-alone.P50) / float64(p.P50); math.Abs(diff) > 1e-4 {
			t.Errorf("%+v: %v together, %v alone", c, p, alone)
		}
		if p.P50 <= 0 || p.P95 < p.P50 || p.P95 > time.Hour {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	if softmax := together[len(together)-2]; !softmax.Equivalent {
		t.Errorf("another kind stands for softmax, which is not said: %+v", softmax)
	}
	if last := together[len(together)-1]; !last.Roofline {
		t.Errorf("a product of unknown kind is not said to be a roofline: %+v", last)
	}
}

// Far outside of what was trained on the prediction grows as the roofline does, and says that it is outside.
func TestPredictOutside(t *testing.T) {
	m := model(t)
	d := &m.Devices[0]
	call := func(n int) Call { return Call{Kind: "linear", Form: Gemm, Dims: Dims{B: 1, M: n, N: n, K: n}} }
	inside := m.Predict(d, []Call{call(4096)})[0]
	if inside.Outside != 0 {
		t.Errorf("4096 is outside: %+v", inside)
	}
	before := inside
	for n := 1 << 15; n <= 1<<19; n *= 2 {
		c := call(n)
		p := m.Predict(d, []Call{c})[0]
		ratio := p.P50.Seconds() / d.Roofline(&c)
		if p.Outside <= before.Outside || ratio < 1 || ratio > 2.5 ||
			float64(p.P95)/float64(p.P50) < float64(before.P95)/float64(before.P50)*0.9 {
			t.Errorf("n = %d: %+v is %.2f of the roofline, after %+v", n, p, ratio, before)
		}
		before = p
	}
}

// A device that was never seen gets predictions from its facts.
func TestPredictUnseen(t *testing.T) {
	m := model(t)
	d := Device{Name: "NVIDIA W4", FLOPs: 14e12, Bandwidth: 900e9, Units: 72, Clock: 1.4e9, Cache: 6e6,
		Launch: 10 * time.Microsecond}
	var sum, n float64
	for _, s := range measured(300, 6, []Device{d}) {
		sum += relative(m.Predict(&d, []Call{s.Call})[0].P50.Seconds(), s.Seconds)
		n++
	}
	if sum/n > 0.2 {
		t.Errorf("the mean error on an unseen device is %.3f", sum/n)
	}
}

// More load takes longer, as the samples say.
func TestPredictLoad(t *testing.T) {
	m := model(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range measured(50, 7, boards()) {
		if s.Seconds < 500e-6 {
			continue
		}
		c := s.Call
		c.Load = 0
		idle := m.Predict(&m.Devices[s.Device], []Call{c})[0]
		c.Load = 0.5 + rng.Float64()/2
		if busy := m.Predict(&m.Devices[s.Device], []Call{c})[0]; busy.P50 <= idle.P50 {
			t.Errorf("%+v takes %v beside others, %v alone", c, busy.P50, idle.P50)
		}
	}
}

func TestSplits(t *testing.T) {
	samples := measured(1000, 8, boards())
	train, test := SplitRandom(samples, 0.1, 1)
	if len(train)+len(test) != 1000 || len(test) < 60 || len(test) > 140 {
		t.Errorf("a tenth by chance is %d and %d", len(train), len(test))
	}
	train, test = SplitFamily(samples, boards(), "Y2")
	if len(train)+len(test) != 1000 || len(test) < 250 || len(test) > 420 {
		t.Errorf("those on Y2 are %d and %d", len(train), len(test))
	}
	train, test = SplitLarge(samples, boards(), 0.1)
	if len(train)+len(test) != 1000 || len(test) < 80 || len(test) > 100 {
		t.Errorf("the largest tenth is %d and %d", len(train), len(test))
	}
	if got := Relevant(samples, []string{"relu"}); len(got) != 333 || got[0].Form != Stream {
		t.Errorf("with relu are learned %d samples", len(got))
	}
}
