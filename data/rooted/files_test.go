package rooted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"tensile/internal/long"
)

// tree makes a folder of a user, one that all may use, and one of others with a file, and returns their paths.
func tree(t *testing.T) (f *Files, home, allowed, others string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, allowed, others = filepath.Join(dir, "users", "ada"), filepath.Join(dir, "all"), filepath.Join(dir, "others")
	for _, d := range []string{home, allowed, others} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(d, "file"), "of "+filepath.Base(d))
	}
	return New(home, []string{allowed}, 0), home, allowed, others
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Error(err)
	}
}

// What lies in the folders is opened, by way of links, too; nothing else is, in whichever way.
func TestFiles(t *testing.T) {
	f, home, allowed, others := tree(t)
	link(t, "file", filepath.Join(home, "near"))
	link(t, others, filepath.Join(home, "out"))
	link(t, "../../others", filepath.Join(home, "up"))
	link(t, filepath.Join(others, "file"), filepath.Join(allowed, "far"))
	for path, want := range map[string]string{
		"file": "of ada", "near": "of ada", "./file": "of ada", filepath.Join(home, "file"): "of ada",
		filepath.Join(allowed, "file"): "of all", filepath.Join(home, "..", "..", "all", "file"): "of all",
	} {
		path = f.Path(path)
		if got, err := f.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"../bob/file", "../../others/file", "out/file", "up/file", others, "/", "..",
		filepath.Join(others, "file"), filepath.Join(allowed, "far"), filepath.Join(allowed, "..", "others", "file"),
		filepath.Join(filepath.Dir(home), "bob", "file"), home + "x",
		"/proc/self/root" + filepath.Join(others, "file")} {
		path = f.Path(path)
		refused := func(what string, err error) {
			t.Helper()
			if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), path+": ") ||
				!strings.Contains(err.Error(), home+" and "+allowed) || strings.Contains(err.Error(), "\n") ||
				!strings.HasSuffix(err.Error(), "have it started with --allow FOLDER") {
				t.Errorf("%s %s: %v", what, path, err)
			}
		}
		_, err := f.Open(path)
		refused("Open", err)
		_, err = f.Stat(path)
		refused("Stat", err)
		_, err = f.ReadFile(path)
		refused("ReadFile", err)
		_, err = f.ReadDir(path)
		refused("ReadDir", err)
		_, err = f.OpenRoot(path)
		refused("OpenRoot", err)
		_, _, err = f.Parent(path)
		refused("Parent", err)
	}
	if _, err := f.Open(filepath.Join(home, "none")); !errors.Is(err, fs.ErrNotExist) ||
		err.Error() != "open "+filepath.Join(home, "none")+": no such file or directory" {
		t.Errorf("of a file that is not there: %v", err)
	}
}

// Who has no folder may use the others.
func TestNoHome(t *testing.T) {
	_, _, allowed, _ := tree(t)
	if _, err := New("", []string{allowed}, 0).ReadFile(filepath.Join(allowed, "file")); err != nil {
		t.Error(err)
	}
	_, err := New("", nil, 0).Open(New("", nil, 0).Path("file"))
	if want := "file: this executor opens files of users in no folder alone"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The user's own folder, and those below it, are made for what is to be saved; a link is not followed, and no pipe is
// waited for.
func TestParent(t *testing.T) {
	f, home, allowed, others := tree(t)
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	dir, name, err := f.Parent(f.Path("runs/1/w"))
	if err != nil || name != "w" {
		t.Fatalf("%s, %v", name, err)
	}
	if err := dir.WriteFile(name, nil, 0o600); err != nil {
		t.Error(err)
	}
	dir.Close()
	if info, err := os.Stat(filepath.Join(home, "runs", "1", "w")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v (%v)", info, err)
	}
	for _, path := range []string{home, allowed, f.Path("."), allowed + "/"} {
		if _, _, err := f.Parent(path); err == nil || !strings.Contains(err.Error(), "is a folder: name a file in it") {
			t.Errorf("of the folder %s itself: %v", path, err)
		}
	}
	if _, _, err := f.Parent(filepath.Join(allowed, "runs", "w")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder of all that is not there: %v", err)
	}
	link(t, filepath.Join(others, "file"), filepath.Join(home, "link"))
	if _, _, err := f.Parent(f.Path("link")); err == nil || !strings.Contains(err.Error(), ", and it is a link: ") {
		t.Errorf("of a link: %v", err)
	}
	pipe := filepath.Join(allowed, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := f.Open(pipe) // returns
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

// While somebody swaps a folder for a link out of there and back again, what is read is never of others, and what is
// written never lies there.
func TestSwappedLinks(t *testing.T) {
	f, home, _, others := tree(t)
	inside, swapped := filepath.Join(home, "inside"), filepath.Join(home, "swapped")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(inside, "file"), "of ada")
	swap := func(to string) {
		beside := filepath.Join(home, "beside")
		link(t, to, beside)
		if err := os.Rename(beside, swapped); err != nil {
			t.Error(err)
		}
	}
	swap("inside")
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !over.Load() {
			swap("../../others")
			swap("inside")
		}
	}()
	read, wrote := 0, 0
	for range long.Rounds(2_000, 100_000) {
		if text, err := f.ReadFile(filepath.Join(swapped, "file")); err == nil {
			if read++; string(text) != "of ada" {
				t.Fatalf("what was read is %q", text)
			}
		}
		dir, name, err := f.Parent(filepath.Join(swapped, "saved"))
		if err != nil {
			continue
		}
		if err := dir.WriteFile(name, []byte("saved"), 0o600); err == nil {
			wrote++
		}
		dir.Close()
	}
	over.Store(true)
	<-ended
	if entries, err := os.ReadDir(others); err != nil || len(entries) != 1 {
		t.Errorf("the folder of others has %v (%v)", entries, err)
	}
	t.Logf("read %d times, wrote %d times", read, wrote)
}
