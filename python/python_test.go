package python

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

// What is laid is what stands here, whole, once, and for the owner alone, whoever lays it at the same time.
func TestLay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var wait sync.WaitGroup
	laid := make([]string, 8)
	for i := range laid {
		wait.Go(func() {
			var err error
			if laid[i], err = Lay(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for name, source := range map[string]string{"sitecustomize.py": "start/sitecustomize.py",
		"tensile/__init__.py": "tensile/__init__.py", "tensile/session.py": "tensile/session.py"} {
		want, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(laid[0], name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is another than %s: %v", name, source, err)
		}
	}
	for _, other := range laid {
		if other != laid[0] {
			t.Errorf("laid in %s and in %s", laid[0], other)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%d entries are left, want the folder alone: %v", len(left), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v", info.Mode())
	}
}
