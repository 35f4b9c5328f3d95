//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tensile/executor/sidecar"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
)

// trainTorch runs a command line on which testdata/torch/train.py and its arguments follow, in a process group of its
// own. It returns its stdout, stderr and exit status.
func trainTorch(t *testing.T, words ...string) (stdout, stderr string, status int) {
	t.Helper()
	c := exec.Command(words[0], words[1:]...)
	packages, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	c.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

const torchScript = "testdata/torch/train.py"

// joinTorch trains a network within so many bytes, 0 for no limit, and returns the report. Its bits must be want.
func joinTorch(t *testing.T, python, network string, memory graph.Bytes, want string) sidecar.Summary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	words := []string{"tensile", "join", "--report", path}
	if memory > 0 {
		words = append(words, "--memory", strconv.FormatInt(int64(memory), 10))
	}
	got, stderr, status := trainTorch(t, append(words, "--", python, torchScript, network)...)
	if got != want || status != 0 {
		t.Fatalf("%s in %d bytes: status %d, printed\n%s\nwant\n%s\nstderr:\n%s", network, memory, status, got, want,
			stderr)
	}
	if strings.Contains(stderr, "WARNING") {
		t.Errorf("stderr has warnings of PyTorch:\n%s", stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s sidecar.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Iterations != 12 || s.Planned < 3 || s.Graphs != 1 || s.Plans < 1 || !s.Ended || s.Limit != memory ||
		s.Faults != 0 || s.Passive != "" || s.Error != "" {
		t.Errorf("%s in %d bytes: report %s\nstderr:\n%s", network, memory, text, stderr)
	}
	if s.Plan <= 0 || s.Claim != s.Plan+s.Reserve || memory > 0 && s.Plan > memory {
		t.Errorf("%s in %d bytes: plan %d, reserve %d, claim %d", network, memory, s.Plan, s.Reserve, s.Claim)
	}
	if s.Touched <= 0 || s.Touched > s.Largest+s.Largest/100+64<<10 {
		t.Errorf("%s in %d bytes: touched %d, planned %d", network, memory, s.Touched, s.Largest)
	}
	return s
}

// A joined script ends with the bits of the script alone.
func TestJoinTorch(t *testing.T) {
	t.Parallel()
	python := needs.Torch(t)
	if !long.On() {
		want, stderr, status := trainTorch(t, python, torchScript, "cnn", "plain")
		if status != 0 {
			t.Fatalf("alone: status %d, stderr:\n%s", status, stderr)
		}
		joinTorch(t, python, "cnn", 2*graph.MiB, want)
		return
	}
	for _, network := range []string{"cnn", "encoder"} {
		want, stderr, status := trainTorch(t, python, torchScript, network, "plain")
		if status != 0 {
			t.Fatalf("%s alone: status %d, stderr:\n%s", network, status, stderr)
		}
		all := joinTorch(t, python, network, 0, want).Touched
		s := joinTorch(t, python, network, all*60/100, want)
		t.Logf("%s in 60 %% of %d: plan %d, touched %d", network, all, s.Plan, s.Touched)
	}
}

// A script without a word of Tensile in it joins before its first iteration, to the same bits, and Python's start is as
// without Tensile: the user's own sitecustomize runs, and a script that PyTorch is no part of is left alone.
func TestJoinUnchangedScript(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "site"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "site", "sitecustomize.py"), `print("the user's start")`)
	script := filepath.Join(dir, "train.py")
	write(t, script, `
import hashlib, sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[l for _ in range(6) for l in (torch.nn.Linear(128, 128), torch.nn.ReLU())])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(24):
    optimizer.zero_grad()
    loss = model(torch.randn(256, 128)).square().mean()
    loss.backward()
    optimizer.step()
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
print(loss.item(), digest.hexdigest(), "tensile" in sys.modules)
`)
	cache := filepath.Join(dir, "cache")
	run := func(words ...string) (string, string) {
		c := exec.Command(words[0], words[1:]...)
		c.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(dir, "site"), "TMPDIR="+dir,
			"XDG_CACHE_HOME="+cache, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
		var out, errs strings.Builder
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, &errs)
		}
		return out.String(), errs.String()
	}
	alone, _ := run(python, script)
	want := strings.Replace(alone, "False", "True", 1)
	report := filepath.Join(dir, "report.json")
	got, said := run("tensile", "join", "--memory", "60%", "--report", report, "--", python, script)
	if got != want || !strings.HasPrefix(got, "the user's start\n") {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	var sum sidecar.Summary
	text, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(text, &sum)
	}
	if err != nil || sum.Planned < 10 || sum.Iterations != 24 {
		t.Errorf("%d of %d iterations by a plan (%v); stderr:\n%s", sum.Planned, sum.Iterations, err, said)
	}
	got, said = run("tensile", "join", "--", python, "-c", `print("no torch")`)
	if got != "the user's start\nno torch\n" || !strings.Contains(said, "has not joined") {
		t.Errorf("without PyTorch it printed %q and %q", got, said)
	}
	// A launcher starts processes of its own, and closes their descriptors: each of them joins.
	_, said = run("tensile", "join", "--memory", "60%", "--report", report, "--", python, "-m",
		"torch.distributed.run", "--standalone", "--nproc-per-node", "2", script)
	var both struct {
		sidecar.Summary
		Others []sidecar.Summary
	}
	if document(t, read(t, report), &both); both.Planned < 10 || len(both.Others) != 1 || both.Others[0].Planned < 10 {
		t.Errorf("two processes: %d iterations by a plan and %+v of others; stderr:\n%s", both.Planned, both.Others,
			said)
	}
	cache = script // a file: no cache can be made there
	if got, said = run("tensile", "join", "--", python, script); got != want || !strings.Contains(said, "is in force") {
		t.Errorf("without a cache it printed\n%s\nand %q", got, said)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "tensile-python-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
}

