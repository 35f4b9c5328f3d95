package weights

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// replace puts what write produces at the path, whole or not at all. The bytes reach the disk before the name does, so
// that after a crash the path holds the old content or the new.
func replace(path string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("is no regular file: name a file to be made or replaced")
	}
	file, err := createBeside(path)
	if os.IsNotExist(err) {
		return fmt.Errorf("folder %s does not exist: make it first", filepath.Dir(path))
	} else if err != nil {
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
