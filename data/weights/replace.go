package weights

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tensile/data/rooted"
	"tensile/graph"
)

// replace puts what write produces at the path, whole or not at all. The bytes are synced to the disk before the file
// gets its name, so after a crash the path has the old content or the new. The folder is not synced: after a loss of
// power it may be the old content.
func replace(in *rooted.Files, path string, write func(io.Writer) error) error {
	release, err := in.Hold(path)
	if err != nil {
		return err
	}
	defer release()
	room, err := in.Room(path)
	if err != nil {
		return err
	}
	p, err := create(in, path)
	if err != nil {
		return err
	}
	defer p.dir.Close()
	bounded := &boundedWriter{to: p.file, left: room}
	err = write(bounded)
	if bounded.full {
		err = in.Full(room)
	}
	if err == nil {
		err = p.file.Sync()
	}
	if err = errors.Join(err, p.file.Close()); err == nil {
		err = p.dir.Rename(p.beside, p.name)
	}
	if err != nil {
		err = errors.Join(nobodys(err), p.dir.Remove(p.beside))
	}
	return err
}

// boundedWriter writes so many bytes and no more.
type boundedWriter struct {
	to   io.Writer
	left graph.Bytes
	full bool // there were more
}

func (w *boundedWriter) Write(data []byte) (int, error) {
	if w.left -= graph.Bytes(len(data)); w.left < 0 {
		w.full = true
		return 0, io.ErrShortWrite
	}
	return w.to.Write(data)
}

// nobodys is an error without the name of the file beside a path, which is nobody's business.
func nobodys(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}

// Replace puts parts of a text at a path as Write does: whole or not at all.
func Replace(in *rooted.Files, path string, parts ...[]byte) error {
	err := replace(in, path, func(w io.Writer) error {
		for _, part := range parts {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// pending is a file that is to be put into a folder under a name, and lies beside that until then.
type pending struct {
	dir          *os.Root
	name, beside string
	file         *os.File
}

// create makes the file that is to be put at the path, with the permissions of any new file. If the path is a link, the
// file is for what that points at.
func create(in *rooted.Files, path string) (*pending, error) {
	folder := filepath.Dir(path)
	dir, name, err := in.Parent(path)
	_, system := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("folder %s does not exist: make it first", folder)
	case system:
		return nil, fmt.Errorf("no file can be made in folder %s: %w", folder, nobodys(err))
	case err != nil:
		return nil, err
	}
	p := &pending{dir: dir, name: name, beside: ".tensile-" + rand.Text()}
	if info, err := dir.Stat(name); err == nil && !info.Mode().IsRegular() {
		dir.Close()
		return nil, fmt.Errorf("is no regular file: name a file to be made or replaced")
	}
	if p.file, err = dir.OpenFile(p.beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		dir.Close()
		return nil, fmt.Errorf("no file can be made in folder %s: %w", folder, nobodys(err))
	}
	return p, nil
}

// Writable returns the error that Write would have to give of a path now, so that it is known before training. It
// leaves everything as it was.
func Writable(in *rooted.Files, path string) error {
	p, err := create(in, path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer p.dir.Close()
	return errors.Join(p.file.Close(), p.dir.Remove(p.beside))
}

// Room returns an error unless the disk of the folder of a path has room for size bytes, beside a file that is
// already there, and the folder of the user has it too.
func Room(in *rooted.Files, path string, bytes graph.Bytes) error {
	if room, err := in.Room(path); err == nil && room < bytes {
		return fmt.Errorf("%s: %w", path, in.Full(room))
	}
	dir, name, err := in.Parent(path)
	if err != nil {
		return nil // writing will tell
	}
	defer dir.Close()
	folder, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer folder.Close()
	var disk syscall.Statfs_t
	if err := syscall.Fstatfs(int(folder.Fd()), &disk); err != nil || disk.Blocks == 0 {
		return nil
	}
	blocks := uint64(disk.Bavail)
	if os.Geteuid() == 0 {
		blocks = disk.Bfree
	}
	if uint64(bytes)/uint64(disk.Bsize) < blocks {
		return nil
	}
	return fmt.Errorf("%s: it takes %s, and the disk of its folder has %s free: make room, or name a file elsewhere",
		filepath.Join(dir.Name(), name), bytes, graph.Bytes(blocks*uint64(disk.Bsize)))
}
