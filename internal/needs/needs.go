// Package needs skips tests that want something which the project does not contain: data beside it, or programs of the
// system. Each skip reads "needs THING: REMEDY"; internal/testrun counts them by THING.
package needs

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Found is the environment variable in which internal/testrun describes what it found on the machine. Each function
// here reads it, so that the go command does not take a result from its cache that was made on a machine with less, or
// more.
const Found = "TENSILE_NEEDS_FOUND"

// Describe returns a description of the machine for [Found]: another Python with PyTorch or other shared data gives
// another.
func Describe() (string, error) {
	dir, err := root()
	if err != nil {
		return "", err
	}
	sum := fnv.New64a()
	filepath.WalkDir(filepath.Join(dir, "..", "shared", "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is as good as absent
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	var programs []string
	for _, name := range append([]string{"clang-19", "gcc", "python3", "qemu-aarch64"}, browsers...) {
		if path, err := exec.LookPath(name); err == nil {
			programs = append(programs, path)
		}
	}
	return fmt.Sprintf("torch=%s data=%x programs=%v packages=%s", torch(), sum.Sum64(), programs, packages()), nil
}

// Data returns the path of a file or folder of the shared data, which lies beside the project, and skips the test where
// that is absent. Names are below its folder "data".
func Data(t testing.TB, name ...string) string {
	t.Helper()
	os.Getenv(Found)
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(append([]string{dir, "..", "shared", "data"}, name...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs shared data: ../shared/data/%s is not there, seen from the project",
			filepath.ToSlash(filepath.Join(name...)))
	}
	return path
}

// root returns the project's folder: the nearest one above the test's that has a go.mod.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", fmt.Errorf("needs: no go.mod above the test's folder")
		}
		dir = above
	}
}

// Torch returns the first Python interpreter in PATH, and skips the test where that has no PyTorch, 2.6 or later.
func Torch(t testing.TB) string {
	t.Helper()
	os.Getenv(Found)
	python := torch()
	if python == "" {
		t.Skip("needs PyTorch: put the folder of a Python with 2.6 or later, such as bin of a venv, first in PATH")
	}
	return python
}

// Wheel skips a test where the first Python interpreter in PATH has not what makes wheels, and what checks them.
func Wheel(t testing.TB) {
	t.Helper()
	os.Getenv(Found)
	if !wheel() {
		t.Skip("needs hatchling and auditwheel: run python3 -m pip install hatchling auditwheel")
	}
}

// Package skips a test where an interpreter lacks a package, which pip installs by some words.
func Package(t testing.TB, python, name, words string) {
	t.Helper()
	os.Getenv(Found)
	const find = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
	if exec.Command(python, "-c", find, name).Run() != nil {
		t.Skipf("needs Python's %s: %s -m pip install %s", name, python, words)
	}
}

// Program skips a test where a program is not installed, which Debian has in a package of a name.
func Program(t testing.TB, name, debian string) {
	t.Helper()
	os.Getenv(Found)
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("needs %s: install Debian's %s", name, debian)
	}
}

// browsers are the names that Chromium has.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// Browser returns the path of a Chromium, and skips the test where none is found.
func Browser(t testing.TB) string {
	t.Helper()
	os.Getenv(Found)
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs Chromium: install Debian's chromium")
	return ""
}

var wheel = sync.OnceValue(func() bool {
	return exec.Command("python3", "-c", "import auditwheel, hatchling, pip").Run() == nil
})

// packages tells when a Python package came or went last.
func packages() []byte {
	const times = "import os, site; print(*[os.stat(p).st_mtime for p in site.getsitepackages() if os.path.exists(p)])"
	out, _ := exec.Command("python3", "-c", times).Output()
	return bytes.TrimSpace(out)
}

var torch = sync.OnceValue(func() string {
	// what pip installed: to import it takes seconds, in the tests of each package that asks
	const asks = "from importlib.metadata import version; " +
		"assert tuple(map(int, version('torch').split('.')[:2])) >= (2, 6)"
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", asks).Run() != nil {
		return ""
	}
	return python
})
