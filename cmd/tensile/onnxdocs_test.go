package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tensile/internal/long"
	"tensile/internal/needs"
)

// The commands of docs/onnx.md export a network from PyTorch with its normalisations, which trains as it does there:
// the first loss of both files is PyTorch's.
func TestONNXDocs(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	needs.Package(t, python, "onnxscript", "onnxscript==0.7.2")
	page := string(read(t, filepath.Join("..", "..", "docs", "onnx.md")))
	commands := regexp.MustCompile(`(?s)python3 -c '(import torch, net[^']*)'`).FindAllStringSubmatch(page, -1)
	if len(commands) != 2 {
		t.Fatalf("the page has %d commands that export net.Net, want 2", len(commands))
	}
	dir := t.TempDir()
	const module = `import numpy, torch
from torch import nn


class Net(nn.Sequential):
    def __init__(self):
        torch.manual_seed(1)
        super().__init__(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3),
                         nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4),
                         nn.LayerNorm(4), nn.Linear(4, 4), nn.LayerNorm(4))


def told():
    x, y = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(2)), torch.arange(8) % 4
    numpy.savez("data.npz", x=x.numpy(), labels=y.numpy())
    print(float(nn.functional.cross_entropy(Net().train()(x), y)))
`
	if err := os.WriteFile(filepath.Join(dir, "net.py"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	script := func(code string) string {
		c := exec.Command(python, "-c", code)
		c.Dir, c.Env = dir, append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", code, err, err.(*exec.ExitError).Stderr)
		}
		return string(out)
	}
	var want float64
	if err := json.Unmarshal([]byte(script("import net; net.told()")), &want); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		script(command[1])
		var shown onnxFile
		document(t, tensile(t, dir, "onnx", "show", "net.onnx", "--batch", "8", "--json"), &shown)
		if shown.Operators["BatchNormalization"] != 2 || shown.Params != 12*9+8+4*4*9+4+8+20+8+20+8 {
			t.Errorf("%s\nmakes %d parameters and the operators %v", command[1], shown.Params, shown.Operators)
		}
		var told struct {
			Jobs []struct {
				Loss float64 `json:"loss_first"`
			}
		}
		document(t, tensile(t, dir, "run", "net.onnx", "--batch", "8", "--data", "data.npz", "--iterations",
			"1", "--json"),
			&told)
		if got := told.Jobs[0].Loss; got < want*(1-1e-5) || got > want*(1+1e-5) {
			t.Errorf("%s\ntrains with a first loss of %v, want %v", command[1], got, want)
		}
		if strings.Contains(command[1], "optimize=False") {
			continue
		}
		const keeps = "dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, " +
			"opset_version=18,"
		script(strings.Replace(command[1], keeps, "", 1))
		if said := fails(t, dir, "onnx", "show", "net.onnx"); !strings.Contains(said, "folded 2 batch normalisations") {
			t.Errorf("the default exporter's file: %s", said)
		}
	}
}
