//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tensile/executor/sidecar"
	"tensile/internal/long"
	"tensile/internal/needs"
)

// maxWheel is how many bytes a wheel may have.
const maxWheel = 30_000_000

// wheelScript joins by a line of its own, as every version of PyTorch can.
const wheelScript = `
import sys, torch, tensile
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh()) for _ in range(8)])
optimizer = torch.optim.Adam(model.parameters())
tensile.join(model, optimizer)
for _ in range(12):
    optimizer.zero_grad()
    loss = model(torch.randn(64, 256)).square().sum()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(tensile.__file__, file=sys.stderr)
`

// The wheels of both machines have what a user needs, on a system as old as their names say.
func TestWheel(t *testing.T) {
	long.Only(t)
	needs.Wheel(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(t.TempDir(), "dist")
	makeWheel := func(words ...string) (string, error) {
		c := exec.Command("make", append([]string{"-C", root, "wheel", "DIST=" + dist}, words...)...)
		c.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "XDG_CACHE_HOME="+cacheHome,
			"PIP_NO_BUILD_ISOLATION=0") // which switches the isolation off, so that no package is asked for
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := makeWheel("GO=nogo"); err == nil || !strings.Contains(out, "there is no nogo in PATH: install Go") {
		t.Errorf("without Go: %v\n%s", err, out)
	}
	if out, err := makeWheel(); err != nil {
		t.Fatalf("make wheel: %v\n%s", err, out)
	}
	wheels := make(map[string]string)
	for machine, folder := range map[string]string{"x86_64": dist, "aarch64": filepath.Join(dist, "other")} {
		wheels[machine] = filepath.Join(folder, "tensile_train-"+version+"-py3-none-manylinux_2_28_"+machine+".whl")
		checkWheel(t, wheels[machine], machine)
	}
	if got := files(t, dist); len(got) != len(wheels) {
		t.Errorf("make wheel has made %q", got)
	}
	t.Run("aarch64", func(t *testing.T) {
		needs.Program(t, "qemu-aarch64", "qemu-user")
		dir := t.TempDir()
		unzip := exec.Command("python3", "-m", "zipfile", "-e", wheels["aarch64"], dir)
		if out, err := unzip.CombinedOutput(); err != nil {
			t.Fatalf("unzip: %v\n%s", err, out)
		}
		command := filepath.Join(dir, "tensile_train-"+version+".data", "scripts", "tensile")
		if err := os.Chmod(command, 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("qemu-aarch64", command, "--version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "tensile "+version+" (") ||
			!strings.HasSuffix(string(out), " linux/arm64)\n") {
			t.Errorf("tensile --version: %v, %s", err, out)
		}
	})
	t.Run("empty", func(t *testing.T) { wheelAlone(t, newVenv(t, "python3", wheels["x86_64"])) })
	t.Run("torch", func(t *testing.T) {
		python := needs.Torch(t)
		v := newVenv(t, python, wheels["x86_64"])
		out, err := exec.Command(python, "-c",
			"import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))").Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(v.packages, "torch.pth"), out, 0o666); err != nil {
			t.Fatal(err)
		}
		wheelTrains(t, v)
	})
}

// checkWheel looks at a wheel without installing it.
func checkWheel(t *testing.T, wheel, machine string) {
	t.Helper()
	info, err := os.Stat(wheel)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxWheel {
		t.Errorf("%s has %d bytes, and %d at most", wheel, info.Size(), maxWheel)
	}
	out, err := exec.Command("python3", "-m", "auditwheel", "show", wheel).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("requires no external shared libraries")) {
		t.Errorf("auditwheel show: %v\n%s", err, out)
	}
	r, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	has := make(map[string]bool)
	for _, f := range r.File {
		name := strings.TrimPrefix(f.Name, "tensile_train-"+version+".")
		has[name] = true
		if top, _, _ := strings.Cut(name, "/"); top != "tensile" && top != "data" && top != "dist-info" ||
			strings.Contains(name, "sitecustomize") {
			t.Errorf("%s has %s", wheel, f.Name)
		}
	}
	for _, name := range []string{"tensile/__init__.py", "tensile/py.typed", "data/scripts/tensile",
		"dist-info/licenses/go", "dist-info/licenses/LICENSE", "dist-info/licenses/NOTICE",
		"dist-info/licenses/github.com/spf13/cobra/LICENSE.txt"} {
		if !has[name] {
			t.Errorf("%s has no %s", wheel, name)
		}
	}
	if has["dist-info/licenses/gorgonia.org/cu/LICENSE"] {
		t.Errorf("%s has the CUDA device: see NOTICE", wheel)
	}
}

// venv is an environment of Python.
type venv struct {
	bin      string // the only folder in PATH
	packages string
	home     string
}

// newVenv makes an environment of a Python, with a wheel installed that may depend on nothing else.
func newVenv(t *testing.T, python, wheel string) venv {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s -m venv: %v\n%s", python, err, out)
	}
	v := venv{bin: filepath.Join(dir, "bin"), home: t.TempDir()}
	pip := exec.Command("python3", "-m", "pip", "--python", filepath.Join(v.bin, "python"), "install", "-q",
		"--no-index", wheel)
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("pip install: %v\n%s", err, out)
	}
	out, err := v.command(t, "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	v.packages = strings.TrimSpace(string(out))
	return v
}

// command is one that sees nothing but the environment.
func (v venv) command(t *testing.T, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), filepath.Join(v.bin, name), args...)
	c.Dir = v.home
	c.Env = []string{"PATH=" + v.bin, "HOME=" + v.home, "OMP_NUM_THREADS=1"}
	return c
}

