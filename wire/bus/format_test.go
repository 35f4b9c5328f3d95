package bus

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder of another form is refused, and nothing in it is touched; one without a number, as of releases before there
// were any, is taken up and gets it.
func TestFormat(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, formatFile)
	start := func() error {
		s, err := Start(Options{Dir: dir, Log: func(line string) { t.Log(line) }})
		if err == nil {
			s.Close()
		}
		return err
	}
	for range 2 { // made, and then as it was before there were numbers
		if err := start(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "1\n" {
			t.Errorf("the number is %q: %v", text, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"2\n":   "has form 2, and this release keeps form 1: start the release that made it, or name another folder",
		"":      "holds no number of a form: put it back from a copy",
		"1\x00": "holds no number of a form: ",
		"-1\n":  "holds no number of a form: ",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := tree(t, dir)
		err := start()
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if after := tree(t, dir); after != before {
			t.Errorf("%q: the folder was\n%s\nand is\n%s", text, before, after)
		}
	}
}

// tree is all that is in a folder: names, modes, times, contents.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%x %v\n", sha256.Sum256(text), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// A path lies in a state folder whatever links lead there.
func TestStateFolderOf(t *testing.T) {
	dir := t.TempDir()
	state, other := filepath.Join(dir, "state"), filepath.Join(dir, "other")
	for _, folder := range []string{filepath.Join(state, "checkpoints"), other} {
		must(t, os.MkdirAll(folder, 0o700))
	}
	must(t, os.Symlink(state, filepath.Join(dir, "link")))
	must(t, os.Symlink(filepath.Join(state, "secret"), filepath.Join(other, "w")))
	must(t, os.WriteFile(filepath.Join(state, "secret"), nil, 0o600))
	must(t, MarkFormat(state))
	must(t, os.WriteFile(filepath.Join(other, "secret"), nil, 0o600)) // which alone makes no state folder
	for path, want := range map[string]string{"state/secret": state, "state/new": state, "state/checkpoints/new": state,
		"link/new": state, "other/../link/checkpoints/new": state, "other/w": state, "other/new": "", "new": ""} {
		if got, err := StateFolderOf(filepath.Join(dir, path)); got != want || err != nil {
			t.Errorf("%s lies in the state folder %q, want %q: %v", path, got, want, err)
		}
	}
	t.Chdir(state)
	if got, err := StateFolderOf("secret"); got != state || err != nil {
		t.Errorf("a path that is not whole lies in %q: %v", got, err)
	}
}
