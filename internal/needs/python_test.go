package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tensile/internal/long"
)

// The tests of python/tensile, in one thread.
func TestPython(t *testing.T) {
	python := Torch(t)
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-m", "unittest", "discover", "-s", filepath.Join(dir, "python", "tests"))
	c.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	if long.On() {
		c.Env = append(c.Env, "TENSILE_LONG=1")
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
