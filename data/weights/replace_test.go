package weights

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/data/rooted"
	"tensile/graph"
)

func writeRaw(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkFolder wants the folder to hold these names and no others.
func checkFolder(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("files in the folder (-want +got):\n%s", diff)
	}
}

func checkContent(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", filepath.Base(path), got, err, want)
	}
}

func TestReplaceMakesOrReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w")
	for _, content := range []string{"first", "second"} {
		if err := replace(nil, path, func(w io.Writer) error {
			_,
				err := io.WriteString(w, content)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		checkContent(t, path, content)
	}
	checkFolder(t, dir, "w")
	writeRaw(t, filepath.Join(dir, "x"), nil)
	ours, _ := os.Stat(path)
	usual, _ := os.Stat(filepath.Join(dir, "x"))
	if want := usual.Mode() &^ 0o022; ours.Mode()&^0o022 != want { // WriteFile above asks for 0644
		t.Errorf("mode %v, want %v as for other files", ours.Mode(), want)
	}
}

// At the moment of failure half of the file is written; the old file must be there, and nothing else.
func TestReplaceLeavesTheOldFileOnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w")
	writeRaw(t, path, []byte("old"))
	full := errors.New("disk full")
	err := replace(nil, path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		checkContent(t, path, "old")
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
	checkContent(t, path, "old")
	checkFolder(t, dir, "w")
}

func TestReplaceFollowsLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target, link := filepath.Join(elsewhere, "w"), filepath.Join(dir, "latest")
	writeRaw(t, target, []byte("old"))
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	err := replace(nil, link, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err })
	if err != nil {
		t.Fatal(err)
	}
	checkContent(t, target, "new")
	checkContent(t, link, "new")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v (%v), no link any more", info.Mode(), err)
	}
	checkFolder(t, elsewhere, "w")
}

func TestWriteToWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	checkError(t, Write(nil, dir, File{}), dir, "is no regular file")
	checkError(t, Write(nil, os.DevNull, File{}), os.DevNull, "is no regular file")
	missing := filepath.Join(dir, "missing", "w")
	checkError(t, Write(nil, missing, File{}), missing, "folder "+filepath.Dir(missing)+" does not exist")
	checkFolder(t, dir)
}

func TestReadOfWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(dir)
	checkError(t, err, dir, "is no regular file")
	missing := filepath.Join(dir, "missing")
	_, err = Read(missing)
	checkError(t, err, missing, "no such file")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v does not wrap ErrNotExist", err)
	}
}

// failing is a disk that is full after some writes.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestEncodeReturnsWriteErrors(t *testing.T) {
	f := File{Tensors: []Tensor{{"a", graph.Shape{chunkBytes}, make([]float32, chunkBytes)}}}
	for left := range 5 { // the header and four chunks
		if err := Encode(&failing{left}, f); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("disk full after %d writes: error %v", left, err)
		}
	}
	if err := Encode(&failing{5}, f); err != nil {
		t.Errorf("disk not full: error %v", err)
	}
}

// Whether a file can be written is found out without a trace.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	writeRaw(t, old, []byte("content"))
	for _, path := range []string{old, filepath.Join(dir, "new")} {
		if err := Writable(nil, path); err != nil {
			t.Error(err)
		}
	}
	checkFolder(t, dir, "old")
	checkContent(t, old, "content")
	none := filepath.Join(dir, "none", "w")
	checkError(t, Writable(nil, none), none, "folder "+filepath.Dir(none)+" does not exist: make it first")
	checkError(t, Writable(nil, filepath.Join(old, "w")), "no file can be made in folder "+old+": not a directory")
	checkError(t, Writable(nil, dir), "no regular file")
	checkError(t, Writable(nil, "/proc/w"), "no file can be made in folder /proc: no such file or directory")
}

// A user's folder takes what its quota lets it, together with what lies there; a file that does not fit leaves the one
// before, and is told before it is written.
func TestQuota(t *testing.T) {
	home := filepath.Join(t.TempDir(), "ada")
	in := rooted.New(home, nil, 64<<10)
	path := filepath.Join(home, "w")
	put := func(path string, bytes int) error { return Replace(in, path, make([]byte, bytes)) }
	if err := errors.Join(put(path, 30<<10), put(path, 40<<10)); err != nil {
		t.Fatal(err)
	}
	want := "folder " + home + " may have 64KiB, and has room for 16KiB: remove files there, or ask an administrator"
	checkError(t, put(filepath.Join(home, "more"), 30<<10), want)
	checkError(t, Room(in, filepath.Join(home, "more"), 30<<10), want)
	checkFolder(t, home, "w")
	if err := errors.Join(put(filepath.Join(home, "more"), 15<<10), Room(in, path, 20<<10)); err != nil {
		t.Fatal(err)
	}
	checkFolder(t, home, "more", "w")
}
