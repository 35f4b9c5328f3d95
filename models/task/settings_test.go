package task

import (
	"testing"

	"tensile/graph/autodiff"
	"tensile/models"
)

func TestSettings(t *testing.T) {
	for _, test := range []struct {
		model string
		c     models.Config
		want  string
	}{
		{"lenet", models.Config{Batch: 4, Image: 12, Classes: 3},
			"--batch 4 --channels 1 --image 12 --classes 3 --optimizer adam --lr 0.001 --replicas 1"},
		{"lenet", models.Config{Batch: 2, Optimizer: autodiff.Momentum{LearningRate: 0.5}},
			"--batch 2 --channels 1 --image 28 --classes 10 --optimizer momentum --lr 0.5 --replicas 1"},
		{"gpt:1,8,2", models.Config{Batch: 2, Sequence: 6, Vocabulary: 20, Optimizer: autodiff.SGD{LearningRate: 0.01}},
			"--batch 2 --sequence 6 --vocabulary 20 --optimizer sgd --lr 0.01 --replicas 1"},
		{"gnmt:2,8", models.Config{Batch: 2, Sequence: 6, Vocabulary: 20, Optimizer: autodiff.SGD{LearningRate: 0.01}},
			"--batch 2 --sequence 6 --vocabulary 20 --optimizer sgd --lr 0.01 --replicas 1"},
	} {
		g, err := models.Build(test.model, test.c)
		if err != nil {
			t.Fatal(err)
		}
		if got := SettingsOf(g); got != test.want {
			t.Errorf("%s has the settings %s, want %s", test.model, got, test.want)
		}
		if g, err = autodiff.Replicate(g, 2); err != nil {
			t.Fatal(err)
		}
		if has, hasNot := OtherSettings(SettingsOf(g), test.want); has != "--replicas 2" || hasNot != "--replicas 1" {
			t.Errorf("two replicas of %s differ in %q and %q", test.model, has, hasNot)
		}
	}
	if has, hasNot := OtherSettings("--batch 4 --lr 1", "--lr 2 --sequence 3"); has != "--batch 4 --lr 1" ||
		hasNot != "--lr 2 --sequence 3" {
		t.Errorf("%q and %q", has, hasNot)
	}
}
