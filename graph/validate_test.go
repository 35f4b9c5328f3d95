package graph

import (
	"math"
	"strings"
	"testing"
)

// TestValidateRejects breaks a good graph in one place at a time; each is to be found, and named by what it is.
// tinyDigest has the form of one.
const tinyDigest = Digest("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

func TestValidateRejects(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(g *Graph)
		want  string
	}{
		{"storage id", func(g *Graph) { g.Storages[3].ID = 4 }, "storage 3 (fc) has id 4"},
		{"tensor id", func(g *Graph) { g.Tensors[3].ID = 0 }, "tensor 3 (fc) has id 0"},
		{"op id", func(g *Graph) { g.Ops[1].ID = 0 }, "op 1 (relu) has id 0"},
		{"tensor of no storage", func(g *Graph) { g.Tensors[3].Storage = 10 }, "tensor fc: there is no storage 10"},
		{"tensor of a negative storage", func(g *Graph) { g.Tensors[3].Storage = -1 },
			"tensor fc: there is no storage -1"},
		{"op that reads nothing there is", func(g *Graph) { g.Ops[1].Inputs[0] = 11 },
			"op relu: there is no tensor 11"},
		{"op that makes nothing there is", func(g *Graph) { g.Ops[1].Outputs[0] = -1 },
			"op relu: there is no tensor -1"},
		{"unknown kind", func(g *Graph) { g.Ops[1].Kind = "sinh" }, `op relu: unknown kind "sinh"`},
		{"missing output", func(g *Graph) { g.Ops[2].Outputs = g.Ops[2].Outputs[:1] },
			"op loss: softmax_xent makes 2 outputs, got 1"},
		{"later forward op", func(g *Graph) { g.Ops[3].Forward = 3 }, "op loss.dx: forward op 3 is not an earlier op"},
		{"negative forward op", func(g *Graph) { g.Ops[3].Forward = -2 },
			"op loss.dx: forward op -2 is not an earlier op"},

		{"unknown role", func(g *Graph) { g.Storages[3].Role = "weight" }, `storage fc: unknown role "weight"`},
		{"no bytes", func(g *Graph) { g.Storages[3].Bytes = 0 }, "storage fc: 0 bytes is not a positive multiple of 4"},
		{"odd bytes", func(g *Graph) { g.Storages[3].Bytes = 34 }, "storage fc: 34 bytes is not a positive multiple " +
			"of 4"},
		{"too many bytes", func(g *Graph) { g.Storages[3].Bytes = 1 << 50 },
			"storage fc: 1125899906842624 bytes is not"},
		{"too many bytes together", func(g *Graph) {
			const many = int(MaxTotal/MaxBytes) + 1
			for i := range many {
				g.Storages = append(g.Storages, Storage{ID: StorageID(len(g.Storages)), Name: string(rune('a' + i%26)),
					Role: Activation, Bytes: MaxBytes})
			}
		}, "the storages have more than 4503599627370496 bytes together"},
		{"parameter without init", func(g *Graph) { g.Storages[2].Init = nil },
			"storage w: persistent storages, and no others, have an init"},
		{"activation with init", func(g *Graph) { g.Storages[3].Init = &Init{Kind: InitOne} },
			"storage fc: persistent storages, and no others, have an init"},
		{"unknown init", func(g *Graph) { g.Storages[2].Init = &Init{Kind: "uniform"} },
			`storage w: unknown init "uniform"`},
		{"infinite init", func(g *Graph) { g.Storages[2].Init = &Init{Kind: InitNormal, Scale: math.Inf(1)} },
			"storage w: init scale +Inf is not finite"},

		{"negative version", func(g *Graph) { g.Tensors[3].Version = -1 }, "tensor fc: version -1 is negative"},
		{"empty extent", func(g *Graph) { g.Tensors[3].Shape = Shape{2, 0} },
			"tensor fc: shape [2 0] has an extent below 1 or too many elements"},
		{"huge extents", func(g *Graph) { g.Tensors[3].Shape = Shape{1 << 32, 1 << 32} },
			"has an extent below 1 or too many elements"},
		{"tensor past its storage", func(g *Graph) { g.Tensors[3].Offset = 4 },
			"tensor fc: bytes 4 to 36 do not lie in storage fc (32 bytes)"},
		{"offset between elements", func(g *Graph) { g.Tensors[3].Offset = 2 },
			"tensor fc: bytes 2 to 34 do not lie in storage fc"},
		{"negative offset", func(g *Graph) { g.Tensors[3].Offset = -4 },
			"tensor fc: bytes -4 to 28 do not lie in storage fc"},

		{"unknown phase", func(g *Graph) { g.Ops[1].Phase = "update" }, `op relu: unknown phase "update"`},
		{"operands that do not fit", func(g *Graph) { g.Ops[0].Inputs[1] = 1 },
			"op fc: linear: w has shape [2], want [-1 -1]"},
		{"missing operand", func(g *Graph) { g.Ops[4].Inputs = g.Ops[4].Inputs[:2] },
			"op relu.dx: relu_dx takes 3 inputs, got 2"},
		{"wrong output shape", func(g *Graph) { g.Tensors[3].Shape = Shape{4, 2} },
			"op fc: output fc has shape [4 2], want [2 4]"},
		{"activation of a later version", func(g *Graph) { g.Tensors[4].Version = 1 },
			"op relu: output relu must be a fresh storage, not version 1 of relu"},
		{"output into an input", func(g *Graph) { g.Storages[4].Role = Input },
			"op relu: output relu must be a fresh storage, not version 0 of relu"},
		{"output into a part", func(g *Graph) { g.Storages[4].Bytes = 64 },
			"op relu: fresh output relu must cover its whole storage"},
		{"update of another storage", func(g *Graph) { g.Tensors[10].Storage = 9 },
			"op w.update: output w must be the next version of input w"},
		{"update that skips a version", func(g *Graph) { g.Tensors[10].Version = 2 },
			"op w.update: output w must be the next version of input w"},

		{"read before it is made", func(g *Graph) { swapOps(g, 0, 1) },
			"op relu: reads version 0 of fc, which holds version -1 there"},
		{"read after it was overwritten", func(g *Graph) {
			g.Ops[6], g.Ops[5] = g.Ops[5], g.Ops[6]
			g.Ops[5].ID, g.Ops[6].ID = 5, 6
			g.Ops[6].Kind = LinearDX // dx from w, in place of dw from x: w is gone by then
			g.Ops[6].Inputs = []TensorID{8, 2}
		}, "op fc.dw: reads version 0 of w, which holds version 1 there"},
		{"made twice", func(g *Graph) { g.Ops[4].Outputs[0] = 7 }, "op relu.dx: makes loss.dx a second time"},
		{"one op, one storage, two versions", func(g *Graph) {
			g.Ops[2].Outputs = []TensorID{6, 6}
		}, "op loss: makes two versions of loss.1"},
		{"written input", func(g *Graph) {
			g.Storages[2].Role, g.Storages[2].Init = Input, nil
		}, "op w.update: writes input w"},
		{"operand under an output", func(g *Graph) { g.Ops[6].Inputs[1] = 2 },
			"op w.update: input w lies in the storage that output w overwrites"},
		{"unknown content", func(g *Graph) { g.Storages[0].Holds = "movies" },
			`storage x: it holds "movies", which is not known; leave it out`},
		{"content of a parameter", func(g *Graph) { g.Storages[2].Holds = Images },
			"storage w: only inputs say what they hold"},
		{"digest without passes", func(g *Graph) { g.Plain = tinyDigest }, "only of graphs after passes"},
		{"short digest", func(g *Graph) { g.Passes, g.Plain = []string{"tiles"}, tinyDigest[1:] },
			"it is 64 hexadecimal digits"},
		{"digest of letters", func(g *Graph) { g.Passes, g.Plain = []string{"tiles"}, "x"+tinyDigest[1:] },
			"it is 64 hexadecimal digits"},
		{"part without a whole", func(g *Graph) { g.Storages[2].Begin = 4 },
			"storage w: parts of something are persistent and say of what"},
		{"part that is forgotten", func(g *Graph) { g.Storages[3].PartOf = "table" },
			"storage fc: parts of something are persistent and say of what"},
		{"part with a gap before it", func(g *Graph) { g.Storages[2].PartOf, g.Storages[2].Begin = "table", 4 },
			"storage w: it begins at byte 4 of table, the parts before it end at 0"},
		{"whole beside its part", func(g *Graph) { g.Storages[2].PartOf = "w" },
			"storage w: others are parts of something of its name"},
		{"unknown type", func(g *Graph) { g.Tensors[0].DType = "int4" }, `tensor x: unknown dtype "int4"`},
		{"two types of a storage", func(g *Graph) {
			g.Tensors = append(g.Tensors, Tensor{11, "x2", 0, 0, 0, Shape{3}, Int64})
		}, "tensor x2: storage x has elements of type float32, not int64"},
		{"indices that are kept", func(g *Graph) {
			g.Tensors[2].DType, g.Tensors[2].Shape = Int64, Shape{6}
		}, "storage w is persistent and of type int64, want float32 or float64"},
		{"type of an output", func(g *Graph) { g.Tensors[4].DType, g.Tensors[4].Shape = Float64, Shape{2, 2} },
			"is of type float64, want float32"},
		{"types of inputs", func(g *Graph) { g.Tensors[1].DType, g.Tensors[1].Shape = Int64, Shape{1} },
			"op loss: softmax_xent: labels has shape"},
		{"storage that no op makes", func(g *Graph) {
			g.Storages = append(g.Storages, Storage{ID: 10, Name: "lost", Role: Gradient, Bytes: 4})
		}, "storage lost is never made"},
		{"version that no op makes", func(g *Graph) {
			g.Tensors = append(g.Tensors, Tensor{11, "x2", 0, 1, 0, Shape{2, 3}, Float32})
		}, "storage x: version 1 is never made"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := tiny(t)
			test.spoil(g)
			err := g.Validate()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error:\n%v\nwant it to contain:\n%s", err, test.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), `graph "tiny": `) {
				t.Errorf("error does not name the graph: %v", err)
			}
		})
	}
}

func swapOps(g *Graph, i, j int) {
	g.Ops[i], g.Ops[j] = g.Ops[j], g.Ops[i]
	g.Ops[i].ID, g.Ops[j].ID = OpID(i), OpID(j)
}

// TestValidateReportsAll checks that independent problems are all named at once.
func TestValidateReportsAll(t *testing.T) {
	g := tiny(t)
	g.Storages[3].Role = "weight"
	g.Ops[1].Phase = "update"
	g.Tensors[4].Version = 1
	err := g.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"unknown role", "unknown phase", "must be a fresh storage"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q: %v", want, err)
		}
	}
}
