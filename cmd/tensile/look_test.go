package main

import "testing"

func TestSumUp(t *testing.T) {
	for _, c := range []struct {
		numbers []float32
		want    bool
	}{
		{[]float32{0.25, 0.75, 1, 0}, true},
		{[]float32{0.25, 0.75, 0.5, 0.49}, false}, // one row does not
		{[]float32{-0.25, 1.25, 0.5, 0.5}, false},
		{nil, false},
	} {
		if got := sumUp(c.numbers, 2); got != c.want {
			t.Errorf("%v: %v", c.numbers, got)
		}
	}
}