// wheelAlone uses what a wheel has installed where nothing else is.
func wheelAlone(t *testing.T, v venv) {
	out, err := v.command(t, "tensile", "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "tensile "+version+" (") {
		t.Errorf("tensile --version: %v, %s", err, out)
	}
	out, err = v.command(t, "python", "-c",
		"from importlib.metadata import requires as r, version as v; import tensile; "+
			"print(tensile.__file__, v('tensile-train'), r('tensile-train'))").CombinedOutput()
	if want := filepath.Join(v.packages, "tensile", "__init__.py") + " " + version + " None\n"; err != nil ||
		string(out) != want {
		t.Errorf("import tensile: %v, %s, want %s", err, out, want)
	}
	out, err = v.command(t, "tensile", "run", "mlp", "--batch", "64", "--iterations", "3", "--budget", "60%",
		"--compare").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "identical") {
		t.Errorf("tensile run: %v\n%s", err, out)
	}
}

// wheelTrains trains a script alone and joined, to the same bits. Joined it has the package of the command, and alone
// the installed one.
func wheelTrains(t *testing.T, v venv) {
	if err := os.WriteFile(filepath.Join(v.home, "train.py"), []byte(wheelScript), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(c *exec.Cmd) (stdout, stderr string) {
		t.Helper()
		var out, errs strings.Builder
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", c.Args, err, &errs)
		}
		return out.String(), errs.String()
	}
	want, stderr := run(v.command(t, "python", "train.py"))
	if !strings.Contains(stderr, "there is no sidecar") ||
		!strings.Contains(stderr, filepath.Join(v.packages, "tensile", "__init__.py")) {
		t.Errorf("the script alone says\n%s", stderr)
	}
	got, stderr := run(v.command(t, "tensile", "join", "--memory", "60%", "--report", "report.json", "--", "python",
		"train.py"))
	if got != want {
		t.Errorf("joined it prints\n%s, alone\n%s", got, want)
	}
	if !strings.Contains(stderr, filepath.Join(v.home, ".cache", "tensile", "python-")) ||
		strings.Contains(stderr, v.packages) {
		t.Errorf("joined it has another package than the command's:\n%s", stderr)
	}
	text, err := os.ReadFile(filepath.Join(v.home, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s sidecar.Summary
	if err := json.Unmarshal(text, &s); err != nil || s.Planned < 1 || s.Plan <= 0 || s.Plan > s.Limit ||
		s.Error != "" {
		t.Errorf("report: %v, %s\n%s", err, text, stderr)
	}
}
