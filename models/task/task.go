package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tensile/data"
	"tensile/data/rooted"
	"tensile/data/weights"
	"tensile/device"
	"tensile/graph"
	"tensile/models/onnx"
	"tensile/models/passes"
)

// Task is a graph to be trained as a job.
type Task struct {
	Name  string // Name of the job.
	Model string // MODEL that the graph was made from.
	Graph *graph.Graph

	Passes []passes.Outcome // Passes that rewrote the graph.
	Notes  []string         // What a user should know before training, one line each.

	// Of a recorded graph: what its ops took, what the script has on the device beside it, and the size below which no
	// storage moves. nil and 0 of others.
	Latency     []time.Duration
	Held, Least graph.Bytes

	// Source is the ONNX file that the graph was made from: it has the constants of the graph, also where other weights
	// are named. "": it was made from none.
	Source string

	// Files are where all files of the task lie.
	Files *rooted.Files

	Seed uint64 // Seed of weights, dropout and noise.

	// Of a replica, of as many as its graph says: its number, from 0, and what takes the mean of a gradient over them
	// in an iteration, or ends with ctx. Replicas begin with the same weights; each has masks of dropout of its own,
	// and in turn one of the batches of the task without replicas. nil: nothing leads to the others, or nothing is
	// reduced.
	Replica int
	Mean    func(ctx context.Context, iteration int, name string, gradient []float32) error

	// Data are images and labels. nil: the graph's inputs are no such, or those of a file.
	Data *data.Dataset

	// Arrays hold examples by the names of the graph's inputs. nil: they come from Data, or are made up.
	Arrays *data.Arrays

	// First are first contents of persistent storages by their names, or of what they are parts of; others are made up
	// as the graph says.
	First map[string][]float32
}

// Open returns the task of a graph, named after it, on the data in a folder or a file of arrays, or, if path is "", on
// a synthetic set. The seed decides the order of examples too. All its files lie within folders.
func Open(in *rooted.Files, g *graph.Graph, seed uint64, path string) (t Task, err error) {
	t = Task{Name: g.Name, Model: g.Name, Graph: g, Files: in, Seed: seed}
	from, err := openExamples(in, path, seed)
	if err == nil {
		err = from.feed(&t, g)
	}
	if path == "" {
		t.Data = Synthetic(g, seed)
	}
	return t, err
}

// Init fills a persistent storage with its first content.
func (t Task) Init(s graph.Storage, to []float32) {
	if content, ok := t.First[nameOf(&s)]; ok {
		copy(to, content[s.Begin/graph.ElementBytes:])
		return
	}
	weights.Initialise(s, t.Seed, to)
}

// Begin has a task start with the tensors of a file of weights, such as one that File has made, and returns an error if
// the file does not fit, or lacks one that the graph wants of it. With path "" there is no file.
func (t *Task) Begin(path string) error {
	var file weights.File
	if path != "" && t.Graph.Opaque() {
		return fmt.Errorf("graph %s is what a script does, which fills what it trains itself: leave --weights out",
			t.Graph.Name)
	}
	if path != "" {
		var err error
		if file, err = t.read(path); err != nil {
			return err
		}
		if file.Note != "" {
			t.Notes = append(t.Notes, path+" "+file.Note)
		}
		t.First = make(map[string][]float32)
	}
	constants, err := t.constants(path)
	if err != nil {
		return err
	}
	tensors := make(map[string]weights.Tensor)
	for _, x := range file.Tensors {
		tensors[x.Name] = x
	}
	sizes, shapes := elements(t.Graph), shapesOf(t.Graph)
	for _, s := range t.Graph.Storages {
		if !s.Role.Persistent() {
			continue
		}
		if s.Init == nil { // a script fills it
			continue
		}
		name := nameOf(&s)
		x, found := tensors[name]
		switch want := sizes[name]; {
		case !found && constants[name] != nil:
			t.First[name] = constants[name]
		case !found && s.Init.Kind == graph.InitFile && path == "":
			return fmt.Errorf("graph %s has the first content of %s in a file: name that file with --weights",
				t.Graph.Name, name)
		case !found && s.Init.Kind == graph.InitFile:
			return fmt.Errorf("%s: there is no tensor %s, which graph %s begins with; it has %s: save its tensors "+
				"under the network's names", path, name, t.Graph.Name, listed(slices.Sorted(maps.Keys(tensors))))
		case found && len(x.Data) != want:
			return fmt.Errorf("%s: tensor %s has %d elements, and graph %s wants %d: it is of another network, or of "+
				"another size, such as --image or --classes", path, name, len(x.Data), t.Graph.Name, want)
		case found && s.PartOf == "" && len(x.Shape) > 1 && len(shapes[s.ID]) > 1 &&
			!slices.Equal(x.Shape, shapes[s.ID]):
			return fmt.Errorf("%s: tensor %s has shape %v, and graph %s wants %v: save it in that layout", path, name,
				x.Shape, t.Graph.Name, shapes[s.ID])
		case found:
			t.First[name] = x.Data
		}
	}
	if path != "" && len(t.First) == 0 {
		_, names := wholeShapes(t.Graph)
		return fmt.Errorf("%s: none of its %d tensors is called like a parameter of %s: it is of another network "+
			"(it has %s; the network has %s)", path, len(file.Tensors), t.Graph.Name,
			listed(slices.Sorted(maps.Keys(tensors))), listed(names))
	}
	return nil
}

