package rooted

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"syscall"

	"tensile/graph"
)

// entryBytes is how much a file or folder counts for beside its content.
const entryBytes = 4 * graph.KiB

// Hold keeps others from putting files into the user's own folder, if a path lies there, until release is called: what
// each finds room for must still have it.
func (f *Files) Hold(path string) (release func(), err error) {
	if !f.Home(path) {
		return func() {}, nil
	}
	if err := os.MkdirAll(f.home, 0o700); err != nil {
		return nil, err
	}
	folder, err := os.Open(f.home)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		folder.Close()
		return nil, fmt.Errorf("lock the folder %s: %w", f.home, err)
	}
	return func() { folder.Close() }, nil
}

// Room is how many bytes the file of a path may have, by the quota of the user's own folder, if it lies there. What it
// replaces counts as gone.
func (f *Files) Room(path string) (graph.Bytes, error) {
	if !f.Home(path) {
		return math.MaxInt64, nil
	}
	root, name, err := f.root(path)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	room, err := f.quotaBytes()
	if err != nil {
		return 0, err
	}
	err = fs.WalkDir(root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == "." || at == name {
			return err
		}
		room -= entryBytes
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() { // it may have gone meanwhile
			room -= graph.Bytes(info.Size())
		}
		return nil
	})
	return max(0, room-entryBytes), err
}

// quotaBytes is the quota of the user's own folder, which is there.
func (f *Files) quotaBytes() (graph.Bytes, error) {
	if f.quota > 0 {
		return f.quota, nil
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(f.home, &disk); err != nil {
		return 0, fmt.Errorf("size of the disk of %s: %w", f.home, err)
	}
	const share = 4
	return graph.Bytes(disk.Blocks) * graph.Bytes(disk.Bsize) / share, nil
}

// Full is the error for a file that has more bytes than there is room for.
func (f *Files) Full(room graph.Bytes) error {
	most, err := f.quotaBytes()
	if err != nil {
		return err
	}
	return fmt.Errorf("folder %s may have %s, and has room for %s: remove files there, or ask an administrator for a "+
		"larger --user-quota", f.home, most, room)
}
