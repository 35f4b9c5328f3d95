package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tensile/graph"
)

// Disk is where files are. Paths are those of [path/filepath]. Errors about what is not there are fs.ErrNotExist.
type Disk interface {
	List(dir string) ([]Entry, error) // what is in a folder; nothing if there is none
	Create(path string) (File, error) // a new file; its folder, the last of the path alone, is made if need be
	Open(path string) (Opened, error)
	Rename(from, to string) error // in one folder, which is synced; a file of that name is replaced
	Remove(path string) error     // a file, or an empty folder
}

// Entry is a file or folder in a folder.
type Entry struct {
	Name  string
	Bytes graph.Bytes // Size of the file.
	Dir   bool
}

// File is a file that is being written.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Opened is a file that is being read.
type Opened interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

// files is the file system.
type files struct{}

func (files) List(dir string) ([]Entry, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []Entry
	for _, e := range list {
		info, problem := e.Info()
		if errors.Is(problem, fs.ErrNotExist) {
			continue // it has gone meanwhile
		} else if problem != nil {
			return nil, problem
		}
		entries = append(entries, Entry{e.Name(), graph.Bytes(info.Size()), e.IsDir()})
	}
	return entries, err
}

func (files) Create(path string) (File, error) {
	dir := filepath.Dir(path)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = syncDir(filepath.Dir(dir))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// makeDir makes a folder and those above it that are missing, so that they stay after a loss of power.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (files) Open(path string) (Opened, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return opened{f}, nil
}

type opened struct{ *os.File }

func (o opened) Size() (int64, error) {
	info, err := o.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("it is no regular file")
	}
	return info.Size(), nil
}

func (files) Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func (files) Remove(path string) error { return os.Remove(path) }
