package process

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tensile/internal/lifelock"
)

// leaves returns what is in a folder and in those below it.
func leaves(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			names = append(names, filepath.Base(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// take has a lock held until the test ends.
func take(t *testing.T, folder, name string) {
	t.Helper()
	l, err := lifelock.Take(folder, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
}

// signed leaves the lock of a process that was killed.
func signed(t *testing.T, folder, name string) {
	t.Helper()
	l, err := lifelock.Take(folder, name)
	if err == nil {
		err = l.Sign("this host, process 1", time.Now(), "life")
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
}

// A process that nobody needs leaves no folder; what a client holds, and what was logged, stays.
func TestServeLeavesNothing(t *testing.T) {
	serve := func(folder string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Serve(ctx, folder, ServeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(t.TempDir(), "lease")
	signed(t, filepath.Join(folder, clientsName), "ended")
	if err := os.WriteFile(filepath.Join(folder, LogName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	serve(folder)
	if left := leaves(t, folder); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	take(t, filepath.Join(folder, clientsName), "lives")
	serve(folder)
	if left := leaves(t, folder); !slices.Contains(left, "lives.lock") || !slices.Contains(left, "lease.lock") {
		t.Errorf("beside a client it leaves %v", left)
	}
	folder = filepath.Join(t.TempDir(), "lease")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, LogName), []byte("client x does not read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve(folder)
	if left := leaves(t, folder); !slices.Equal(left, []string{"lease", LogName}) {
		t.Errorf("with a log it leaves %v", left)
	}
}

// The folder of a process that was killed goes, unless a client or a process lives there.
func TestRemove(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "lease")
	Remove(folder)
	if left := leaves(t, folder); len(left) > 0 {
		t.Errorf("of nothing it makes %v", left)
	}
	signed(t, folder, lockName)
	signed(t, filepath.Join(folder, clientsName), "ended")
	if err := os.WriteFile(filepath.Join(folder, socketName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Remove(folder)
	if left := leaves(t, folder); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	signed(t, folder, lockName)
	take(t, filepath.Join(folder, clientsName), "lives")
	Remove(folder)
	if left := leaves(t, folder); !slices.Contains(left, "lives.lock") {
		t.Errorf("beside a client it leaves %v", left)
	}
	folder = filepath.Join(t.TempDir(), "lease")
	take(t, folder, lockName)
	Remove(folder)
	if left := leaves(t, folder); !slices.Contains(left, "lease.lock") {
		t.Errorf("beside a process it leaves %v", left)
	}
}
