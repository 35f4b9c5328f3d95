package task

import (
	"slices"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
)

// A parameter is told that no gradient has reached: one whose moments are zeros, or, without moments, one that is as it
// began. One that moved is not, nor one of which a part did.
func TestUnmoved(t *testing.T) {
	for _, optimizer := range []autodiff.Optimizer{autodiff.Adam{}, autodiff.Momentum{}, autodiff.SGD{}} {
		g, err := models.Build("lenet", models.Config{Batch: 2, Image: 12, Optimizer: optimizer.Recommended(1)})
		if err != nil {
			t.Fatal(err)
		}
		task := Task{Graph: g, Seed: 7}
		marks := task.Marks()
		var parameters []string
		ended := make(map[int32]string)
		for _, s := range g.Storages {
			if !s.Role.Persistent() {
				continue
			}
			content := make([]float32, s.Bytes/graph.ElementBytes)
			task.Init(s, content)
			ended[int32(s.ID)] = Digest(content)
			if s.Role == graph.Parameter {
				parameters = append(parameters, s.Name)
			}
		}
		if got := Unmoved(marks, ended); !slices.Equal(slices.Sorted(slices.Values(got)),
			slices.Sorted(slices.Values(parameters))) {
			t.Errorf("%T: where nothing moved, %v, want %v", optimizer, got, parameters)
		}
		ended[int32(marks[1].Storage)] = "other"
		if got := Unmoved(marks, ended); len(got) != len(parameters)-1 || slices.Contains(got, marks[1].Parameter) {
			t.Errorf("%T: where %s moved, %v", optimizer, marks[1].Parameter, got)
		}
		part := Mark{marks[0].Parameter, marks[0].Storage, "a part that moved"}
		for _, place := range []int{0, len(marks)} {
			twice := slices.Insert(slices.Clone(marks), place, part)
			if got := Unmoved(twice, ended); slices.Contains(got, part.Parameter) {
				t.Errorf("%T: %s is unmoved, of which a part moved", optimizer, part.Parameter)
			}
		}
	}
}

// Parameters that stay as they are because the learning rate is 0, be it as float32 alone, are not told.
func TestUnmovedAtRateZero(t *testing.T) {
	for _, rate := range []float64{0, 1e-50} {
		sgd, err := autodiff.ParseOptimizer("sgd", &rate)
		if err != nil {
			t.Fatal(err)
		}
		g, err := models.Build("lenet", models.Config{Batch: 2, Image: 12, Optimizer: sgd})
		if err != nil {
			t.Fatal(err)
		}
		if marks := (Task{Graph: g, Seed: 7}).Marks(); len(marks) > 0 {
			t.Errorf("rate %v: %d parameters have marks", rate, len(marks))
		}
	}
}