// constants returns what the graph keeps of its ONNX file and never changes, such as masks, by name. A file of weights
// has no such tensors, as PyTorch has none of these names. The map is nil if the ONNX file is the file of weights.
func (t *Task) constants(path string) (map[string][]float32, error) {
	if t.Source == "" || t.Source == path {
		return nil, nil
	}
	file, err := t.read(t.Source)
	if err != nil {
		return nil, err
	}
	changed := make(map[string]bool)
	for _, x := range t.Graph.Tensors {
		if x.Version > 0 {
			changed[nameOf(&t.Graph.Storages[x.Storage])] = true
		}
	}
	constants := make(map[string][]float32)
	for _, x := range file.Tensors {
		if !changed[x.Name] {
			constants[x.Name] = x.Data
		}
	}
	return constants, nil
}

// read reads a file of weights: safetensors, a state_dict of torch, or the ONNX file that the graph was made from.
func (t *Task) read(path string) (weights.File, error) {
	if !onnx.IsFile(path) {
		file, err := weights.Load(t.Files, path)
		if err != nil {
			return file, err
		}
		if file, err = t.translated(t.unwrapped(file)); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return file, err
	}
	m, err := onnx.Read(t.Files, path)
	if err != nil {
		return weights.File{}, err
	}
	contents, err := onnx.Contents(m, t.Graph)
	if err != nil {
		return weights.File{}, fmt.Errorf("%s: %w", path, err)
	}
	var file weights.File
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		file.Tensors = append(file.Tensors, weights.Tensor{Name: name, Data: contents[name]})
	}
	return file, nil
}

// Save writes what was kept of a task (File) at a path: as safetensors, under the names of torchvision or transformers
// for the networks that have such, or, if the path ends in .onnx, as the model in
// the ONNX file that the task began with, with its initializers trained, in PATH.data if they are large.
func (t *Task) Save(path, began string, kept weights.File) error {
	if !onnx.IsFile(path) {
		return weights.Write(t.Files, path, t.foreign(kept))
	}
	if err := Savable(path, began); err != nil {
		return err
	}
	m, err := onnx.Read(t.Files, began)
	if err != nil {
		return err
	}
	for _, x := range kept.Tensors {
		m.Replace(x.Name, x.Data)
	}
	text, beside := m.Files(filepath.Base(path)+".data", onnx.MostInside)
	if beside != nil {
		if err := weights.Replace(t.Files, path+".data", beside...); err != nil {
			return err
		}
	}
	return weights.Replace(t.Files, path, text)
}

// SavedBytes is about how many bytes Save writes at a path of a task that began with a file.
func (t Task) SavedBytes(path, began string) graph.Bytes {
	if onnx.IsFile(path) {
		info, err := t.Files.Stat(began)
		if err != nil {
			return 0
		}
		// its tensors may lie in other files
		return max(graph.Bytes(info.Size()), graph.Bytes(t.Graph.Parameters())*graph.ElementBytes)
	}
	var sum graph.Bytes
	for _, s := range t.Graph.Storages {
		if s.Role.Persistent() {
			sum += s.Bytes
		}
	}
	return sum
}

// Savable returns the error that Save would give of a path, so that it is known before training.
func Savable(path, began string) error {
	if onnx.IsFile(path) && !onnx.IsFile(began) {
		return fmt.Errorf("save %s: only a job that begins with an .onnx file is saved as one: name a .safetensors "+
			"file", path)
	}
	if end := strings.ToLower(filepath.Ext(path)); end == ".pt" || end == ".pth" {
		return fmt.Errorf("save %s: what is saved is no file of torch.save: name a .safetensors file", path)
	}
	return nil
}

// Restore has a task start with the tensors of a checkpoint, and returns an error unless there is one of the right size
// for each persistent storage.
func (t *Task) Restore(tensors []weights.Tensor) error {
	first := make(map[string][]float32)
	for _, x := range tensors {
		first[x.Name] = x.Data
	}
	sizes := elements(t.Graph)
	for _, s := range t.Graph.Storages {
		if !s.Role.Persistent() {
			continue
		}
		name := nameOf(&s)
		if content, found := first[name]; !found {
			return fmt.Errorf("there is no tensor %s, which graph %s has", name, t.Graph.Name)
		} else if want := sizes[name]; len(content) != want {
			return fmt.Errorf("tensor %s has %d elements, and graph %s wants %d", name, len(content), t.Graph.Name,
				want)
		}
	}
	t.First = first
	return nil
}

