package workload

import (
	"cmp"
	"fmt"

	"tensile/autodiff"
	"tensile/data"
	"tensile/passes"
	"tensile/task"
)

// Settings are common to the tasks of a workload; zero fields take each model's defaults.
type Settings struct {
	Image, Channels, Classes int // of networks that read images
	Sequence, Vocabulary     int // of networks that read sequences
	Batch                    int
	Optimizer                autodiff.Optimizer
	Passes                   []string // rewrites of the graphs, by name
	Seed                     uint64   // of the first task: weights, dropout and the order of examples
	DataDir                  string   // "": a synthetic set per job
	Loss                     string   // of ONNX files: see onnx.Training
	Order                    string   // of ONNX files: see onnx.Training
}

// Load builds the tasks that names describe. A name is MODEL[:N]: a network or the path of a .json graph, and how many
// copies of it train. Each task has a name and a seed of its own; copies share their graph, and all share the data of a
// folder.
func Load(names []string, s Settings) ([]task.Task, error) {
	var tasks []task.Task
	chosen, copies, err := splitAll(names)
	if err != nil {
		return nil, err
	}
	sequences, err := sequenceReaders(chosen, s)
	if err != nil {
		return nil, err
	}
	set, err := s.open()
	if err != nil {
		return nil, err
	}
	for i, model := range chosen {
		b, err := build(model, s.settingsOf(model, sequences))
		if err != nil {
			return nil, err
		}
		if set != nil {
			if err := task.Fit(b.Graph, set); err != nil {
				return nil, err
			}
		}
		g, outcomes, err := passes.Apply(b.Graph, s.Passes)
		if err != nil {
			return nil, err
		}
		for range copies[i] {
			t := task.Task{Name: g.Name, Model: g.Name, Graph: g, Passes: outcomes, Seed: s.Seed + uint64(len(tasks)),
				Data: set}
			t.Source = b.file
			if f := b.recorded; f != nil {
				t.Latency, t.Held, t.Least = f.Recorded.Latency, f.Recorded.Held, f.Hello.Device.Least
			}
			if t.Data == nil {
				t.Data = task.Synthetic(g, t.Seed)
			}
			tasks = append(tasks, t)
		}
	}
	number(tasks)
	return tasks, nil
}

// open opens the data folder, if one is named, and sets the sizes that follow from it.
func (s *Settings) open() (*data.Dataset, error) {
	if s.DataDir == "" {
		return nil, nil
	}
	set, err := data.Open(s.DataDir, s.Seed)
	if err != nil {
		return nil, err
	}
	channels, height, width := set.Shape()
	switch {
	case s.Image != 0 && (s.Image != height || s.Image != width):
		return nil, set.CheckImage(s.Image, s.Image)
	case s.Channels != 0 && s.Channels != channels:
		return nil, fmt.Errorf("%s images have %d channels, not %d: leave --channels out", set.Name(), channels,
			s.Channels)
	case s.Classes != 0 && s.Classes < set.Classes():
		return nil, fmt.Errorf("%s has %d classes: leave --classes out or set it to %d or more", set.Name(),
			set.Classes(), set.Classes())
	}
	s.Image, s.Channels, s.Classes = height, channels, cmp.Or(s.Classes, set.Classes())
	return set, nil
}

// number gives every task a name of its own: that of its model, with a number where several tasks are of one model. A
// model that is called like such a name keeps it.
func number(tasks []task.Task) {
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
