package rooted

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/needs"
)

// What lies in a user's folder counts, in all folders below it, but not what a file replaces; other folders have no
// quota.
func TestRoom(t *testing.T) {
	f, home, allowed, _ := tree(t) // with a file of six bytes
	f.quota = 100 * graph.KiB
	for _, step := range []struct {
		make, path string
		want       graph.Bytes
	}{
		{"", "w", 100*graph.KiB - 2*entryBytes - 6},
		{"", "file", 100*graph.KiB - entryBytes},
		{"runs/1/w", "w", 100*graph.KiB - 5*entryBytes - 6 - 10*graph.KiB},
		{"runs/1/w", "runs/1/w", 100*graph.KiB - 4*entryBytes - 6},
		{"runs/2", "w", 100*graph.KiB - 6*entryBytes - 6 - 20*graph.KiB},
		{"more", "w", 100*graph.KiB - 7*entryBytes - 6 - 30*graph.KiB},
	} {
		if step.make != "" {
			path := filepath.Join(home, step.make)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, path, strings.Repeat("x", 10<<10))
		}
		if got, err := f.Room(f.Path(step.path)); err != nil || got != step.want {
			t.Errorf("with %s there is room for %s at %s (%v), want %s", step.make, got, step.path, err, step.want)
		}
	}
	write(t, filepath.Join(home, "large"), strings.Repeat("x", 100<<10))
	if got, err := f.Room(f.Path("w")); err != nil || got != 0 {
		t.Errorf("in a full folder there is room for %s (%v)", got, err)
	}
	want := "folder " + home + " may have 100KiB, and has room for 0B: remove files there, or ask an administrator " +
		"for a larger --user-quota"
	if err := f.Full(0); err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	for f, path := range map[*Files]string{f: filepath.Join(allowed, "w"), nil: filepath.Join(home, "w")} {
		if got, err := f.Room(path); err != nil || got != math.MaxInt64 {
			t.Errorf("where there is no quota there is room for %s (%v)", got, err)
		}
	}
}

// Folders are made for a file only where there is room for them: refused files leave none.
func TestRoomForFolders(t *testing.T) {
	home := filepath.Join(t.TempDir(), "ada")
	f := New(home, nil, 8*entryBytes)
	for _, step := range []struct {
		path string
		made bool
	}{{"a/b/c/d/w", true}, {"e/f/g/h/w", false}, {"a/b/c/d/x/w", true}, {"a/b/c/d/x/v", true}, {"e/f/g/w", false},
		{"e/f/w", true}, {"g/w", false}, {"h/i/w", false}} {
		dir, _, err := f.Parent(f.Path(step.path))
		if err == nil {
			dir.Close()
		}
		if made := err == nil; made != step.made || !made && !strings.Contains(err.Error(), "--user-quota") {
			t.Errorf("folder of %s: %v, want it made: %t", step.path, err, step.made)
		}
	}
	if _, err := os.Lstat(filepath.Join(home, "h")); err == nil {
		t.Error("a file that is refused leaves a folder")
	}
}

// Without a quota of the administrator's a folder has a quarter of its disk.
func TestDefaultQuota(t *testing.T) {
	home := filepath.Join(needs.SmallDisk(t, 1<<20), "ada")
	if got, err := New(home, nil, 0).Room(filepath.Join(home, "w")); err != nil || got != 256*graph.KiB-entryBytes {
		t.Errorf("room for %s, %v", got, err)
	}
}

// Of two who put a file into the folder one waits for the other.
func TestHold(t *testing.T) {
	f, _, allowed, _ := tree(t)
	release, err := f.Hold(f.Path("w"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := f.Hold(filepath.Join(allowed, "w")) // does not wait
	if err != nil {
		t.Fatal(err)
	}
	elsewhere()
	released, held := make(chan bool), make(chan bool)
	go func() {
		second, err := New(f.home, nil, 0).Hold(f.Path("runs/w"))
		if err != nil {
			t.Error(err)
			close(held)
			return
		}
		select {
		case <-released:
		default:
			t.Error("two hold the folder at once")
		}
		second()
		close(held)
	}()
	close(released)
	release()
	<-held
}
