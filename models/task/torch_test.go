package task

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/data/weights"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models"
)

// foreign is a file of weights for a graph under the names of torchvision or transformers: what is of one tensor there
// is in one, with numbers that tell the storage.
func foreign(t *testing.T, g *graph.Graph) weights.File {
	t.Helper()
	shapes, names := wholeShapes(g)
	torch := models.TorchOf(g.Name, names)
	var file weights.File
	for _, name := range names {
		f, known := torch.Names[name]
		if !known || f.Part > 0 {
			continue
		}
		shape := slices.Clone(shapes[name])
		if f.Transposed && len(shape) == 2 {
			slices.Reverse(shape)
		}
		shape[len(shape)-1] *= max(1, f.Parts)
		x := weights.Tensor{Name: f.Name, Shape: shape, Data: make([]float32, shape.Elements())}
		for i := range x.Data {
			x.Data[i] = float32(i)
		}
		file.Tensors = append(file.Tensors, x)
	}
	return file
}

func smallGPT(t *testing.T) *graph.Graph {
	t.Helper()
	g, err := models.Build("gpt:1,4,2", models.Config{Batch: 2, Sequence: 3, Vocabulary: 9})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Query, key and value are columns of one tensor, which is the transpose of ours.
func TestBeginWithConv1D(t *testing.T) {
	g := smallGPT(t)
	path := filepath.Join(t.TempDir(), "w")
	for _, base := range []string{"transformer.", "", "module.transformer."} {
		file := foreign(t, g)
		for i := range file.Tensors {
			x := &file.Tensors[i]
			x.Name = base + strings.TrimPrefix(x.Name, "transformer.")
		}
		if err := weights.Write(nil, path, file); err != nil {
			t.Fatal(err)
		}
		task := Task{Graph: g}
		if err := task.Begin(path); err != nil {
			t.Fatal(err)
		}
		for part, name := range []string{"q", "k", "v"} {
			w, b := task.First["layer1.attention."+name+".w"], task.First["layer1.attention."+name+".b"]
			for out := range 4 {
				for in := range 4 {
					if want := float32(in*12 + part*4 + out); w[out*4+in] != want {
						t.Errorf("%s: weight of output %d, input %d is %v, want %v", name, out, in, w[out*4+in], want)
					}
				}
				if want := float32(part*4 + out); b[out] != want {
					t.Errorf("%s: bias %d is %v, want %v", name, out, b[out], want)
				}
			}
		}
	}
}

// A head may be missing, but nothing else, and nothing may be left over; each error is one line with counts and names.
func TestBeginWithOtherStateDicts(t *testing.T) {
	resnet, err := models.Build("resnet:1,1,1,1", models.Config{Batch: 2, Image: 40, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	gpt := smallGPT(t)
	without := func(g *graph.Graph, names ...string) weights.File {
		file := foreign(t, g)
		file.Tensors = slices.DeleteFunc(file.Tensors, func(x weights.Tensor) bool {
			return slices.ContainsFunc(names, func(begin string) bool { return strings.HasPrefix(x.Name, begin) })
		})
		return file
	}
	with := func(g *graph.Graph, name string, shape ...int) weights.File {
		file := without(g, name)
		data := make([]float32, graph.Shape(shape).Elements())
		file.Tensors = append(file.Tensors, weights.Tensor{Name: name, Shape: shape, Data: data})
		return file
	}
	path := filepath.Join(t.TempDir(), "w")
	for what, c := range map[string]struct {
		g    *graph.Graph
		file weights.File
		want string // "": no error
	}{
		"whole":  {resnet, without(resnet), ""},
		"head":   {resnet, without(resnet, "fc."), ""},
		"count":  {resnet, with(resnet, "bn1.num_batches_tracked", 1), ""},
		"mask":   {gpt, with(gpt, "transformer.h.0.attn.bias", 1, 1, 3, 3), ""},
		"a half": {resnet, without(resnet, "fc.bias"), `1 tensors are missing \(fc.bias\) and 0 are left over`},
		"block": {resnet, without(resnet, "layer1.0.bn"),
			`for resnet:1,1,1,1 12 tensors are missing \(layer1.0.bn1.bias, .* and 4 more\) and 0 are left over`},
		"more": {resnet, with(resnet, "layer1.1.conv1.weight", 4),
			`0 tensors are missing and 1 are left over \(layer1.1.conv1.weight\)`},
		"classes": {resnet, with(resnet, "fc.bias", 7), `tensor fc.bias has shape \[7\], want \[5\] for resnet`},
		"layout": {gpt, with(gpt, "transformer.h.0.mlp.c_fc.weight", 16, 4),
			`c_fc.weight has shape \[16 4\], want \[4 16\]`},
		"untied": {gpt, with(gpt, "lm_head.weight", 9, 4), `lm_head.weight is not that of transformer.wte.weight`},
	} {
		if err := weights.Write(nil, path, c.file); err != nil {
			t.Fatal(err)
		}
		task := Task{Graph: c.g}
		err := task.Begin(path)
		expression := regexp.MustCompile("^" + regexp.QuoteMeta(path) + ": .*" + c.want)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.want != "" && (err == nil || !expression.MatchString(err.Error())):
			t.Errorf("%s: %v, want an error with %s", what, err, c.want)
		}
	}
}

// A state_dict of a module in DataParallel has its names behind a prefix, for networks with names of torch as for
// others. A file of which one name has none, or a graph that has such names itself, is taken as it is.
func TestBeginWithWrappedStateDicts(t *testing.T) {
	long.Only(t)
	mlp, err := models.Build("mlp", models.Config{Batch: 2, Image: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []*graph.Graph{smallGPT(t), mlp} {
		name := g.Name
		path := filepath.Join(t.TempDir(), "w")
		begin := func(file weights.File) (map[string][]float32, error) {
			if err := weights.Write(nil, path, file); err != nil {
				t.Fatal(err)
			}
			task := Task{Graph: g}
			err := task.Begin(path)
			return task.First, err
		}
		var file weights.File
		if shapes, names := wholeShapes(g); models.TorchOf(g.Name, names) != nil {
			file = foreign(t, g)
		} else {
			for _, name := range names {
				file.Tensors = append(file.Tensors, weights.Tensor{Name: name, Shape: shapes[name],
					Data: make([]float32, shapes[name].Elements())})
			}
		}
		for i := range file.Tensors {
			for k := range file.Tensors[i].Data {
				file.Tensors[i].Data[k] = float32(i + k)
			}
		}
		want, err := begin(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range file.Tensors {
			file.Tensors[i].Name = "module." + file.Tensors[i].Name
		}
		got, err := begin(file)
		if diff := cmp.Diff(want, got); err != nil || diff != "" || len(got) == 0 {
			t.Errorf("%s: %v, contents (-bare +wrapped):\n%s", name, err, diff)
		}
		file.Tensors[0].Name = "other"
		if got, err := begin(file); err == nil {
			t.Errorf("%s: one name has no prefix, and it begins with %d tensors", name, len(got))
		}
	}
	b := graph.NewBuilder("own")
	b.Persistent("module.w", graph.Parameter, graph.Shape{2}, graph.Init{Kind: graph.InitZero})
	task := Task{Graph: b.Peek()}
	file := task.unwrapped(weights.File{Tensors: []weights.Tensor{{Name: "module.w"}}})
	if file.Tensors[0].Name != "module.w" {
		t.Errorf("a graph's own name became %s", file.Tensors[0].Name)
	}
	b = graph.NewBuilder("bare")
	b.Persistent("w", graph.Parameter, graph.Shape{2}, graph.Init{Kind: graph.InitZero})
	task.Graph = b.Peek()
	for _, before := range []string{"model.module.", "base_model.model.", "net.", "model._orig_mod."} {
		file = task.unwrapped(weights.File{Tensors: []weights.Tensor{{Name: before + "w"}, {Name: before + "b"}}})
		if file.Tensors[0].Name != "w" || file.Tensors[1].Name != "b" {
			t.Errorf("names behind %s became %s and %s", before, file.Tensors[0].Name, file.Tensors[1].Name)
		}
	}
	file = task.unwrapped(weights.File{Tensors: []weights.Tensor{{Name: "model.x"}, {Name: "model.b"}}})
	if file.Tensors[0].Name != "model.x" {
		t.Errorf("names of another network became %s", file.Tensors[0].Name)
	}
}
