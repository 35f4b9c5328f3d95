package calibrate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	_ "tensile/internal/long" // the flag -long
)

// Networks of random shapes are valid, equal for equal seeds, and between them use every kind that training needs.
func TestNetwork(t *testing.T) {
	kinds := make(map[graph.Kind]bool)
	first, second := rand.New(rand.NewPCG(1, 0)), rand.New(rand.NewPCG(1, 0))
	for range 200 {
		a, err := network(first)
		if err != nil {
			t.Fatal(err)
		}
		b, err := network(second)
		if err != nil || a.Digest() != b.Digest() {
			t.Fatalf("two networks of one seed differ, %v", err)
		}
		for i := range a.Ops {
			kinds[a.Ops[i].Kind] = true
		}
	}
	for _, k := range []graph.Kind{graph.Conv2D, graph.Conv2DDW, graph.Conv2DDX, graph.Linear, graph.LinearDW,
		graph.LinearDX, graph.BiasDB, graph.ReLU, graph.ReLUDX, graph.MaxPool, graph.MaxPoolDX, graph.AvgPool,
		graph.AvgPoolDX, graph.BatchNorm, graph.BatchNormStats, graph.BatchNormGrad,
		graph.BatchNormUpdate, graph.Add, graph.Mul, graph.Dropout, graph.DropoutDX, graph.SoftmaxXent,
		graph.SoftmaxXentDX, graph.SGD, graph.Momentum,
		graph.Adam, graph.Concat, graph.Slice, graph.SliceDX, graph.Pad, graph.LRN, graph.LRNDX, graph.Embedding,
		graph.EmbeddingDW, graph.Bias,
		graph.LayerNorm, graph.LayerNormGrad, graph.GELU, graph.GELUDX, graph.Sigmoid, graph.SigmoidDX, graph.Tanh,
		graph.TanhDX, graph.Blend,
		graph.BlendGrad, graph.MatMul, graph.Transpose, graph.Softmax, graph.SoftmaxDX, graph.AdditiveScores,
		graph.AdditiveScoresGrad, graph.LSTM,
		graph.LSTMGrad, graph.MeanSquare, graph.MeanSquareDX, graph.SigmoidXent, graph.SigmoidXentDX,
		graph.Affine, graph.Power, graph.Exp, graph.Log, graph.Erf, graph.Expand, graph.SumOver,
		graph.Accumulate, graph.ReLUYDX, graph.MaxPoolIndices, graph.MaxPoolIndicesDX, graph.AvgPoolDYDX} {
		if !kinds[k] {
			t.Errorf("no network has a %s", k)
		}
	}
}

// On a device whose ops take what the roofline says, that is what is measured.
func TestMeasureSim(t *testing.T) {
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	d := sim.New(facts, sim.Options{})
	defer d.Close()
	var told []int
	networks, err := measure(t.Context(), d, Options{Time: 1, Background: []int{0},
		Progress: func(done float64, n int) { told = append(told, n) }})
	if err != nil || len(networks) != 3 || !slices.Equal(told, []int{1, 2, 3}) {
		t.Fatalf("%d networks, progress %v, %v", len(networks), told, err)
	}
	for _, samples := range networks {
		if len(samples)%(iterations-1) != 0 || len(samples) == 0 {
			t.Errorf("%d samples of %d iterations", len(samples), iterations-1)
		}
		half := samples[:len(samples)/(iterations-1)]
		for i, s := range half {
			if again := samples[len(half)+i]; again != s {
				t.Errorf("an op takes %v and then %v: %+v", s.Seconds, again.Seconds, s.Call)
			}
			if s.Seconds < facts.Launch.Seconds() {
				t.Errorf("%+v", s)
			}
		}
	}
}

// meter says that others use a share, or fails.
type meter struct {
	load float64
	err  error
}

func (m meter) Load() (float64, error) { return m.load, m.err }

// On the cpu, with work beside it, samples carry the load: what the meter says of others, and the busy threads.
func TestMeasureLoad(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	networks, err := measure(t.Context(), d, Options{Time: 1, Background: []int{0, 1, 0}, Meter: meter{load: 0.25}})
	if err != nil {
		t.Fatal(err)
	}
	alone, beside := networks[0][0].Load, networks[1][0].Load
	if alone != 0.25 || beside <= 0.25 || beside > 1 {
		t.Errorf("the load is %v alone, %v beside a busy thread", alone, beside)
	}
	broken := errors.New("broken")
	if _, err := measure(t.Context(), d, Options{Time: 1, Meter: meter{err: broken}}); !errors.Is(err, broken) {
		t.Errorf("a meter that fails: %v", err)
	}
}

func TestMeasureIsInterrupted(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := measure(ctx, d, Options{Time: time.Hour}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
