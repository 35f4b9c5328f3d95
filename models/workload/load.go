package workload

import (
	"fmt"

	"tensile/graph/autodiff"
	"tensile/models/passes"
	"tensile/models/task"
)

// Settings are common to the tasks of a workload; zero fields take each model's defaults.
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

// Load builds the tasks that names describe. A name is MODEL[:N]: a network or the path of a .json graph, and how many
// copies of it train. Each task has a name and a seed of its own; copies share their graph, and all share the data of a
// folder or file.
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
	from, err := s.open()
	if err != nil {
		return nil, err
	}
	for i, model := range chosen {
		own := s.settingsOf(model, sequences)
		given := own.Image
		if reads, network := sequences[model]; network {
			if own, err = from.sized(own, reads); err != nil {
				return nil, err
			}
		}
		b, err := build(model, own)
		if err != nil && own.Image != given {
			return nil, fmt.Errorf("%s: %w", from.arrays.Name(), err)
		}
		if err != nil {
			return nil, err
		}
		fitting, err := from.fit(b.Graph)
		if err != nil {
			return nil, err
		}
		if fitting.arrays != nil {
			line, err := task.OneClass(b.Graph, fitting.arrays)
			if err != nil {
				return nil, err
			}
			if line != "" {
				b.notes = append(b.notes, line)
			}
		}
		if fitting.set != nil && fitting.set.Note() != "" {
			b.notes = append(b.notes, fitting.set.Note())
		}
		if b.Graph, err = autodiff.Replicate(b.Graph, max(1, s.Replicas)); err != nil {
			return nil, err
		}
		g, outcomes, err := passes.Apply(b.Graph, s.Passes)
		if err != nil {
			return nil, err
		}
		for range copies[i] {
			t := task.Task{Name: g.Name, Model: g.Name, Graph: g, Passes: outcomes, Seed: s.Seed + uint64(len(tasks)),
				Data: fitting.set, Arrays: fitting.arrays}
			t.Source, t.Notes = b.file, b.notes
			if f := b.recorded; f != nil {
				t.Latency, t.Held, t.Least = f.Recorded.Latency, f.Recorded.Held, f.Hello.Device.Least
			}
			if t.Data == nil && t.Arrays == nil {
				t.Data = task.Synthetic(g, t.Seed)
			}
			tasks = append(tasks, t)
		}
	}
	number(tasks)
	return tasks, nil
}

// Replicas returns the tasks with every one whose graph is of a replica as often as its graph says: with equal first
// weights, and a name, masks of dropout and batches of its own for each.
func Replicas(tasks []task.Task) []task.Task {
	var all []task.Task
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
