package torchtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/models/nettest"
)

// experiment is a graph that Tensile and torch train.
type experiment struct {
	name       string
	g          *graph.Graph
	way        string // "graph", or a network of testdata/networks.py
	iterations int
}

// row is a comparison with torch in float64, in Euclidean norms.
type row struct {
	Kind   string // loss, gradient or end
	Name   string // of the storage
	Role   graph.Role
	Size   float64 // of what torch has; of what is there in the end, how far training moved it
	Double float64 // distance of Tensile's kernels in float64
	Single float64 // of those in float32, which train
	Torch  float64 // of torch in float32
}

// noise is the deviation of what is added to each parameter at first.
const noise = 0.02

// families are the networks that are trained, at least one of each family. The deep ones are normalised so often that
// an error grows a thousandfold in an iteration: in float32 the third has no digit left, in torch as here.
var families = []struct {
	name string
	deep bool
}{
	{name: "mlp"}, {name: "lenet"}, {name: "alexnet"}, {name: "vgg16"}, {name: "vgg11-cifar"}, {name: "resnet18"},
	{name: "resnet50"},
	{name: "inceptionv3", deep: true}, {name: "inceptionv4", deep: true}, {name: "densenet121", deep: true},
	{name: "nasnet-mobile", deep: true},
	{name: "bert"}, {name: "gpt2"}, {name: "gnmt"}, {name: "rhn"}, {name: "tacotron2"},
}

var optimizers = []autodiff.Optimizer{autodiff.SGD{}, autodiff.Momentum{}, autodiff.Adam{}}

// TestGraphs trains every family with every optimizer, the forward ops being torch's functions: kernels, gradients and
// optimizers.
func TestGraphs(t *testing.T) {
	var all []experiment
	for i, family := range families {
		for k, o := range optimizers {
			if !long.On() && (family.deep || i%3 != k) {
				continue // each with one optimizer
			}
			g, err := nettest.BuildFor(family.name, o)
			if err != nil {
				t.Fatal(err)
			}
			e := experiment{fmt.Sprintf("%s/%T", family.name, o), g, "graph", 3}
			if family.deep {
				e.iterations = 2
			}
			all = append(all, e)
		}
	}
	compare(t, all)
}

// TestNetworks trains networks beside the same networks written from torch's modules: connections.
func TestNetworks(t *testing.T) {
	var all []experiment
	for _, network := range []struct{ name, way string }{
		{"resnet18", "resnet"}, {"resnet50", "resnet"}, {"bert", "bert"}, {"gpt2", "gpt"}, {"gnmt", "gnmt"},
		{"rhn", "rhn"}, {"tacotron2", "tacotron"},
	} {
		g, err := nettest.BuildFor(network.name, autodiff.SGD{})
		if err != nil {
			t.Fatal(err)
		}
		if network.way == "bert" || network.way == "gpt" {
			for i := range g.Ops { // torch's layers draw masks of their own
				if kind := g.Ops[i].Kind; kind == graph.Dropout || kind == graph.DropoutDX {
					g.Ops[i].Attrs.Rate = 0
				}
			}
		}
		all = append(all, experiment{network.name, g, network.way, 3})
	}
	compare(t, all)
}

// compare trains graphs in Tensile and in torch, and judges how far they are from each other.
func compare(t *testing.T, all []experiment) {
	t.Helper()
	if raceEnabled {
		t.Skip("one goroutine, and 10 times the arithmetic")
	}
	python := needs.Torch(t)
	script, err := filepath.Abs(filepath.Join("testdata", "oracle.py"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-B", script} // leaves no compiled files behind
	for _, e := range all {
		arguments = append(arguments, e.folder(t))
	}
	command := exec.Command(python, arguments...)
	var out, trouble bytes.Buffer
	command.Stdout, command.Stderr = &out, &trouble
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trouble.String())
	}
	lines := json.NewDecoder(&out)
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			var rows []row
			if err := lines.Decode(&rows); err != nil {
				t.Fatal(err)
			}
			e.judge(t, rows)
		})
	}
	if _, err := lines.Token(); err != io.EOF {
		t.Errorf("torch says more than it was asked: %v", err)
	}
}

// class is what a comparison counts with: losses, gradients, weights, moments or running statistics.
func (r row) class() string {
	switch {
	case r.Kind != "end":
		return r.Kind
	case r.Role == graph.Parameter:
		return "weights"
	}
	return r.Name[strings.LastIndexByte(r.Name, '.')+1:] // m, v, running_mean, running_variance
}

// Tolerances, relative to the size of a tensor, or to a hundredth of its class where a tensor hardly moves, such as a
// bias before a normalisation.
const (
	tolerance = 1e-6 // in float64; what is wrong is wrong by more than a hundredth
	floor     = 1e-6 // in float32, of a class; beyond that an error may be tenfold that of torch in float32
	tenfold   = 10
)

// worst is the largest relative error of torch in float32 in any class of an experiment. It says how far rounding is
// carried in that network; which class it reaches most is a matter of the order of sums, and so of the processor.
func worst(classes map[string]row) (relative float64) {
	for _, c := range classes {
		if c.Size > 0 {
			relative = max(relative, c.Torch/c.Size)
		}
	}
	return relative
}

// judge compares each tensor in float64, and each class in float32.
func (e experiment) judge(t *testing.T, rows []row) {
	classes := make(map[string]row)
	for _, r := range rows {
		c := classes[r.class()]
		c.Size, c.Double = math.Hypot(c.Size, r.Size), math.Hypot(c.Double, r.Double)
		c.Single, c.Torch = math.Hypot(c.Single, r.Single), math.Hypot(c.Torch, r.Torch)
		classes[r.class()] = c
	}
	for _, r := range rows {
		if limit := tolerance * (r.Size + classes[r.class()].Size/100); !(r.Double <= limit) {
			t.Errorf("%s of %s in float64 is %.1e from torch's, whose size is %.1e: want at most %.1e", r.Kind, r.Name,
				r.Double, r.Size, limit)
		}
	}
	for name, c := range classes {
		t.Logf("%-16s float64 %.1e, float32 %.1e, torch in float32 %.1e", name, c.Double/c.Size, c.Single/c.Size,
			c.Torch/c.Size)
		if limit := (floor + tenfold*worst(classes)) * c.Size; !(c.Single <= limit) {
			t.Errorf("%s in float32 are %.1e from torch's in float64, whose size is %.1e: want at most %.1e", name,
				c.Single, c.Size, limit)
		}
	}
	for _, want := range e.classes() {
		if classes[want].Size == 0 {
			t.Errorf("no %s were compared", want)
		}
	}
}

// classes are those that must have been compared.
func (e experiment) classes() []string {
	all := []string{"loss", "gradient", "weights"}
	for _, op := range e.g.Ops {
		switch op.Kind {
		case graph.BatchNormUpdate:
			all = append(all, "running_mean", "running_variance")
		case graph.Momentum:
			all = append(all, "m")
		case graph.Adam:
			all = append(all, "m", "v")
		}
	}
	return all
}
