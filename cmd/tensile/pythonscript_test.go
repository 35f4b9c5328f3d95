//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tensile/internal/long"
	"tensile/internal/needs"
)

// pythonIn returns what runs a command in a folder, with an interpreter of Python first in PATH, and returns its
// stdout, stderr and exit status.
func pythonIn(t *testing.T, dir, python string) func(words ...string) (stdout, stderr string, status int) {
	return func(words ...string) (string, string, int) {
		t.Helper()
		c := exec.Command(words[0], words[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+filepath.Dir(python)+string(os.PathListSeparator)+os.Getenv("PATH"),
			"PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1", "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
		var out, errs strings.Builder
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		return out.String(), errs.String(), c.ProcessState.ExitCode()
	}
}

// A script of PyTorch as a source of work, for real: it is compared with itself without a plan, planned, and found out
// where it does not repeat itself.
func TestRunScript(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	dir := t.TempDir()
	script := func(name, seed string) {
		write(t, filepath.Join(dir, name), `
import argparse, gc, time, torch
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
steps = parser.parse_args().steps
torch.manual_seed(`+seed+`)
def train(width):
    model = torch.nn.Sequential(*[l for _ in range(6) for l in (torch.nn.Linear(width, width), torch.nn.Tanh())])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(256, width)).sub(1).square().mean()
        loss.backward()
        optimizer.step()
train(128)
train(64)  # another optimizer, which takes part in the comparison
gc.collect()
`)
	}
	run := pythonIn(t, dir, python)
	script("train.py", "0")
	out, errs, status := run("tensile", "run", "train.py", "--compare", "--memory", "60%", "--", "--steps", "24")
	// Two optimizers of 12 parameters, each with two moments and a count of steps.
	if status != 0 || !strings.Contains(out, "identical: 48 losses and 96 parameters and tensors of optimizer state") ||
		!regexp.MustCompile(`train +24 +(19|20) `).MatchString(out) || strings.Contains(errs, "data_ptr") {
		t.Errorf("compared: %v\n%s\n%s", status, out, errs)
	}
	out, errs, status = run("tensile", "plan", "train.py", "--memory", "60%", "--", "--steps", "24")
	if status != 0 || !regexp.MustCompile(`(?m)^train +\d`).MatchString(out) {
		t.Errorf("planned: %v\n%s\n%s", status, out, errs)
	}
	script("unseeded.py", "time.time_ns()")
	_, errs, status = run("tensile", "run", "unseeded.py", "--compare", "--", "--steps", "12")
	if status == 0 || !strings.Contains(errs, "unseeded.py does not repeat itself without a plan either: loss 1 of") {
		t.Errorf("of other bits in each run: %v\n%s", status, errs)
	}
	// An optimizer that goes in the middle is digested with all that it has trained at home: a plan has some of that
	// elsewhere then.
	write(t, filepath.Join(dir, "gone.py"), `
import torch
torch.manual_seed(0)
def net():
    return torch.nn.Sequential(*[l for _ in range(6) for l in (torch.nn.Linear(256, 256), torch.nn.Tanh())])
judge, maker = net(), net()
first, second = torch.optim.AdamW(judge.parameters()), torch.optim.AdamW(maker.parameters())
for i in range(40):
    judge.zero_grad()
    maker.zero_grad()
    judge(maker(torch.randn(128, 256))).sub(1).square().mean().backward()
    first.step()
    if i < 15:
        second.step()
    second = second if i < 15 else None
`)
	out, errs, status = run("tensile", "run", "gone.py", "--compare", "--memory", "60%")
	if status != 0 || !strings.Contains(out, "identical: 40 losses and 96 parameters and tensors of optimizer state") {
		t.Errorf("with an optimizer that goes: %v\n%s\n%s", status, out, errs)
	}
	write(t, filepath.Join(dir, "nested.py"), `
import sys, torch
torch.manual_seed(0)
class Optimizer(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            state["unknown"] = object()
            state["last"] = [state.get("last", [None])[-1], p.grad.clone()]
            p.sub_(p.grad, alpha=0.1)
model = torch.nn.Sequential(*[l for _ in range(6) for l in (torch.nn.Linear(128, 128), torch.nn.Tanh())])
optimizer = Optimizer(model.parameters(), {})
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(256, 128)).sub(1).square().mean().backward()
    optimizer.step()
if sys.modules["tensile"]._session is not None:
    optimizer.state[model[2].weight]["last"][0].view(torch.int32)[3, 5] ^= 1
`)
	_, errs, status = run("tensile", "run", "nested.py", "--compare")
	if status == 0 || !strings.Contains(errs, "nested.py has other bits by plans: at the end 1 of 24 parameters and "+
		"tensors of optimizer state have other bytes, such as 2.weight, last of Optimizer; please report") {
		t.Errorf("one bit of nested state: %v\n%s", status, errs)
	}
}

// firstScript says whether more than 8 MiB of what its first iteration saves are away, and prints its bits.
const firstScript = `
import hashlib, os, sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[l for _ in range(24) for l in (torch.nn.Linear(64, 64), torch.nn.Tanh())])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for i in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(2048, 64)).square().mean()
    session = getattr(sys.modules.get("tensile"), "_session", None)
    if session is not None and i == 0:
        print(session.room.away > 8 << 20, file=sys.stderr)
    loss.backward()
    optimizer.step()
    print(loss.item())
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
`

// TestFirstIteration trains a script whose activations need three times its limit. It moves some of them before there
// is a plan, to the same bits, and one that works on more by an op than the limit ends with a line that says so.
func TestFirstIteration(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "train.py"), firstScript)
	run := pythonIn(t, dir, python)
	want, errs, status := run(python, "train.py")
	if status != 0 {
		t.Fatalf("alone: status %d\n%s", status, errs)
	}
	out, errs, status := run("tensile", "run", "train.py", "--memory", "5MiB")
	if status != 0 || !strings.HasPrefix(out, want) || !strings.Contains(errs, "True\n") {
		t.Errorf("within 5 MiB: status %d\n%s\n%s\nwant\n%s", status, out, errs, want)
	}
	_, errs, status = run("tensile", "run", "train.py", "--memory", "1MiB")
	line := regexp.MustCompile(`(?m)^tensile: aten\.\S+ works on \d+ bytes, and the limit is 1048576 ` +
		`\(\S+train\.py, line 8\)`)
	if status != 75 || !line.MatchString(errs) || strings.Contains(errs, "Traceback") {
		t.Errorf("within 1 MiB: status %d\n%s", status, errs)
	}
	if out, errs, status = run("tensile", "run", "train.py", "--memory", "1MiB", "--anyway"); status != 0 ||
		!strings.HasPrefix(out, want) {
		t.Errorf("anyway: status %d\n%s\n%s", status, out, errs)
	}
}
