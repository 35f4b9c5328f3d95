package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tensile/data/weights"
	"tensile/graph"
	"tensile/models"
)

// wholeShapes returns the shapes of what files hold of a graph, by name, and the names in the order of the graph.
func wholeShapes(g *graph.Graph) (shapes map[string]graph.Shape, names []string) {
	all := shapesOf(g)
	shapes = make(map[string]graph.Shape)
	for _, s := range g.Storages {
		if !s.Role.Persistent() {
			continue
		}
		name := nameOf(&s)
		shape, seen := shapes[name]
		switch {
		case !seen:
			shapes[name] = slices.Clone(all[s.ID])
			names = append(names, name)
		case len(shape) > 0: // another part, along the first dimension
			shape[0] += all[s.ID][0]
		}
	}
	return shapes, names
}

// unwrapped returns a file without the beginning that all of its names share if a module was wrapped (module., model.,
// _orig_mod., base_model.model.), as far as names are the network's without it, unless some are with it.
func (t *Task) unwrapped(file weights.File) weights.File {
	shapes, names := wholeShapes(t.Graph)
	known := make(map[string]bool)
	for name := range shapes {
		known[name] = true
	}
	if torch := models.TorchOf(t.Graph.Name, names); torch != nil {
		for _, f := range torch.Names {
			known[f.Name], known[strings.TrimPrefix(f.Name, torch.Base)] = true, true
		}
	}
	if len(file.Tensors) == 0 {
		return file
	}
	isKnown := func(x weights.Tensor) bool { return known[torchName(x.Name)] || known[x.Name] }
	if slices.ContainsFunc(file.Tensors, isKnown) {
		return file
	}
	bare := weights.File{Metadata: file.Metadata, Note: file.Note, Tensors: slices.Clone(file.Tensors)}
	for {
		part, _, found := strings.Cut(bare.Tensors[0].Name, ".")
		for i, x := range bare.Tensors {
			name, has := strings.CutPrefix(x.Name, part+".")
			if !found || !has {
				return file
			}
			bare.Tensors[i].Name = name
		}
		if slices.ContainsFunc(bare.Tensors, isKnown) {
			return bare
		}
	}
}

// translated returns a file under our names if it is a state_dict of torchvision or transformers for the network, and
// as it is if not. Of such a one nothing but a head may be missing, and nothing be left over.
func (t *Task) translated(file weights.File) (weights.File, error) {
	shapes, names := wholeShapes(t.Graph)
	torch := models.TorchOf(t.Graph.Name, names)
	if torch == nil {
		return file, nil
	}
	theirs := make(map[string]weights.Tensor)
	for _, x := range file.Tensors {
		theirs[torchName(x.Name)] = x
	}
	find := func(name string) (weights.Tensor, string) {
		if x, ok := theirs[name]; ok {
			return x, name
		}
		short := strings.TrimPrefix(name, torch.Base)
		return theirs[short], short
	}
	out := weights.File{Metadata: file.Metadata, Note: file.Note}
	used := make(map[string]bool)
	var missing, heads []string
	for _, name := range names {
		f, known := torch.Names[name]
		_, own := theirs[name]
		if !known || own {
			continue
		}
		x, as := find(f.Name)
		if x.Name == "" {
			if f.Head {
				heads = append(heads, f.Name)
			} else {
				missing = append(missing, f.Name)
			}
			continue
		}
		data, err := f.Take(x, shapes[name])
		if err != nil {
			return file, fmt.Errorf("%w for %s: it is of another size; leave the last layers out to have them "+
				"made up", err, t.Graph.Name)
		}
		used[as] = true
		out.Tensors = append(out.Tensors, weights.Tensor{Name: name, Shape: shapes[name], Data: data})
	}
	if len(used) == 0 {
		return file, nil
	}
	for name, like := range torch.Tied {
		x, as := find(name)
		first, _ := find(like)
		if x.Name != "" && first.Name != "" && !slices.Equal(x.Data, first.Data) {
			return file, fmt.Errorf("tensor %s is not that of %s, which %s has in its place: it is of another network",
				x.Name, first.Name, t.Graph.Name)
		}
		used[as] = true
	}
	var left []string
	headless := true // no head is there
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if _, own := shapes[name]; own {
			out.Tensors = append(out.Tensors, theirs[name])
		} else if !used[name] && !torch.Ignores(name) {
			left = append(left, name)
		}
	}
	for _, f := range torch.Names {
		headless = headless && !(f.Head && used[f.Name])
	}
	if !headless {
		missing = append(missing, heads...)
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if len(missing)+len(left) > 0 {
		return file, fmt.Errorf("for %s %d tensors are missing%s and %d are left over%s: it is of another network",
			t.Graph.Name, len(missing), named(missing), len(left), named(left))
	}
	return out, nil
}

// foreign returns a file under the names of torchvision or transformers if they have any for the network, so that
// load_state_dict takes it. States of the optimizer keep their names.
func (t *Task) foreign(file weights.File) weights.File {
	shapes, names := wholeShapes(t.Graph)
	torch := models.TorchOf(t.Graph.Name, names)
	if torch == nil {
		return file
	}
	out := weights.File{Metadata: file.Metadata}
	theirs := make(map[string]*weights.Tensor)
	for _, x := range file.Tensors {
		f, known := torch.Names[x.Name]
		if !known {
			out.Tensors = append(out.Tensors, x)
			continue
		}
		if theirs[f.Name] == nil {
			theirs[f.Name] = new(weights.Tensor)
		}
		f.Put(theirs[f.Name], x.Data, shapes[x.Name])
	}
	for name, like := range torch.Tied {
		if x := theirs[like]; x != nil {
			out.Tensors = append(out.Tensors, weights.Tensor{Name: name, Shape: x.Shape, Data: x.Data})
		}
	}
	for _, x := range theirs {
		out.Tensors = append(out.Tensors, *x)
	}
	return out
}

// Saved reads a file that Save has written, and returns its tensors by our names.
func (t *Task) Saved(path string) (map[string][]float32, error) {
	file, err := t.read(path)
	tensors := make(map[string][]float32)
	for _, x := range file.Tensors {
		tensors[x.Name] = x.Data
	}
	return tensors, err
}

func named(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + listed(names) + ")"
}

// torchName is a name with the words for scale and shift that transformers has had since 2019.
func torchName(name string) string {
	if s, is := strings.CutSuffix(name, ".LayerNorm.gamma"); is {
		return s + ".LayerNorm.weight"
	}
	if s, is := strings.CutSuffix(name, ".LayerNorm.beta"); is {
		return s + ".LayerNorm.bias"
	}
	return name
}
