//go:build unix

package data

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe among images, or in place of a file of arrays, is refused: nobody may ever write to it.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	for _, class := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, class), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(dir, class, "x.png"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openImages(nil, dir); err == nil || !strings.Contains(err.Error(), "x.png: is no regular file") {
		t.Errorf("error %v", err)
	}
	pipe := filepath.Join(dir, "data.npz")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArrays(nil, pipe, 1); err == nil ||
		!strings.Contains(err.Error(), "data.npz: is no regular file") {
		t.Errorf("error %v", err)
	}
}