// nameOf is the name under which files hold a persistent storage.
func nameOf(s *graph.Storage) string {
	if s.PartOf != "" {
		return s.PartOf
	}
	return s.Name
}

// elements returns the number of elements of each tensor that files hold of a graph.
func elements(g *graph.Graph) map[string]int {
	sizes := make(map[string]int)
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			sizes[nameOf(&s)] += int(s.Bytes / graph.ElementBytes)
		}
	}
	return sizes
}

// Reader returns a reader of a task's outputs, which hands on the loss of every iteration: the first element of the
// first output.
func (t Task) Reader(each func(iteration int, loss float32)) func(iteration int, s graph.StorageID, from []float32) {
	loss := t.Graph.OutputStorage()
	return func(iteration int, s graph.StorageID, from []float32) {
		if s == loss {
			each(iteration, from[0])
		}
	}
}

// Masks is the seed of the task's dropout.
func (t Task) Masks() uint64 {
	const step = 0x9e3779b97f4a7c15 // odd, so that no two replicas have one seed
	return t.Seed + uint64(t.Replica)*step
}

// Feeder returns the loader of a task's inputs. Replica r of N gets in iteration i what the task without replicas gets
// in iteration i*N + r. It takes no memory before it is first called, which a device without data never does. Where a
// file cannot be read it fills zeros and calls fail: what is trained from then on is not to be used. A
// data.PassedOverError is told so, too, of a batch that is whole.
func (t Task) Feeder(fail func(error)) func(iteration int, s graph.StorageID, to device.Memory) {
	feed, replicas := t.feeder(fail), t.Graph.Replicas()
	return func(iteration int, s graph.StorageID, to device.Memory) { feed(iteration*replicas+t.Replica, s, to) }
}

// feeder returns the loader of a task without replicas: arrays of a file, images and labels of the data set, made-up
// sentences for a graph that reads such, or noise for other inputs.
func (t Task) feeder(fail func(error)) func(iteration int, s graph.StorageID, to device.Memory) {
	if t.Arrays != nil {
		f, err := bind(t.Graph, t.Arrays)
		if err != nil {
			panic(fmt.Sprintf("task: %s does not fit its arrays: %v", t.Name, err)) // FitArrays has said no
		}
		return f.feeder(fail)
	}
	c, ok := findClassifier(t.Graph)
	if !ok || t.Data == nil {
		if r := newReader(t.Graph, t.Seed); r != nil {
			return r.feed
		}
		return t.noise(classesOf(t.Graph))
	}
	var images, labels []float32
	filled := -1
	return func(iteration int, s graph.StorageID, to device.Memory) {
		if images == nil {
			images, labels = make([]float32, c.shape.Elements()), make([]float32, c.shape[0])
		}
		if filled != iteration { // one fill serves both inputs of an iteration
			if err := t.Data.Fill(iteration, images, labels); err != nil {
				if _, over := errors.AsType[*data.PassedOverError](err); !over {
					clear(images)
					clear(labels)
				}
				fail(err)
			}
			filled = iteration
		}
		if s == c.labels {
			copy(to.Float32(), labels)
		} else {
			copy(to.Float32(), images)
		}
	}
}

// noise fills inputs of any shape, the same in every run: classes for labels, rows for indices, normal values
// elsewhere. Counts are those of masks: 0 or 1, and 1 at the begin of each row, as of many a sum is taken.
func (t Task) noise(classes map[graph.StorageID]int) func(iteration int, s graph.StorageID, to device.Memory) {
	types, shapes := t.Graph.DTypes(), inputShapes(t.Graph)
	return func(iteration int, s graph.StorageID, to device.Memory) {
		random := rand.New(rand.NewPCG(t.Seed, uint64(iteration)<<32|uint64(s)))
		n, whole := classes[s]
		row := 0
		if shape := shapes[s]; t.Graph.Storages[s].Holds == graph.Counts && len(shape) > 0 {
			row = shape[len(shape)-1]
		}
		fill(to, types[s], func(i int) float64 {
			switch {
			case row > 0 && i%row == 0:
				return 1
			case row > 0:
				return float64(random.IntN(2))
			case whole:
				return float64(random.IntN(n))
			}
			return random.NormFloat64()
		})
	}
}

// fill sets each element of a storage.
func fill(to device.Memory, dtype graph.DType, at func(i int) float64) {
	switch dtype {
	case graph.Float32:
		for i, values := 0, to.Float32(); i < len(values); i++ {
			values[i] = float32(at(i))
		}
	case graph.Int64:
		for i, values := 0, to.Int64(); i < len(values); i++ {
			values[i] = int64(at(i))
		}
	default:
		panic(fmt.Sprintf("task: no device feeds inputs of %v", dtype))
	}
}
