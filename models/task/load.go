package task

import (
	"fmt"
	"strconv"
	"strings"

	"tensile/graph/autodiff"
	"tensile/models/passes"
)

// Settings are common to the tasks of a command line; zero fields take each model's defaults.
type Settings struct {
	Image, Channels, Classes int // Sizes of networks that read images.
	Sequence, Vocabulary     int // Sizes of networks that read sequences.
	Batch                    int
	Optimizer                autodiff.Optimizer
	Passes                   []string // rewrites of the graphs, by name
	Replicas                 int      // Replicas of each job, as set in the graphs; 0 means 1.
	Seed                     uint64   // Seed of the first task: weights, dropout and order of examples.
	Data                     string   // a folder, or a file of arrays; "": a synthetic set per job
	Loss                     string   // Loss for ONNX files: see onnx.Training.
	Order                    string   // Order of ops in ONNX files: see onnx.Training.
}

// Load builds the tasks that names describe. A name is MODEL[:N]: what a source of work makes a graph of, and how many
// copies of it train. Each task has a name and a seed of its own; copies share their graph, and all share the data of a
// folder or file.
func Load(names []string, s Settings) ([]Task, error) {
	models, err := splitAll(names)
	if err != nil {
		return nil, err
	}
	if err := readSequences(models, s); err != nil {
		return nil, err
	}
	from, err := openExamples(nil, s.Data, s.Seed)
	if err != nil {
		return nil, err
	}
	if s, err = from.sizedBySet(s); err != nil {
		return nil, err
	}
	var tasks []Task
	for i := range models {
		t, err := models[i].task(s.applyingTo(&models[i], models), from)
		if err != nil {
			return nil, err
		}
		for range models[i].copies {
			one := t
			if one.Seed = s.Seed + uint64(len(tasks)); one.Data == nil && one.Arrays == nil {
				one.Data = Synthetic(one.Graph, one.Seed)
			}
			tasks = append(tasks, one)
		}
	}
	number(tasks)
	return tasks, nil
}

// task makes the task of a model, which may learn from examples.
func (m *model) task(s Settings, from examples) (Task, error) {
	own, err := s, error(nil)
	if m.source == &network {
		if own, err = from.sizedByArrays(own, m.sequences); err != nil {
			return Task{}, err
		}
	}
	b, err := m.build(own)
	if err != nil && own.Image != s.Image {
		return Task{}, fmt.Errorf("%s: %w", from.arrays.Name(), err)
	}
	if err != nil {
		return Task{}, err
	}
	t := Task{Source: b.file, Notes: b.notes}
	if err := from.feed(&t, b.Graph); err != nil {
		return Task{}, err
	}
	if t.Arrays != nil {
		line, err := OneClass(b.Graph, t.Arrays)
		if err != nil {
			return Task{}, err
		}
		if line != "" {
			t.Notes = append(t.Notes, line)
		}
	}
	if b.Graph, err = autodiff.Replicate(b.Graph, max(1, s.Replicas)); err != nil {
		return Task{}, err
	}
	if t.Graph, t.Passes, err = passes.Apply(b.Graph, s.Passes); err != nil {
		return Task{}, err
	}
	t.Name, t.Model = t.Graph.Name, t.Graph.Name
	if f := b.recorded; f != nil {
		t.Latency, t.Held, t.Least = f.Recorded.Latency, f.Recorded.Held, f.Hello.Device.Least
	}
	return t, nil
}

// model is what a name on a command line means.
type model struct {
	name      string
	copies    int
	source    *source
	sequences bool // Of a network: it reads these.
}

// maxCopies limits a typing error, not a use.
const maxCopies = 1000

// splitAll cuts the number of copies off each name, and finds its source. A number of blocks per stage, as in
// resnet:2,2,2,2, is no number of copies.
func splitAll(names []string) ([]model, error) {
	var all []model
	for _, name := range names {
		m := model{name: name, copies: 1}
		if i := strings.LastIndex(name, ":"); i >= 0 && !strings.Contains(name[i:], ",") {
			var err error
			m.name = name[:i]
			if m.copies, err = strconv.Atoi(name[i+1:]); err != nil || m.copies < 1 || m.copies > maxCopies {
				return nil, fmt.Errorf("model %q: the number of copies after the colon must be 1 to %d", name,
					maxCopies)
			}
		}
		m.source = sourceOf(m.name)
		all = append(all, m)
	}
	return all, nil
}

// applyingTo returns the settings that apply to a model. Where some networks read images and others sequences, each
// gets the settings of its sort. Where all are of one sort, models.Build refuses a setting of the other.
func (s Settings) applyingTo(m *model, all []model) Settings {
	mixed := false
	for _, other := range all {
		mixed = mixed || other.source == &network && other.sequences != m.sequences
	}
	switch {
	case !mixed:
	case m.sequences:
		s.Image, s.Channels, s.Classes = 0, 0, 0
	default:
		s.Sequence, s.Vocabulary = 0, 0
	}
	return s
}

// Heeded returns an error for a size that none of the models heeds, as all are files, which have their sizes. An ONNX
// file may leave the batch and other extents open.
func (s Settings) Heeded(names []string) error {
	models, err := splitAll(names)
	if err != nil {
		return nil // Load says so
	}
	open := false
	for _, m := range models {
		if m.source == &network {
			return nil
		}
		open = open || m.source == &onnxFile
	}
	for _, size := range []struct {
		flag  string
		value int
		open  bool // an ONNX file may leave it open
	}{
		{"image", s.Image, false}, {"channels", s.Channels, false}, {"classes", s.Classes, false},
		{"vocabulary", s.Vocabulary, false}, {"batch", s.Batch, true}, {"sequence", s.Sequence, true},
	} {
		switch {
		case size.value == 0 || open && size.open:
		case open:
			return fmt.Errorf("%s has its sizes in the file: leave --%s out; what the file leaves open is given by "+
				"--batch and --sequence", names[0], size.flag)
		default:
			return fmt.Errorf("%s has its sizes in the file: leave --%s out", names[0], size.flag)
		}
	}
	return nil
}

// Replicas returns the tasks with every one whose graph is of a replica as often as its graph says: with equal first
// weights, and a name, masks of dropout and batches of its own for each.
func Replicas(tasks []Task) []Task {
	var all []Task
	for _, t := range tasks {
		name, n := t.Name, t.Graph.Replicas()
		for t.Replica = range n {
			if n > 1 {
				t.Name = fmt.Sprintf("%s@%d", name, t.Replica)
			}
			all = append(all, t)
		}
	}
	return all
}

// number gives every task a name of its own: that of its model, with a number where several tasks are of one model. A
// model that is called like such a name keeps it.
func number(tasks []Task) {
	count := make(map[string]int)
	for _, t := range tasks {
		count[t.Model]++
	}
	taken := make(map[string]bool)
	for model, n := range count {
		taken[model] = n == 1
	}
	last := make(map[string]int)
	for i := range tasks {
		t := &tasks[i]
		for count[t.Model] > 1 && (t.Name == t.Model || taken[t.Name]) {
			last[t.Model]++
			t.Name = fmt.Sprintf("%s.%d", t.Model, last[t.Model])
		}
		taken[t.Name] = true
	}
}
