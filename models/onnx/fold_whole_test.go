package onnx

import (
	"math"
	"testing"
)

// Whole numbers that are known before the training are computed as such, also where a float does not hold them, and
// floats are of 32 bits.
func TestFoldWholes(t *testing.T) {
	const big = math.MaxInt64
	for op, want := range map[string]int64{"Add": math.MinInt64, "Sub": big - 1, "Mul": big, "Div": big, "Max": big,
		"Min": 1, "Mod": 0, "Greater": 1, "Equal": 0, "Less": 0} {
		k, err := folds[op](&call{node: &Node{Op: op}}, []*constant{wholes(big), wholes(1)})
		if err != nil || !k.whole || k.ints[0] != want {
			t.Errorf("%s: %+v, %v, want %d", op, k, err, want)
		}
	}
	k, err := folds["Equal"](&call{node: &Node{Op: "Equal"}}, []*constant{wholes(big), wholes(big - 1)})
	if err != nil || k.ints[0] != 0 {
		t.Errorf("numbers that a float has in common are equal: %+v, %v", k, err)
	}
	for op, want := range map[string]int64{"Neg": -big, "Abs": big, "Sign": 1} {
		k, err := folds[op](&call{node: &Node{Op: op}}, []*constant{wholes(big)})
		if err != nil || k.ints[0] != want {
			t.Errorf("%s: %+v, %v, want %d", op, k, err, want)
		}
	}
	for to, want := range map[Type]int64{Int8: 44, Int16: 300, Uint8: 44, Int32: 300, Uint16: 300, Uint32: 300,
		Int64: 300} {
		if got := wholes(300).cast(to).ints[0]; got != want {
			t.Errorf("300 as %v is %d, want %d", to, got, want)
		}
	}
	ten, share := &constant{floats: []float64{10}}, &constant{floats: []float64{float64(float32(0.7))}}
	if k, err := folds["Mul"](&call{node: &Node{Op: "Mul"}}, []*constant{ten, share}); err != nil || k.floats[0] != 7 {
		t.Errorf("10 times the float 0.7 is %+v, %v, want 7 as a float of 32 bits has it", k, err)
	}
}
