package onnxcases

import (
	"slices"
	"strings"
	"testing"

	"tensile/device/cpu"
	"tensile/internal/needs"
)

// mayLack are the cases of the ONNX project that may count as unsupported, by words in their names: other types, other
// numbers of dimensions, dropout that drops, places of maxima.
var mayLack = []string{"int8", "int16", "uint", "_3d_", "training_dropout_default", "argmax", "d1d2d3d4d5", "_1d_"}

// Every case of the ONNX project passes, or is one of those that may be unsupported.
func TestNodeCases(t *testing.T) {
	results, err := Run(t.Context(), newCPU(t), needs.Data(t, "onnx/node"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		allowed := slices.ContainsFunc(mayLack, func(word string) bool { return strings.Contains(r.Name, word) })
		switch {
		case r.Outcome == Failed, r.Outcome == Unsupported && !allowed:
			t.Errorf("%s %s: %s", r.Name, r.Outcome, r.Reason)
		case r.Outcome == Unsupported:
			t.Logf("%s: %s", r.Name, r.Reason)
		}
	}
	t.Log(Count(results))
}

func newCPU(t *testing.T) *cpu.Device {
	t.Helper()
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// A folder without cases is an error; a damaged case has failed.
func TestRunRefuses(t *testing.T) {
	if _, err := Run(t.Context(), newCPU(t), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no case") {
		t.Errorf("error %v", err)
	}
}
