package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tensile/internal/needs"
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

// A script whose log finds no room on the disk ends with an error that says so; another's error says nothing of it.
func TestFullLog(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	dir := needs.SmallDisk(t, 1<<20)
	write(t, filepath.Join(dir, "roomy"), "step 1\n")
	d := detached{log: filepath.Join(dir, "roomy")}
	if got := d.ended(failed).Error(); strings.Contains(got, "room") {
		t.Errorf("with room: %s", got)
	}
	d.log = filepath.Join(dir, "log")
	write(t, d.log, "step 1\n")
	rest, err := os.Create(filepath.Join(dir, "rest")) // which takes what is left
	for err == nil {
		_, err = rest.Write(make([]byte, 4096))
	}
	rest.Close()
	want := "exit status 1; what it prints finds no room: write " + d.log + ": no space left on device; it is not "
	if got := d.ended(failed); !errors.Is(got, failed) || !strings.HasPrefix(got.Error(), want) {
		t.Errorf("without room: %v, want %s", got, want)
	}
}

// The log of a script that is started again begins with the last whole lines that were printed before.
func TestFollowAgain(t *testing.T) {
	t.Parallel()
	d := detached{log: filepath.Join(t.TempDir(), "log")}
	line := strings.Repeat("x", 1023) + "\n"
	write(t, d.log, strings.Repeat(line, 100))
	for _, want := range []int{100, 63, 63} { // of 1 KiB, the first of 64 is what the mark cuts
		var got int
		d.follow(func(s string) {
			if s+"\n" != line {
				t.Errorf("a line of %d bytes", len(s))
			}
			got++
		})
		if err := d.ended(nil); err != nil || got != want {
			t.Errorf("%d lines, want %d (%v)", got, want, err)
		}
	}
}
