package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// An executor that notices by its connection first that its parent has ended removes the parent's folder all the same
// before it ends. One whose parent lives ends at once.
func TestBoundLeaves(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(folder, "executors"), 0o700); err != nil {
		t.Fatal(err)
	}
	input, parent := io.Pipe()
	until, ended := make(chan int, 1), make(chan struct{})
	b := bind(input, folder, until, func() { close(ended) })
	if _, err := parent.Write([]byte("7\n")); err != nil {
		t.Fatal(err)
	}
	if got := <-until; got != 7 {
		t.Errorf("it is to train %d iterations, want 7", got)
	}
	b.leave(false)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the folder of a parent that lives: %v", err)
	}
	go parent.Close()
	b.leave(true)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a parent that has ended: %v", err)
	}
	<-ended
	b.leave(false)
}
