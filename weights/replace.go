package weights

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"tensile/graph"
)

// replace puts what write produces at the path, whole or not at all. The bytes are synced to the disk before the file
// gets its name, so after a crash the path has the old content or the new. The folder is not synced: after a loss of
// power it may be the old content.
func replace(path string, write func(io.Writer) error) error {
	file, err := create(path)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.CloseAtomicallyReplace()
	}
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err // the file beside the path is nobody's business
		}
		return errors.Join(err, file.Cleanup())
	}
	return nil
}

// Replace puts text at a path as Write does: whole or not at all.
func Replace(path string, text []byte) error {
	err := replace(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// create makes the file that is to be put at the path, with the permissions of any new file. If the path is a link, the
// file is for what that points at.
func create(path string) (*renameio.PendingFile, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("is no regular file: name a file to be made or replaced")
	}
	dir := filepath.Dir(path)
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithPermissions(0o666))
	if err != nil {
		if _, missing := os.Stat(dir); os.IsNotExist(missing) {
			err = fmt.Errorf("folder %s does not exist: make it first", dir)
		} else {
			err = fmt.Errorf("no file can be made in folder %s: %w", dir, errors.Unwrap(err))
		}
	}
	return file, err
}

// Writable returns the error that Write would have to give of a path now, so that nothing is trained in vain. It leaves
// everything as it was.
func Writable(path string) error {
	file, err := create(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Cleanup()
}

// Room returns an error unless the disk of the folder of a path has room for so many bytes, beside a file that is
// already there.
func Room(path string, bytes graph.Bytes) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &disk); err != nil || disk.Blocks == 0 {
		return nil // writing will tell
	}
	blocks := uint64(disk.Bavail)
	if os.Geteuid() == 0 {
		blocks = disk.Bfree
	}
	if uint64(bytes)/uint64(disk.Bsize) < blocks {
		return nil
	}
	return fmt.Errorf("%s: it takes %s, and the disk of its folder has %s free: make room, or name a file elsewhere",
		path, bytes, graph.Bytes(blocks*uint64(disk.Bsize)))
}
