package main

import (
	"context"
	"path/filepath"

	"tensile/controller/local"
	"tensile/models/task"
	"tensile/observe/report"
)

// testing returns the networks of a run, ready to be tried on the test images beside the data that they learn from; nil
// where there are none, where nothing computes, and for graphs of the user's own that cannot be tried, having no
// running statistics, for example.
func (f *runFlags) testing(w []task.Task) ([]*local.Evaluation, error) {
	if f.data == "" || f.simulated() {
		return nil, nil
	}
	var networks []*local.Evaluation
	for _, t := range w {
		if t.Data == nil {
			return nil, nil
		}
		test, err := t.Data.Test()
		if test == nil || err != nil {
			return nil, err
		}
		network, err := local.NewEvaluation(t, test)
		if err != nil {
			return nil, nil
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// keeps is where the weights go, "" for nowhere: where --save says, or, if the run is to look at what was learned,
// beside what is needed for the run.
func (t *training) keeps() string {
	switch {
	case t.saves():
		return t.flags.save
	case t.learn:
		return filepath.Join(t.dir, "weights.safetensors")
	}
	return ""
}

// read returns what the jobs have saved, by job and name.
func (t *training) read() ([]map[string][]float32, error) {
	learned := make([]map[string][]float32, len(t.session.Tasks))
	for i := range learned {
		job := &t.session.Tasks[i]
		var err error
		if learned[i], err = job.Saved(savedAs(t.keeps(), len(learned), job.Name)); err != nil {
			return nil, err
		}
	}
	return learned, nil
}

// measure tries the networks, one after the other and within the budget of the run, with what they learned.
func (t *training) measure(ctx context.Context, networks []*local.Evaluation, r *report.Training) error {
	for i, network := range networks {
		correct, err := network.Run(ctx, t.session.device, t.policy, t.budget, t.learned[i])
		if err != nil {
			return err
		}
		share := float64(correct) / float64(network.Images())
		r.Jobs[i].Accuracy, r.Jobs[i].TestImages = &share, network.Images()
	}
	return nil
}
