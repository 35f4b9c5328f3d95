// Package needs skips tests that want something which the project does not contain: data beside it, or programs of the system.
// Each skip says what is missing and how to get it.
package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Data returns the path of a file or folder of the shared data, which lies beside the project, and skips the test where that is absent.
// Names are below its folder "data".
func Data(t testing.TB, name ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{root(t), "..", "shared", "data"}, name...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs ../shared/data/%s beside the project", filepath.ToSlash(filepath.Join(name...)))
	}
	return path
}

// root returns the project's folder: the nearest one above the test's that has a go.mod.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("needs: no go.mod above the test's folder")
		}
		dir = above
	}
}

// Torch returns a Python interpreter that has PyTorch, and skips the test where none is found.
func Torch(t testing.TB) string {
	t.Helper()
	python := torch()
	if python == "" {
		t.Skip("needs PyTorch: install Debian's python3-torch")
	}
	return python
}

var torch = sync.OnceValue(func() string {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import torch").Run() == nil {
			return python
		}
	}
	return ""
})
