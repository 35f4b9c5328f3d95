package bus

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock keeps two servers from using one directory. The kernel takes it back when the process ends, however it does.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("state directory %s is in use by another controller (%w): stop it, or give this one another directory", dir, err)
	}
	return f, nil
}
