package predictor

import (
	"math"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/nettest"
	"tensile/models/passes"
)

// network is a training graph.
func network(t testing.TB, name string, image, batch int) *graph.Graph {
	t.Helper()
	g, err := models.Build(name, models.Config{Image: image, Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The calls of a graph, rewritten by passes too, do the arithmetic and the traffic that the graph's own rules say.
func TestCallsOf(t *testing.T) {
	forms := make(map[Form]int)
	var graphs []*graph.Graph
	for _, name := range []string{"resnet50", "vgg16", "lenet", "mlp"} {
		g := network(t, name, 32, 4)
		rewritten, _, err := passes.Apply(g, passes.Names())
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g, rewritten)
	}
	for _, g := range graphs {
		name := g.Name
		for i, c := range CallsOf(g, 0.25) {
			want := g.Cost(graph.OpID(i))
			forms[c.Form]++
			if c.flops() != float64(want.FLOPs) {
				t.Errorf("%s: %s: %v operations, the graph says %d", name, g.Ops[i].Name, c.flops(), want.FLOPs)
			}
			if got := c.bytes(); got > float64(want.Bytes) || got < 0.95*float64(want.Bytes) && c.Form == Stream ||
				got < 0.3*float64(want.Bytes) {
				t.Errorf("%s: %s: %v bytes, the graph says %d", name, g.Ops[i].Name, got, want.Bytes)
			}
			if c.Load != 0.25 || c.Kind != string(g.Ops[i].Kind) {
				t.Errorf("%s: %s: %+v", name, g.Ops[i].Name, c)
			}
		}
	}
	if len(forms) != 3 {
		t.Errorf("forms %v", forms)
	}
}

// The dims of products are those of the operands, whichever of the three it is.
func TestCallOfProducts(t *testing.T) {
	g := network(t, "mlp", 4, 5)
	seen := make(map[string]Dims)
	for i := range g.Ops {
		if g.Ops[i].Layer == "fc1" {
			c := CallOf(g, graph.OpID(i), 0)
			seen[c.Kind] = c.Dims
		}
	}
	x := g.Tensors[g.Ops[0].Inputs[0]].Shape
	out := g.Tensors[g.Ops[0].Outputs[0]].Shape[1]
	if want := (Dims{B: 1, M: 5, N: x[1], K: out}); seen["linear"] != want {
		t.Errorf("linear is %+v, want %+v", seen["linear"], want)
	}
	if want := (Dims{B: 1, M: out, N: 5, K: x[1]}); seen["linear_dw"] != want {
		t.Errorf("linear_dw is %+v, want %+v", seen["linear_dw"], want)
	}
}

// Backward and optimizer ops are predicted through equivalents, and that is said.
func TestPredictEquivalents(t *testing.T) {
	m := model(t)
	g := network(t, "resnet50", 32, 4)
	calls := CallsOf(g, 0)
	for i, p := range m.Predict(&m.Devices[0], calls) {
		trained := calls[i].Kind == "linear" || calls[i].Kind == "add" || calls[i].Kind == "relu"
		if p.P50 <= 0 || p.P95 < p.P50 || p.Equivalent == trained {
			t.Errorf("%s: %+v", g.Ops[i].Name, p)
		}
	}
}

// BenchmarkPredict predicts all ops of a network.
func BenchmarkPredict(b *testing.B) {
	// of the recommended size, hardly trained
	m, err := Train(measured(3000, 1, boards()), boards(), Options{Effort: 1e-9})
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"vgg16", "resnet50", "resnet:3,8,36,3", "resnet:100,100,500,100"} {
		g := network(b, name, 224, 16)
		b.Run("model="+name, func(b *testing.B) {
			for b.Loop() {
				m.Predict(&m.Devices[0], CallsOf(g, 0))
			}
			b.ReportMetric(float64(len(g.Ops)), "ops")
		})
	}
}

// A tile of a gradient is a call of its part: the product of its rows, and the share of dy that falls into it.
func TestCallsOfTiles(t *testing.T) {
	g, err := models.Build("gpt:1,8,2", models.Config{Sequence: 4, Vocabulary: 12, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	tiled, o, err := passes.Tiles(g, func(s graph.Shape) int {
		if s[0] == 12 {
			return 4
		}
		return s[0]
	})
	if err != nil || o.Changed != 1 {
		t.Fatalf("%d parameters in tiles, %v", o.Changed, err)
	}
	calls := make(map[string]Call)
	for i, c := range CallsOf(tiled, 0) {
		calls[tiled.Ops[i].Name] = c
	}
	if got, want := calls["head.dw.tile1"].Dims, (Dims{B: 1, M: 4, N: 8, K: 8}); got != want {
		t.Errorf("a tile of a product: %+v, want %+v", got, want)
	}
	// 8 ids and a third of dy's 8 rows of 8 are read, and 4 rows of 8 written
	got := calls["embedding.dw.tile1"].Dims
	if got.Read != 8+64*4/12 || got.Write != 32 || got.Ops != 64*4/12 {
		t.Errorf("a tile of a table: %+v", got)
	}
	if got := calls["words.update.tile1"].Dims; got.Read != 4*32 || got.Write != 3*32 {
		t.Errorf("an update of a tile: %+v", got)
	}
}

// What is known of the ops of every network is finite: copies without arithmetic, windows in groups, and single values
// too.
func TestFeaturesAreFinite(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	d := DeviceOf(facts, 84, 1.4e9, 6e6)
	for _, name := range models.Names() {
		g, err := nettest.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range CallsOf(g, 0.5) {
			var r row
			r.features(&d, &c)
			if at := slices.IndexFunc(r.x, func(v float32) bool {
				return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)
			}); at >= 0 {
				t.Fatalf("%s: feature %d of op %s (%s) is %v", name, at, g.Ops[i].Name, c.Kind, r.x[at])
			}
			if flops := c.flops(); c.Form != Stream && flops != float64(g.Cost(graph.OpID(i)).FLOPs) {
				t.Errorf("%s: op %s (%s) has %v FLOPs, the graph says %d", name, g.Ops[i].Name, c.Kind, flops,
					g.Cost(graph.OpID(i)).FLOPs)
			}
		}
	}
}
