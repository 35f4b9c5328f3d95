package lifelock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Lock is a lock that this process holds.
type Lock struct {
	file *os.File
	path string   // of the file, if Take has opened it
	dead []string // the lives that held it before, the newest first
	made bool     // by Take, and nobody has signed it
}

// HeldError is returned by [Take] when another process holds the lock.
type HeldError struct {
	Name   string // of the lock
	Holder string // which process that is, and since when; "": it has not said so yet
}

func (e *HeldError) Error() string {
	if e.Holder == "" {
		return e.Name + " runs already on this host"
	}
	return fmt.Sprintf("%s runs already on %s", e.Name, e.Holder)
}

// maxLives is how many lives a file remembers.
const maxLives = 16

// path is the file of a lock.
func path(folder, name string) string { return filepath.Join(folder, name+".lock") }

// Take takes the lock of a name in a folder, which is made if it is not there. The error is a [HeldError] when another
// process has it.
func Take(folder, name string) (*Lock, error) {
	for {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		f, err := openLock(folder, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has removed the folder again
		} else if err != nil {
			return nil, err
		}
		held, err := lock(f)
		switch {
		case err != nil:
			f.Close()
			return nil, err
		case held:
			holder, _, _ := read(f) // who it is adds to the error alone
			f.Close()
			return nil, &HeldError{Name: name, Holder: holder}
		case removed(f, path(folder, name)):
			f.Close() // between the two calls: another process may have made the file anew
			continue
		}
		_, dead, err := read(f)
		if err != nil {
			f.Close()
			return nil, err
		}
		return &Lock{file: f, path: path(folder, name), dead: dead, made: len(dead) == 0}, nil
	}
}

// openLock opens the file of a lock. One that is made gets its name when it is locked: before, Lives would take it for
// that of a process that has ended.
func openLock(folder, name string) (*os.File, error) {
	f, err := os.OpenFile(path(folder, name), os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err = os.CreateTemp(folder, "."+name+"-*"); err != nil {
		return nil, err
	}
	_, err = lock(f)
	if err == nil {
		err = os.Link(f.Name(), path(folder, name))
	}
	os.Remove(f.Name())
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, fs.ErrExist) { // another process has made it
		return os.OpenFile(path(folder, name), os.O_RDWR, 0)
	}
	return nil, err
}

// Inherit returns the lock that the parent of this process took for it, by the number of its open file.
func Inherit(descriptor uintptr) (*Lock, error) {
	f := os.NewFile(descriptor, fmt.Sprintf("inherited file %d", descriptor))
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no lock", f.Name())
	}
	syscall.CloseOnExec(int(descriptor)) // children of this process do not hold it
	held, err := lock(f)                 // without effect if the parent has taken it
	if err == nil && held {
		err = fmt.Errorf("another process holds the lock of %s", f.Name())
	}
	if err != nil {
		return nil, err
	}
	_, dead, err := read(f)
	return &Lock{file: f, dead: dead}, err
}

// File is what a child inherits. The lock is held until every process has closed it.
func (l *Lock) File() *os.File { return l.file }

// Removed reports whether the file of the lock was removed while this process holds it.
func (l *Lock) Removed() bool {
	info, err := l.file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}

// Dead are the lives that held the lock before this process, and have ended; the newest first. There may have been
// others, more than 16 lives ago.
func (l *Lock) Dead() []string { return slices.Clone(l.dead) }

// Sign writes down which process holds the lock: where it runs, such as "HOST, process PID", since when, and its life.
func (l *Lock) Sign(where string, since time.Time, life string) error {
	lives := append([]string{life}, l.dead...)
	text := where + since.Format(" since 2 January 15:04") + "\n" +
		strings.Join(lives[:min(len(lives), maxLives)], "\n") + "\n\n"
	// One write, over what was there: a process that is killed now leaves either the old text or the new one.
	if _, err := l.file.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("sign a lock: %w", err)
	}
	l.made = false
	return nil
}

// Release gives the lock back. One that nobody ever signed leaves no file, and no empty folder.
func (l *Lock) Release() {
	if l.made {
		os.Remove(l.path)
		os.Remove(filepath.Dir(l.path)) // unless others have locks there
	}
	l.file.Close()
}

// Leave closes the lock, and leaves it to a child that has inherited it.
func (l *Lock) Leave() { l.file.Close() }

// Lives reports whether the process that holds, or last held, the lock of a name lives. It is not known if nobody ever
// took the lock, or if the file cannot be read. Lives holds the lock for a moment itself: a Take at the same time may
// fail, so let one goroutine do both.
func Lives(folder, name string) (lives, known bool) {
	f, err := os.Open(path(folder, name))
	if err != nil {
		return false, false
	}
	defer f.Close() // releases the lock that lock takes
	held, err := lock(f)
	return held, err == nil
}

// Ended returns the lives that have held the lock of a name, the newest first, if nobody holds it.
func Ended(folder, name string) []string {
	f, err := os.Open(path(folder, name))
	if err != nil {
		return nil
	}
	defer f.Close() // releases the lock that lock takes
	if held, err := lock(f); held || err != nil {
		return nil
	}
	_, lives, _ := read(f) // without them less is known
	return lives
}

// Remove removes the file of a lock, for a name that nobody asks for again: a process that has left may still hold it
// for a moment.
func Remove(folder, name string) error {
	if err := os.Remove(path(folder, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes the file of a lock that nobody holds, and reports whether nobody does. A process that is about to take
// the lock makes the file anew. Like Lives, Sweep holds the lock for a moment itself.
func sweep(folder, name string) (ended bool) {
	f, err := os.Open(path(folder, name))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close() // releases the lock that lock takes
	if held, err := lock(f); held || err != nil || removed(f, f.Name()) {
		return false
	}
	os.Remove(f.Name()) // while nobody else can take the lock; the worst is a file that stays
	return true
}

// lock locks a file, or reports that another holds it.
func lock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return false, nil
}

// removed reports whether a path no longer names an open file.
func removed(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(path)
	return err != nil || !os.SameFile(opened, named)
}

// read returns what the last process that signed has written.
func read(f *os.File) (holder string, lives []string, err error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxText))
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	list, _, ended := strings.Cut(string(text), "\n\n")
	if !ended {
		return "", nil, nil // it is no list: nobody has signed
	}
	holder, rest, _ := strings.Cut(list, "\n")
	return holder, strings.Fields(rest), nil
}

// maxText is more than any text that is signed.
const maxText = 16 << 10
