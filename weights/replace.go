package weights

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// replace puts what write produces at the path, whole or not at all. The bytes reach the disk before the name does, so
// that after a crash the path holds the old content or the new.
func replace(path string, write func(io.Writer) error) (err error) {
	file, path, err := begin(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// begin makes the file that is to be put at the path. If that is a link, the path returned is what it points at.
func begin(path string) (*os.File, string, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("is no regular file: name a file to be made or replaced")
	}
	file, err := createBeside(path)
	if err != nil {
		if _, missing := os.Stat(filepath.Dir(path)); os.IsNotExist(missing) {
			err = fmt.Errorf("folder %s does not exist: make it first", filepath.Dir(path))
		} else {
			err = fmt.Errorf("no file can be made in folder %s: %w", filepath.Dir(path), errors.Unwrap(err))
		}
	}
	return file, path, err
}

// Writable returns the error that Write would have to give of a path now, so that nothing is trained in vain. It leaves
// everything as it was.
func Writable(path string) error {
	file, _, err := begin(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// createBeside makes a new file in the path's folder, with the permissions that the user's files get (unlike
// os.CreateTemp, whose files only their owner can read).
func createBeside(path string) (*os.File, error) {
	for try := 0; ; try++ {
		name := fmt.Sprintf(".%s.%08x.tmp", filepath.Base(path), rand.Uint32())
		file, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !os.IsExist(err) || try == 100 {
			return file, err
		}
	}
}
