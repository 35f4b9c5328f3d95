package weights

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/needs"
)

// Room is looked for on the disk of the folder, that of a link's target included, and it is the free room that counts:
// the file that is there stays until the new one is whole. A full disk is an error that names the file.
func TestRoom(t *testing.T) {
	dir := needs.SmallDisk(t, 64<<10)
	path, link := filepath.Join(dir, "w"), filepath.Join(t.TempDir(), "link")
	writeRaw(t, path, make([]byte, 40<<10))
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, link} {
		if err := Room(nil, path, 8<<10); err != nil {
			t.Errorf("%s: there is room: %v", path, err)
		}
		checkError(t, Room(nil, path, 40<<10),
			"w: it takes 40KiB, and the disk of its folder has 24KiB free: make room")
	}
	large := File{Tensors: []Tensor{{Name: "w", Shape: graph.Shape{10 << 10}, Data: make([]float32, 10<<10)}}}
	err := Write(nil, path, large)
	if !errors.Is(err, syscall.ENOSPC) || err.Error() != "write weights "+path+": no space left on device" {
		t.Errorf("a full disk: %v", err)
	}
	checkFolder(t, dir, "w")
	if err := Room(nil, strings.Repeat("none/", 3)+"w", 1); err != nil {
		t.Errorf("a folder that is not there: %v", err) // Writable says so
	}
}
