package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"tensile/autodiff"
	"tensile/data"
	"tensile/graph"
	"tensile/models"
)

// Workload is a set of jobs that train together.
type Workload []Task

// Task is one job of a workload.
type Task struct {
	Name  string // of the job
	Model string
	Graph *graph.Graph
	Seed  uint64        // of weights, dropout and the order of examples
	Data  *data.Dataset // nil: the graph's inputs are not images and labels, and noise is fed
}

// Settings are common to the tasks of a workload; zero fields take each model's defaults.
type Settings struct {
	Image, Channels, Classes, Batch int
	Optimizer                       autodiff.Optimizer
	Seed                            uint64
	DataDir                         string // "": a synthetic set per job
}

// Load builds the workload that names describe: a model or a file with a graph in JSON form, each with an optional
// number of copies, MODEL[:N].
func Load(names []string, s Settings) (Workload, error) {
	var w Workload
	var set *data.Dataset
	if s.DataDir != "" {
		var err error
		if set, err = data.Open(s.DataDir, s.Seed); err != nil {
			return nil, err
		}
		channels, height, width := set.Shape()
		if s.Image != 0 && (s.Image != height || s.Image != width) {
			return nil, set.CheckImage(s.Image, s.Image)
		}
		s.Image, s.Channels, s.Classes = height, channels, or(s.Classes, set.Classes())
		if s.Classes < set.Classes() {
			return nil, fmt.Errorf("%s has %d classes: leave --classes out or set it to %d or more", set.Name(), set.Classes(), set.Classes())
		}
	}
	for _, name := range names {
		model, copies, err := split(name)
		if err != nil {
			return nil, err
		}
		g, err := build(model, s)
		if err != nil {
			return nil, err
		}
		for range copies {
			t := Task{Name: g.Name, Model: g.Name, Graph: g, Seed: s.Seed + uint64(len(w)), Data: set}
			if t.Data == nil {
				t.Data = synthetic(g, s.Seed)
			}
			w = append(w, t)
		}
	}
	w.number()
	return w, nil
}

// split takes the number of copies off a name. A number of blocks per stage, as in resnet:2,2,2,2, is not one.
func split(name string) (model string, copies int, err error) {
	head, tail, found := cutLast(name, ":")
	if !found || strings.Contains(tail, ",") {
		return name, 1, nil
	}
	const most = 1000
	n, err := strconv.Atoi(tail)
	if err != nil || n < 1 || n > most {
		return "", 0, fmt.Errorf("model %q: the number of copies after the colon must be 1 to %d", name, most)
	}
	return head, n, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func build(model string, s Settings) (*graph.Graph, error) {
	if strings.HasSuffix(model, ".json") {
		return readGraph(model)
	}
	return models.Build(model, models.Config{Image: s.Image, Channels: s.Channels, Classes: s.Classes, Batch: s.Batch, Optimizer: s.Optimizer})
}

func readGraph(path string) (*graph.Graph, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	g, err := graph.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, nil
}

// synthetic returns a set that fits a graph whose inputs are images and labels, or nil.
func synthetic(g *graph.Graph, seed uint64) *data.Dataset {
	in := findInputs(g)
	if in.images == nil || in.classes == 0 || in.count != 2 {
		return nil
	}
	return data.Synthetic(in.images[1], in.images[2], in.images[3], in.classes, seed)
}

// taskInputs is what a graph wants to be fed.
type taskInputs struct {
	count        int             // of input storages
	images       graph.Shape     // N, C, H, W of the first input of that form; nil: none
	labelStorage graph.StorageID // the labels of the loss, or -1
	classes      int
}

func findInputs(g *graph.Graph) taskInputs {
	in := taskInputs{labelStorage: -1}
	for _, s := range g.Storages {
		if s.Role == graph.Input {
			in.count++
		}
	}
	for _, t := range g.Tensors {
		s := g.Storages[t.Storage]
		if s.Role == graph.Input && len(t.Shape) == 4 && s.Bytes == t.Bytes() && in.images == nil {
			in.images = t.Shape
		}
	}
	for _, op := range g.Ops {
		if op.Kind == graph.SoftmaxXent {
			in.labelStorage = g.Tensors[op.Inputs[1]].Storage
			in.classes = g.Tensors[op.Inputs[0]].Shape[1]
		}
	}
	return in
}

// number gives jobs of the same model different names.
func (w Workload) number() {
	count := make(map[string]int)
	for _, t := range w {
		count[t.Model]++
	}
	seen := make(map[string]int)
	for i := range w {
		if seen[w[i].Model]++; count[w[i].Model] > 1 {
			w[i].Name = fmt.Sprintf("%s.%d", w[i].Model, seen[w[i].Model])
		}
	}
}

func or(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}
