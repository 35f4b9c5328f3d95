package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// All processes that begin with a folder at once find one identity in it, and later ones the same, by whatever name.
func TestIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "above", "checkpoints")
	got := make([]string, 20)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			var err error
			if got[i], err = (Folder{Dir: dir}).Identity(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	again, err := Folder{Dir: link}.Identity()
	for _, word := range got {
		if err != nil || word != again {
			t.Fatalf("got %q, and later %q, %v", word, again, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v; want the identity alone", left, err)
	}
	other, err := Folder{Dir: t.TempDir()}.Identity()
	if err != nil || other == again {
		t.Errorf("another folder has %q, %v", other, err)
	}
	// It is no entry of a job, and does not count as one.
	if n, err := (Folder{Dir: dir}).used(); err != nil || n != 0 {
		t.Errorf("an empty folder takes %v, %v", n, err)
	}
}

// A file of that name with other contents is not overwritten, and the error says what to do. Nor is a folder made below
// a file.
func TestIdentityOfOthers(t *testing.T) {
	for _, text := range []string{"", "mine", strings.Repeat("A", 27), "../../AAAAAAAAAAAAAAAAAAAA"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "identity")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (Folder{Dir: dir}).Identity(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %v, want an error with its path", text, err)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != text {
			t.Errorf("%q became %q, %v", text, left, err)
		}
		if _, err := (Folder{Dir: path}).Identity(); err == nil {
			t.Error("a folder was made below a file")
		}
	}
}
