package needs

import (
	"strconv"
	"syscall"
	"testing"
)

// SmallDisk returns an empty folder with a capacity of size bytes, and skips the test where it may not mount one.
func SmallDisk(t testing.TB, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+strconv.Itoa(bytes)); err != nil {
		t.Skipf("needs to mount a tmpfs (%v): run the test as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
