package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// The newest files of logs stay, up to a number and to a number of bytes, and those in use.
func TestSweepLogs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		most  int
		bytes int64
		want  []string
	}{
		{9, 900, []string{"0", "1", "2", "3", "4"}},
		{3, 900, []string{"0", "1", "2", "4"}},
		{9, 350, []string{"0", "1", "2", "4"}},
		{9, 0, []string{"4"}},
	} {
		dir := t.TempDir()
		for age := range 5 { // the fourth is in use
			f, err := os.Create(filepath.Join(dir, fmt.Sprint(age)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if age == 4 {
				err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
			}
			if err == nil {
				_, err = f.Write(make([]byte, 100))
			}
			at := time.Unix(1e9-int64(age), 0)
			if err == nil {
				err = os.Chtimes(f.Name(), at, at)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := sweepLogs(dir, test.most, test.bytes); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("of at most %d files and %d bytes there stay %q, want %q", test.most, test.bytes, got, test.want)
		}
	}
}
