package onnx

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/models"
)

// lightSizes are the parameters of the whole networks as published.
var lightSizes = map[string]int64{"light_bvlc_alexnet": 60_965_224, "light_inception_v1": 6_998_552,
	"light_resnet50": 25_557_032, "light_squeezenet": 1_235_496, "light_vgg19": 143_667_240}

// Six whole networks are trained as they are: their shapes are inferred, all of their weights are parameters.
func TestImportLight(t *testing.T) {
	for _, path := range lightFiles(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".onnx")
		t.Run(name, func(t *testing.T) {
			m, err := Read(nil, path)
			if err != nil {
				t.Fatal(err)
			}
			net, err := Import(m, name, Options{Batch: 1})
			if err != nil {
				t.Fatal(err)
			}
			if s := net.Outputs[0].Shape; s.Elements() != 1000 {
				t.Errorf("its output has shape %v, want 1000 scores", s)
			}
			g, _, err := Job(m, name, Training{Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d ops, %d parameters, %d MACs", len(g.Ops), g.Parameters(), models.MACs(g)/2)
			if want, ok := lightSizes[name]; ok && g.Parameters() != want {
				t.Errorf("it has %d parameters, want %d", g.Parameters(), want)
			}
		})
	}
}

// The training graph of a file is that of the same network built here.
func TestImportPerceptron(t *testing.T) {
	g, contents, err := Job(perceptron(), "perceptron", Training{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range g.Storages {
		if s.Role == graph.Parameter {
			names = append(names, s.Name)
		}
	}
	if got := strings.Join(names, " "); got != "fc1.weight fc1.bias fc2.weight fc2.bias" {
		t.Errorf("parameters %s", got)
	}
	if len(contents["fc2.weight"]) != 15 {
		t.Errorf("contents %v", contents["fc2.weight"])
	}
}

// All operators that are not supported are named at once.
func TestUnsupported(t *testing.T) {
	m := perceptron()
	m.Graph.Nodes[0].Op, m.Graph.Nodes[1].Op, m.Graph.Nodes[2].Op = "TopK", "FFT", "TopK"
	_, err := Import(m, "x", Options{})
	want := `FFT in node "Relu_r" (FFT); TopK in 2 nodes: node "Gemm_h" (TopK), node "Gemm_y" (TopK)`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A weight that was left out of the file is trained under its own name and in its own shape, also where the model
// reshapes or transposes it, so that it can be put into the file.
func TestLeftOutWeights(t *testing.T) {
	for op, attributes := range map[string][]any{"Transpose": {"perm", []int64{1, 0}}, "Reshape": nil,
		"Identity": nil} {
		m := perceptron()
		g := &m.Graph
		dims := []int64{5, 6}
		in := list("w")
		switch op {
		case "Transpose":
			dims = []int64{6, 5}
		case "Reshape":
			dims = []int64{2, 15}
			in = list("w", "to")
			g.Initializers = append(g.Initializers, whole("to", 5, 6))
		}
		g.Initializers[0] = whole("dims", dims...)
		g.Nodes[0].Inputs[1] = "w2"
		g.Nodes = append([]Node{node("ConstantOfShape", list("dims"), list("w")), node(op, in, list("w2"),
			attributes...)}, g.Nodes...)
		if err := m.check(); err != nil {
			t.Fatal(err)
		}
		job, _, err := Job(m, "x", Training{Batch: 2})
		if err != nil {
			t.Errorf("%s: %v", op, err)
			continue
		}
		var first *graph.Init
		for _, s := range job.Storages {
			if s.Role == graph.Parameter && s.Name == "w" {
				first = s.Init
			}
		}
		if first == nil || first.Kind != graph.InitNormal || first.Scale != math.Sqrt(2.0/6) {
			t.Errorf("%s: w begins as %+v, want a parameter that begins as ReLUs like it", op, first)
		}
		m.Replace("w", sequence(30))
		again, contents, err := Job(m, "x", Training{Batch: 2})
		if err != nil || !slices.Equal(contents["w"], sequence(30)) || len(again.Ops) != len(job.Ops) {
			t.Errorf("%s: written into the file it is %v, %v", op, contents["w"], err)
		}
	}
}

// Running statistics are no parameters, and what a file leaves out of a normalisation begins as one that changes
// nothing.
func TestNormalizationRoles(t *testing.T) {
	m := perceptron()
	g := &m.Graph
	g.Initializers = append(g.Initializers, whole("dims", 5))
	var made []Node
	for _, name := range []string{"scale", "shift", "mean", "variance"} {
		made = append(made, node("ConstantOfShape", list("dims"), list(name)))
	}
	g.Nodes[1] = node("BatchNormalization", list("h", "scale", "shift", "mean", "variance"), list("r"))
	g.Nodes = append(made, g.Nodes...)
	job, _, err := Job(m, "x", Training{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, s := range job.Storages {
		if s.Init != nil {
			got[s.Name] = fmt.Sprint(s.Role, " ", s.Init.Kind)
		}
	}
	for name, want := range map[string]string{
		"scale":    fmt.Sprint(graph.Parameter, " ", graph.InitOne),
		"shift":    fmt.Sprint(graph.Parameter, " ", graph.InitZero),
		"mean":     fmt.Sprint(graph.State, " ", graph.InitZero),
		"variance": fmt.Sprint(graph.State, " ", graph.InitOne),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// A normalisation that a network has twice moves its running figures twice.
func TestSharedNormalization(t *testing.T) {
	m := with(func(_ *Model, g *Graph) {
		for _, name := range []string{"scale", "shift", "mean", "variance"} {
			g.Initializers = append(g.Initializers, floats(name, sequence(5), 5))
		}
		g.Nodes[1] = node("BatchNormalization", list("h", "scale", "shift", "mean", "variance"), list("n"))
		g.Nodes = append(g.Nodes, node("BatchNormalization", list("n", "scale", "shift", "mean", "variance"),
			list("r")))
	})
	g, _, err := Job(m, "x", Training{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	updates := 0
	for _, op := range g.Ops {
		if op.Kind == graph.BatchNormUpdate {
			updates++
		}
	}
	if updates != 2 {
		t.Errorf("%d updates of running figures, want 2", updates)
	}
}

// A loss that leaves out a class that there may be is refused where labels are fed, class 0 among them; one that leaves
// out -100, as PyTorch's files have it, is not.
func TestIgnoredClass(t *testing.T) {
	for ignored, refused := range map[int]bool{-100: false, -1: false, 0: true, 2: true} {
		m := perceptron()
		m.Graph.Inputs = append(m.Graph.Inputs, typed("t", Int64, -1))
		m.Graph.Nodes = append(m.Graph.Nodes, node("SoftmaxCrossEntropyLoss", list("y", "t"), list("l"), "ignore_index",
			ignored))
		m.Graph.Outputs = []Value{typed("l", Float32)}
		if _, _, err := Job(m, "x", Training{Batch: 2}); (err != nil) != refused {
			t.Errorf("ignore_index %d: error %v", ignored, err)
		}
	}
}

// A Dropout drops where the network trains before operator set 12, with a half unless it says another share; from then
// on where its flag says so.
func TestDropoutVersions(t *testing.T) {
	share := func(v float32) Tensor { return floats("share", []float32{v}) }
	flag := Tensor{Name: "flag", Type: Bool, Raw: []byte{1}}
	for _, c := range []struct {
		version int64
		n       Node
		want    []float64 // rates of what drops
	}{
		{11, node("Dropout", list("h"), list("d")), []float64{0.5}},
		{11, node("Dropout", list("h"), list("d"), "ratio", 0.25), []float64{0.25}},
		{12, node("Dropout", list("h"), list("d")), nil},
		{12, node("Dropout", list("h", "share"), list("d")), nil},
		{12, node("Dropout", list("h", "", "flag"), list("d")), []float64{0.5}},
		{13, node("Dropout", list("h", "share", "flag"), list("d")), []float64{0.125}},
	} {
		m := with(func(m *Model, g *Graph) {
			m.Opsets[0].Version = c.version
			g.Initializers = append(g.Initializers, share(0.125), flag)
			g.Nodes[1].Inputs[0] = "d"
			g.Nodes = append(g.Nodes, c.n)
		})
		job, _, err := Job(m, "x", Training{Batch: 2})
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		var got []float64
		for _, op := range job.Ops {
			if op.Kind == graph.Dropout {
				got = append(got, op.Attrs.Rate)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("operator set %d, inputs %q: it drops %v, want %v", c.version, c.n.Inputs, got, c.want)
		}
	}
}

// A dropout that is spelt by random numbers drops the share that it says.
func TestSpeltDropout(t *testing.T) {
	m := with(func(_ *Model, g *Graph) {
		g.Initializers = append(g.Initializers, floats("p", []float32{0.75}))
		g.Nodes[1].Inputs[0] = "d"
		g.Nodes = append(g.Nodes, node("RandomUniformLike", list("h"), list("u"), "low", 0.0, "high", 1.0),
			node("Less", list("u", "p"), list("s")), node("Cast", list("s"), list("k"), "to", int(Float32)),
			node("Div", list("k", "p"), list("w")), node("Mul", list("h", "w"), list("d")))
	})
	g, _, err := Job(m, "x", Training{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	for _, op := range g.Ops {
		if op.Kind == graph.Dropout {
			rates = append(rates, op.Attrs.Rate)
		}
	}
	if !slices.Equal(rates, []float64{0.25}) {
		t.Errorf("it drops %v, want 0.25", rates)
	}
	m.Graph.Nodes[4].Op = "Greater"
	if _, _, err := Job(m, "x", Training{Batch: 2}); err == nil || !strings.Contains(err.Error(), "Less_s") {
		t.Errorf("another comparison: error %v", err)
	}
}

// What a graph keeps of its file is found again for the batch and the sequence that the graph was made for.
func TestContentsOfOtherSizes(t *testing.T) {
	m := perceptron()
	g := &m.Graph
	g.Inputs[0] = typed("x", Float32, -1, -1)
	scalar := func(name string, v int64) Tensor {
		x := whole(name, v)
		x.Dims = nil
		return x
	}
	g.Initializers = append(g.Initializers, scalar("zero", 0), scalar("step", 1))
	before(g, node("Add", list("x", "places"), list("x2")))
	before(g, node("Unsqueeze", list("rows"), list("column"), "axes", []int64{1}))
	before(g, node("Cast", list("range0"), list("rows"), "to", int(Float32)))
	before(g, node("Cast", list("range1"), list("places"), "to", int(Float32)))
	for i, axis := range []string{"zero", "step"} {
		before(g, node("Range", list("zero", "n"+axis, "step"), list([]string{"range0", "range1"}[i])))
		before(g, node("Gather", list("shape", axis), list("n"+axis)))
	}
	before(g, node("Shape", list("x"), list("shape")))
	for i := range g.Nodes {
		if g.Nodes[i].Name == "Gemm_h" {
			g.Nodes[i].Inputs[0] = "x2"
		}
		if g.Nodes[i].Name == "Relu_r" {
			g.Nodes[i].Inputs[0] = "h2"
		}
	}
	g.Nodes = append(g.Nodes, node("Add", list("h", "column"), list("h2")))
	m.Opsets[0].Version = 12 // Unsqueeze has its axes as an attribute
	job, want, err := Job(m, "x", Training{Batch: 5, Sequence: 6})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Contents(m, job)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-of the job +again):\n%s", err, diff)
	}
	sizes := make(map[int]int)
	for _, content := range got {
		sizes[len(content)]++
	}
	if sizes[5] < 2 || sizes[6] < 1 { // a bias of five, too
		t.Errorf("contents have sizes %v, want those of the batch and the sequence among them", sizes)
	}
	for _, s := range job.Storages {
		if s.Name == "labels" && s.Holds != graph.Labels {
			t.Errorf("labels hold %v", s.Holds)
		}
	}
	net, err := Import(perceptron(), "x", Options{})
	if err != nil || !slices.Equal(net.Outputs[0].Shape, graph.Shape{16, 3}) {
		t.Errorf("without a batch: %v, outputs %+v", err, net)
	}
}

// Numbers of an attribute are written where they are zero, too: a reader may tell one that is left out.
func TestZeroAttributes(t *testing.T) {
	for _, c := range []struct {
		a     Attribute
		field byte // the tag that it begins with
	}{{Attribute{Name: "a", Type: AttributeFloat}, 2<<3 | 5}, {Attribute{Name: "a", Type: AttributeInt}, 3 << 3}} {
		if text := c.a.encode(); text[3] != c.field {
			t.Errorf("%+v is written as %x, want field %d after its name", c.a, text, c.field>>3)
		}
	}
}

// A model becomes the same graph each time, so that plans can be made again.
func TestImportsAlike(t *testing.T) {
	for _, name := range []string{"lstm", "gates", "pieces"} {
		var first string
		for i := range 8 {
			m, err := Read(nil, filepath.Join("testdata", name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			g, _, err := Job(m, name, Training{Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(g.Digest()); i == 0 {
				first = got
			} else if got != first {
				t.Errorf("%s: import %d is another graph than the first", name, i)
			}
		}
	}
}