// A cell of a notebook that trains joins, in the process of its kernel, to the bits that it has alone.
func TestJoinNotebook(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	needs.Package(t, python, "ipykernel", "ipykernel nbclient")
	needs.Package(t, python, "nbclient", "ipykernel nbclient")
	dir := t.TempDir()
	script := filepath.Join(dir, "notebook.py")
	write(t, script, `
import nbclient, nbformat
cells = ["""import hashlib, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[l for _ in range(6) for l in (torch.nn.Linear(128, 128), torch.nn.ReLU())])
optimizer = torch.optim.AdamW(model.parameters())""", """for _ in range(24):
    optimizer.zero_grad()
    loss = model(torch.randn(256, 128)).square().mean()
    loss.backward()
    optimizer.step()""", """digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
print(digest.hexdigest())"""]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
nbclient.NotebookClient(notebook, kernel_name="python3").execute()
print(notebook.cells[-1].outputs[0].text)
`)
	want, stderr, status := trainTorch(t, python, script)
	if status != 0 || len(strings.TrimSpace(want)) != 64 {
		t.Fatalf("alone: status %d, printed %s, stderr:\n%s", status, want, stderr)
	}
	report := filepath.Join(dir, "report.json")
	got, stderr, status := trainTorch(t, "tensile", "join", "--memory", "60%", "--report", report, "--", python, script)
	if got != want || status != 0 {
		t.Fatalf("joined: status %d, printed %s, want %s, stderr:\n%s", status, got, want, stderr)
	}
	var s sidecar.Summary
	if document(t, read(t, report), &s); s.Planned < 10 || s.Iterations != 24 {
		t.Errorf("%d of %d iterations by a plan; stderr:\n%s", s.Planned, s.Iterations, stderr)
	}
}

// What python/tests/planned.py says of scripts within limits is so, in one process of PyTorch.
func TestJoinTorchPlanned(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	c := exec.Command(python, "-m", "unittest", "planned")
	c.Dir = "../../python/tests"
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// usualCases are the scripts of TestJoinTorchCases that differ most from each other. All take a quarter of an hour.
const usualCases = "gradscaler_fp16 adamw_fused tensor_lr accum4 gan_join_g ckpt_reentrant loader_workers odd_last " +
	"lbfgs custom_fn mha compile_sub deepcopy_mid wrapper_subclass_param ddp threads fork_mp data_ptr_write " +
	"checkpoint_reload_weights_only foreign_sgd"

// Scripts as people write them for PyTorch 2, in ../shared/torch2, end as they do alone, to the same bits, in a limit
// and with random plans: some of them, and with -long=N all. The log has a line for each.
func TestJoinTorchCases(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	if _, err := os.Stat("../../../shared/torch2/cases.py"); err != nil {
		t.Skip("needs shared scripts: ../shared/torch2 is not there, seen from the project")
	}
	tensile, err := exec.LookPath("tensile")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "../../python/tests/matrix.py", tensile)
	if !long.Soak() {
		c.Args = append(c.Args, strings.Fields(usualCases)...)
	}
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// An interrupt from the terminal in a backward pass is the script's to handle, and so is the exit status.
func TestJoinTorchInterrupted(t *testing.T) {
	long.Only(t)
	t.Parallel()
	python := needs.Torch(t)
	want, _, status := trainTorch(t, python, torchScript, "cnn", "plain", "interrupt")
	if status != 7 || !strings.Contains(want, "interrupted") {
		t.Fatalf("alone: status %d, printed\n%s", status, want)
	}
	got, stderr, status := trainTorch(t, "tensile", "join", "--memory", "2MiB", "--", python, torchScript, "cnn",
		"interrupt")
	if status != 7 || got != want || !strings.Contains(stderr, "is in force") {
		t.Errorf("status %d, printed\n%s\nwant\n%s\nstderr:\n%s", status, got, want, stderr)
	}
}
