package bench

import (
	"fmt"

	"tensile/autodiff"
	"tensile/data"
	"tensile/graph"
	"tensile/task"
)

// Workload is a set of jobs that train together.
type Workload []Task

// Task is one job of a workload.
type Task struct {
	Name  string // of the job
	Model string
	Graph *graph.Graph
	Seed  uint64        // of weights, dropout and the order of examples
	Data  *data.Dataset // nil: the graph's inputs are not images and labels
}

// Settings are common to the tasks of a workload; zero fields take each model's defaults.
type Settings struct {
	Image, Channels, Classes int // of networks that read images
	Sequence, Vocabulary     int // of networks that read sequences
	Batch                    int
	Optimizer                autodiff.Optimizer
	Seed                     uint64
	DataDir                  string // "": a synthetic set per job
}

// Load builds the workload that names describe: a model or a file with a graph in JSON form, each with an optional
// number of copies, MODEL[:N].
func Load(names []string, s Settings) (Workload, error) {
	var w Workload
	chosen, copies, err := splitAll(names)
	if err != nil {
		return nil, err
	}
	sequences, err := readers(chosen, s)
	if err != nil {
		return nil, err
	}
	set, err := s.open()
	if err != nil {
		return nil, err
	}
	for i, model := range chosen {
		g, err := build(model, s.own(model, sequences))
		if err != nil {
			return nil, err
		}
		if set != nil {
			if err := task.Fit(g, set); err != nil {
				return nil, err
			}
		}
		for range copies[i] {
			t := Task{Name: g.Name, Model: g.Name, Graph: g, Seed: s.Seed + uint64(len(w)), Data: set}
			if t.Data == nil {
				t.Data = task.Synthetic(g, t.Seed)
			}
			w = append(w, t)
		}
	}
	w.number()
	return w, nil
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
		return nil, fmt.Errorf("%s images have %d channels, not %d: leave --channels out", set.Name(), channels, s.Channels)
	case s.Classes != 0 && s.Classes < set.Classes():
		return nil, fmt.Errorf("%s has %d classes: leave --classes out or set it to %d or more", set.Name(), set.Classes(), set.Classes())
	}
	s.Image, s.Channels, s.Classes = height, channels, or(s.Classes, set.Classes())
	return set, nil
}

// number gives every job a name of its own: that of its model, with a number where several jobs are of one model.
func (w Workload) number() {
	count := make(map[string]int)
	for _, t := range w {
		count[t.Model]++
	}
	taken := make(map[string]bool)
	for model, n := range count {
		taken[model] = n == 1
	}
	last := make(map[string]int)
	for i, t := range w {
		for count[t.Model] > 1 && (w[i].Name == t.Model || taken[w[i].Name]) {
			last[t.Model]++
			w[i].Name = fmt.Sprintf("%s.%d", t.Model, last[t.Model])
		}
		taken[w[i].Name] = true
	}
}

func or(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}
