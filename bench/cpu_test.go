package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/internal/long"
	"tensile/internal/needs"
)

// A network is exported, trained on both sides, and its ops lie in the groups.
func TestMeasureCPU(t *testing.T) {
	long.Only(t)
	python := needs.Torch(t)
	needs.Package(t, python, "onnx", "onnx")
	r, err := MeasureCPU(t.Context(), CPUOptions{Python: python, Dir: t.TempDir(), Networks: []string{"lstm"},
		Threads: []int{1}, Steps: 2, Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 1 {
		t.Fatalf("%d rows for one network", len(r.Rows))
	}
	for _, row := range r.Rows {
		groups := map[string]CPUGroup{}
		for _, g := range row.Ops {
			groups[g.Group] = g
		}
		for _, name := range []string{"linear and recurrent layers", "embeddings", "losses", "optimizer"} {
			if g := groups[name]; g.Ours <= 0 || g.Torch <= 0 {
				t.Errorf("%s with %d threads: %s took %v ms, and %v ms with PyTorch", row.Network, row.Threads, name,
					g.Ours, g.Torch)
			}
		}
		if row.Ours.CPU <= 0 || row.Ours.Wall <= 0 || row.Torch.CPU <= 0 || row.Torch.Wall <= 0 {
			t.Errorf("an iteration takes %+v, with PyTorch %+v", row.Ours, row.Torch)
		}
	}
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil || strings.Count(table.String(), "lstm") != 1 {
		t.Errorf("error %v, table\n%s", err, table.String())
	}
	_, err = MeasureCPU(t.Context(), CPUOptions{Python: python, Dir: t.TempDir(), Networks: []string{"x"}})
	if err == nil || !strings.Contains(err.Error(), ": no network begins with x: choose among resnet50, 32 px; ") {
		t.Errorf("networks that begin with x: error %v", err)
	}
}

// Each kind lies in the first group that it fits, and the group that is furthest behind is told.
func TestGroupOps(t *testing.T) {
	r := CPURow{Ops: groupOps(
		map[string]float64{"softmax": 1, "softmax_xent_dx": 2, "conv2d_dw": 5, "add": 1},
		map[string]float64{"aten::_softmax": 2, "aten::nll_loss_backward": .5, "aten::convolution_backward": 4.5})}
	var told []string
	for _, g := range r.Ops {
		told = append(told, fmt.Sprintf("%s %v %v", g.Group, g.Ours, g.Torch))
	}
	want := "convolutions 5 4.5, losses 2 0.5, attention 1 2, others 1 0"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	if got, want := r.furthestBehind(), "losses 2.0 for 0.5 ms"; got != want {
		t.Errorf("what is furthest behind is %q, want %q", got, want)
	}
}

// What ends instead of answering is told by what it said last, or else by how it ended, and an interrupt as such.
func TestAskTorchFails(t *testing.T) {
	stopped := errors.New("interrupted")
	for script, want := range map[string]string{
		"echo first >&2; echo last >&2; exit 1": "python with PyTorch: last",
		"exit 3":                                "python with PyTorch: exit status 3",
		"kill -9 $$":                            "python with PyTorch: signal: killed",
		"exit 0":                                "python with PyTorch: no answer in JSON: unexpected end of JSON input",
		"exec sleep 100":                        "interrupted",
	} {
		python := filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(python, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		if want == stopped.Error() {
			cancel(stopped)
		}
		err := askTorch(ctx, python, new(CPUStep), "time")
		cancel(nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) || errors.Is(err, stopped) != (want == stopped.Error()) {
			t.Errorf("%s: error %v, want %s", script, err, want)
		}
	}
}
