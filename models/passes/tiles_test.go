package passes_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/golden"
	"tensile/models"
	"tensile/models/passes"
)

// TestTilesOfLargeNetworks: the parameters above 16 MiB are in tiles, no gradient or state of one is larger than a
// tile, and with Adam an update works on the parameter and three of them. What files hold keeps its names and sizes.
func TestTilesOfLargeNetworks(t *testing.T) {
	for _, test := range []struct {
		model string
		large int
	}{{"alexnet", 2}, {"vgg16", 2}, {"gpt2", 1}, {"bert", 1}, {"rhn", 1}, {"gnmt", 7}, {"lenet", 0}} {
		g, err := models.Build(test.model, models.Config{})
		if err != nil {
			t.Fatal(err)
		}
		tiled, o, err := passes.Tiles(g, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o.Changed != test.large || len(o.Refused) > 0 {
			t.Errorf("%s: %d parameters in tiles, want %d; refused %+v", test.model, o.Changed, test.large, o.Refused)
		}
		for _, op := range tiled.Ops {
			w := tiled.Tensors[op.Outputs[0]]
			whole := tiled.Storages[w.Storage].Bytes
			if op.Phase != graph.Optimize || whole <= graph.TileBytes {
				continue
			}
			if got, most := tiled.WorkingSet(op.ID), whole+3*graph.TileBytes; got > most {
				t.Errorf("%s: %s works on %v, want at most %v", test.model, op.Name, got, most)
			}
		}
		if got, want := kept(tiled), kept(g); !slices.Equal(got, want) {
			t.Errorf("%s: files hold\n%v, want\n%v", test.model, got, want)
		}
	}
}

// kept lists what files hold of a graph.
func kept(g *graph.Graph) []string {
	sizes := make(map[string]graph.Bytes)
	for _, s := range g.Storages {
		switch {
		case s.PartOf != "":
			sizes[s.PartOf] += s.Bytes
		case s.Role.Persistent():
			sizes[s.Name] += s.Bytes
		}
	}
	var all []string
	for name, size := range sizes {
		all = append(all, fmt.Sprint(name, " ", size))
	}
	slices.Sort(all)
	return all
}

// table is a network that looks rows of a table up, whose gradient is made by embedding_dw.
type table struct {
	*graph.Builder
	w, dw graph.TensorID
}

func newTable() *table {
	b := &table{Builder: graph.NewBuilder("table")}
	ids := b.Input("ids", graph.Anything, graph.Int64, graph.Shape{3})
	wish := b.Input("wish", graph.Anything, graph.Float32, graph.Shape{3, 2})
	b.w = b.Persistent("w", graph.Parameter, graph.Shape{4, 2}, graph.Init{Kind: graph.InitOne})
	y := b.one("y", graph.Embedding, graph.Attrs{}, b.w, ids)
	b.Output(b.one("loss", graph.MeanSquare, graph.Attrs{}, y, wish))
	b.SetPhase(graph.Backward)
	b.dw = b.one("dw", graph.EmbeddingDW, graph.Attrs{Extent: [2]int{4}}, ids, b.one("dy", graph.MeanSquareDX,
		graph.Attrs{}, y, wish))
	b.SetPhase(graph.Optimize)
	return b
}

func (b *table) one(name string, kind graph.Kind, attrs graph.Attrs, inputs ...graph.TensorID) graph.TensorID {
	return b.Op(name, kind, attrs, inputs...)[0]
}

func (b *table) state(init graph.InitKind) graph.TensorID {
	return b.Persistent("m", graph.State, graph.Shape{4, 2}, graph.Init{Kind: init})
}

// opaque appends an op of any kind that reads tensors; it makes a number, or updates the first of them.
func (b *table) opaque(t *testing.T, name string, updates bool, reads ...graph.TensorID) {
	t.Helper()
	g := b.Peek()
	op := graph.Op{ID: graph.OpID(len(g.Ops)), Name: name, Kind: graph.Opaque, Inputs: reads, Phase: graph.Optimize,
		Forward: graph.NoOp}
	out := graph.Tensor{ID: graph.TensorID(len(g.Tensors)), Name: name, Storage: graph.StorageID(len(g.Storages)),
		Shape: graph.Shape{1}}
	if updates {
		id := out.ID
		out = g.Tensors[reads[0]]
		out.ID, out.Version = id, out.Version+1
	} else {
		g.Storages = append(g.Storages, graph.Storage{ID: out.Storage, Name: name, Role: graph.Gradient, Bytes: 4})
	}
	g.Tensors = append(g.Tensors, out)
	op.Outputs = []graph.TensorID{out.ID}
	g.Ops = append(g.Ops, op)
}

var (
	sgd      = graph.Attrs{LearningRate: 0.1}
	momentum = graph.Attrs{LearningRate: 0.1, Momentum: 0.9}
)

// TestTilesRefuse has a row for each reason why a parameter is left as it is.
func TestTilesRefuse(t *testing.T) {
	for _, test := range []struct {
		what  string
		build func(b *table)
		op    string
		want  string // "": it is not refused
	}{
		{"plain", func(b *table) { b.one("update", graph.SGD, sgd, b.w, b.dw) }, "", ""},
		{"scaled", func(b *table) {
			b.one("update", graph.SGD, sgd, b.w, b.one("half", graph.Scale, graph.Attrs{Factor: 0.5}, b.dw))
		}, "", ""},
		{"clipping by a norm", func(b *table) {
			b.opaque(t, "norm", false, b.dw)
			b.one("update", graph.SGD, sgd, b.w, b.dw)
		}, "update", "its gradient dw is read by norm too"},
		{"gradients over iterations", func(b *table) {
			b.one("update", graph.SGD, sgd, b.w, b.one("sum", graph.Accumulate, graph.Attrs{}, b.state(graph.InitZero),
				b.dw))
		}, "update", "its gradient m is of role state"},
		{"gradient as an output", func(b *table) {
			b.Output(b.dw)
			b.one("update", graph.SGD, sgd, b.w, b.dw)
		}, "update", "its gradient dw is of role output"},
		{"another optimizer", func(b *table) { b.opaque(t, "lamb", true, b.w, b.dw) }, "lamb",
			"opaque may not treat each element by itself"},
		{"gradient of another kind", func(b *table) {
			b.one("update", graph.SGD, sgd, b.w, b.one("twice", graph.Mul, graph.Attrs{}, b.dw, b.dw))
		}, "update", "twice makes its gradient twice, and mul makes no part alone"},
		{"gradient of itself", func(b *table) {
			x := b.View("x", b.dw, 0, graph.Shape{4, 2})
			d := b.one("d", graph.LinearDW, graph.Attrs{}, b.w, b.one("dx", graph.LinearDX, graph.Attrs{}, x,
				b.Persistent("v", graph.Parameter, graph.Shape{2, 4}, graph.Init{Kind: graph.InitOne})))
			b.one("update", graph.SGD, sgd, b.View("turned", b.w, 0, graph.Shape{4, 2}), d)
		}, "update", "d makes its gradient of w itself"},
		{"gradient in another shape", func(b *table) {
			b.one("update", graph.SGD, sgd, b.View("w2", b.w, 0, graph.Shape{2, 4}), b.View("dw2", b.dw, 0,
				graph.Shape{2, 4}))
		}, "update", "it updates a part of w, or sees it in another shape"},
		{"two updates", func(b *table) {
			b.one("update", graph.SGD, sgd, b.one("decay", graph.Scale, graph.Attrs{Factor: 0.9}, b.w), b.dw)
		}, "decay", "scale may not treat each element by itself"},
		{"parameter read afterwards", func(b *table) {
			b.opaque(t, "average", false, b.one("update", graph.SGD, sgd, b.w, b.dw))
		}, "update", "w is used in this iteration before and after it is updated"},
		{"state read elsewhere", func(b *table) {
			m := b.state(graph.InitZero)
			b.opaque(t, "watch", false, m)
			b.Op("update", graph.Momentum, momentum, b.w, b.dw, m)
		}, "update", "m is read by watch too"},
		{"random state", func(b *table) {
			b.Op("update", graph.Momentum, momentum, b.w, b.dw, b.state(graph.InitNormal))
		}, "update", "what m begins with depends on its name"},
		{"parameter as state", func(b *table) {
			b.Op("update", graph.Momentum, momentum, b.w, b.dw, b.Persistent("p", graph.Parameter, graph.Shape{4, 2},
				graph.Init{Kind: graph.InitZero}))
		}, "update", "what it keeps in p is of role parameter"},
	} {
		t.Run(test.what, func(t *testing.T) {
			b := newTable()
			test.build(b)
			g, err := b.Graph()
			if err == nil {
				err = g.Validate()
			}
			if err != nil {
				t.Fatal(err)
			}
			_, o, err := passes.Tiles(g, func(s graph.Shape) int { return min(s[0], 3) })
			if err != nil {
				t.Fatal(err)
			}
			refused := slices.ContainsFunc(o.Refused, func(r passes.Refusal) bool {
				return r.Op == test.op && r.Reason == test.want
			})
			if want := test.want != ""; refused != want || (o.Changed == 1) == want {
				t.Errorf("%d changed, refused %q, want %q", o.Changed, o.Refused, test.want)
			}
		})
	}
}

// TestTilesGolden keeps what becomes of a table that is both embedding and output layer: its gradient is a sum.
func TestTilesGolden(t *testing.T) {
	g, err := models.Build("gpt:1,8,2", models.Config{Sequence: 4, Vocabulary: 9, Batch: 2,
		Optimizer: autodiff.Momentum{}})
	if err != nil {
		t.Fatal(err)
	}
	tiled, o, err := passes.Tiles(g, func(s graph.Shape) int {
		if s[0] == 9 {
			return 4
		}
		return s[0]
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintln(&out, o)
	for _, s := range tiled.Storages {
		if s.PartOf != "" {
			fmt.Fprintf(&out, "%s %s of %v: from byte %d of %s\n", s.Role, s.Name, s.Bytes, s.Begin, s.PartOf)
		}
	}
	for _, op := range tiled.Ops {
		if strings.Contains(op.Name, ".tile") {
			fmt.Fprintf(&out, "%s: %s = %s %s %s", op.Phase, tensors(tiled, op.Outputs), op.Name, op.Kind,
				tensors(tiled, op.Inputs))
			if op.Attrs.Length > 0 {
				fmt.Fprintf(&out, " rows %d to %d", op.Attrs.Begin, op.Attrs.Begin+op.Attrs.Length)
			}
			out.WriteByte('\n')
		}
	}
	golden.Compare(t, filepath.Join("testdata", "tiles.txt"), out.String())
}

// tensors names tensors with their versions, those that are a part of their storage with where that begins.
func tensors(g *graph.Graph, ids []graph.TensorID) string {
	var words []string
	for _, id := range ids {
		t := g.Tensors[id]
		word := fmt.Sprintf("%s@%d", g.Storages[t.Storage].Name, t.Version)
		if t.Bytes() < g.Storages[t.Storage].Bytes {
			word += fmt.Sprintf("+%d", t.Offset)
		}
		words = append(words, word+strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ","))
	}
	return strings.Join(words, " ")
}
