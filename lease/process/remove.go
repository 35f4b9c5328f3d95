package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"tensile/internal/lifelock"
)

// LogName is the file in the folder of a lease that its process may write to. Only an empty one is removed with it.
const LogName = "log"

// Remove removes the folder of a lease that no process serves, and of which no client lives. Processes that begin to
// use it meanwhile make it anew.
func Remove(folder string) {
	if _, err := os.Stat(folder); err != nil {
		return
	}
	lock, err := lifelock.Take(folder, lockName)
	if err != nil {
		return // somebody serves it
	}
	defer lock.Release()
	if _, err := clientsOf(filepath.Join(folder, clientsName)); err == nil {
		remove(folder)
	}
}

// remove removes what the process of a lease has left in its folder, and the folder, unless a client has a lock there.
// The caller holds the lock of the lease. That goes last, so that the socket of the next process stays.
func remove(folder string) {
	if err := os.Remove(filepath.Join(folder, clientsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	os.Remove(filepath.Join(folder, socketName))
	log := filepath.Join(folder, LogName)
	if info, err := os.Stat(log); err == nil && info.Size() == 0 {
		os.Remove(log)
	}
	lifelock.Remove(folder, lockName)
	os.Remove(folder) // unless something is there
}
