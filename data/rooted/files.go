// Package rooted opens files that others name: below folders that they may use, and nowhere else, whatever links lead
// there and whenever these change.
package rooted

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"tensile/graph"
)

// Files are those that a user may name: what lies below some folders. Nil: all that this process may open.
type Files struct {
	home    string
	allowed []string
	quota   graph.Bytes
}

// New returns the folders of a user: one of their own, which is made when it is first used and takes as many bytes as
// its quota, and those that all users may use. Paths are absolute; home may be "": the user has none. A quota of 0 is a
// quarter of the disk.
func New(home string, allowed []string, quota graph.Bytes) *Files {
	return &Files{home, allowed, quota}
}

// Path returns what a user means by a path: a relative one is below their own folder.
func (f *Files) Path(path string) string {
	if f == nil || f.home == "" || path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.home, path)
}

// Home reports whether a path is one below the user's own folder.
func (f *Files) Home(path string) bool {
	if f == nil || f.home == "" {
		return false
	}
	_, ok := NameBelow(f.home, path)
	return ok
}

// Open opens a file or folder to be read. Within folders a pipe is not waited for.
func (f *Files) Open(path string) (*os.File, error) {
	return do(f, path, os.Open, func(r *os.Root, name string) (*os.File, error) {
		return r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
}

// Stat is os.Stat.
func (f *Files) Stat(path string) (fs.FileInfo, error) { return do(f, path, os.Stat, (*os.Root).Stat) }

// ReadFile is os.ReadFile.
func (f *Files) ReadFile(path string) ([]byte, error) {
	if f == nil {
		return os.ReadFile(path)
	}
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// ReadDir is os.ReadDir.
func (f *Files) ReadDir(path string) ([]fs.DirEntry, error) {
	return do(f, path, os.ReadDir, func(r *os.Root, name string) ([]fs.DirEntry, error) {
		return fs.ReadDir(r.FS(), name)
	})
}

// OpenRoot is os.OpenRoot.
func (f *Files) OpenRoot(dir string) (*os.Root, error) {
	return do(f, dir, os.OpenRoot, (*os.Root).OpenRoot)
}

// Parent opens the folder of the file that a path names, and returns the file's name there. Without bounds the file is
// the one that links lead to; within folders a link is refused, and what is missing of the user's own is made.
func (f *Files) Parent(path string) (dir *os.Root, name string, err error) {
	if f == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		dir, err = os.OpenRoot(filepath.Dir(path))
		return dir, filepath.Base(path), err
	}
	dir, err = do(f, path, nil, func(r *os.Root, file string) (*os.Root, error) {
		if file == "." { // whose base name would be a file in it
			return nil, fmt.Errorf("%s is a folder: name a file in it", path)
		}
		if info, err := r.Lstat(file); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, f.refused(path, "is a link")
		}
		if f.Home(path) {
			if err := f.makeFolders(r, path, filepath.Dir(file)); err != nil {
				return nil, err
			}
		}
		return r.OpenRoot(filepath.Dir(file))
	})
	return dir, filepath.Base(path), err
}

// makeFolders makes the folders that are missing for the file of a path, if there is room for them and the file.
func (f *Files) makeFolders(r *os.Root, path, folder string) error {
	var missing graph.Bytes
	for at := folder; at != "."; at = filepath.Dir(at) {
		if _, err := r.Lstat(at); err == nil {
			break
		}
		missing++
	}
	if missing == 0 {
		return nil
	}
	room, err := f.Room(path)
	if err == nil && room < missing*entryBytes {
		err = f.Full(room)
	}
	if err != nil {
		return err
	}
	return r.MkdirAll(folder, 0o700)
}

// do does something with a path anywhere, if f is nil, or with its name in the one of the folders below which it lies.
func do[T any](f *Files, path string, anywhere func(string) (T, error), in func(*os.Root, string) (T, error)) (T,
	error) {
	if f == nil {
		return anywhere(path)
	}
	var none T
	root, name, err := f.root(path)
	if err != nil {
		return none, err
	}
	defer root.Close()
	is, err := in(root, name)
	if err == nil {
		return is, nil
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		if errors.Is(at.Err, escape(root)) {
			return none, f.refused(path, "leads out of there by a link")
		}
		err = &fs.PathError{Op: strings.TrimSuffix(at.Op, "at"), Path: path, Err: at.Err}
	}
	return none, err
}

// escape is the error for what leads out of a folder, which has no name in package os.
func escape(root *os.Root) error {
	_, err := root.Lstat("..")
	return errors.Unwrap(err)
}

// root opens the folder below which a path lies, and returns its name there.
func (f *Files) root(path string) (*os.Root, string, error) {
	if f.Home(path) {
		if err := os.MkdirAll(f.home, 0o700); err != nil {
			return nil, "", err
		}
	}
	for _, dir := range append([]string{f.home}, f.allowed...) {
		if name, ok := NameBelow(dir, path); ok && dir != "" {
			root, err := os.OpenRoot(dir)
			return root, name, err
		}
	}
	return nil, "", f.refused(path, "is not there")
}

// NameBelow returns the name of a path in a folder, if it is that folder or lies below it as both are written.
func NameBelow(dir, path string) (name string, ok bool) {
	name, err := filepath.Rel(dir, path)
	return name, err == nil && filepath.IsLocal(name)
}

func (f *Files) refused(path, why string) error {
	all := f.allowed
	if f.home != "" {
		all = append([]string{f.home}, all...)
	}
	return fmt.Errorf("%s: this executor opens files of users in %s alone, and it %s: name a file in such a folder, "+
		"or have it started with --allow FOLDER", path, cmp.Or(strings.Join(all, " and "), "no folder"), why)
}
