//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
	_ "unsafe" // for go:linkname
)

// clockEpoch is what a process takes the wall clock for as it begins: after that it looks at no wall clock.
//
//go:linkname clockEpoch tensile/wire/clock.epoch
var clockEpoch time.Duration

// clockFile is a link in the folder of a cluster that points to how far its wall clock is off: a disk that is full has
// room for a link.
const clockFile = "tensile-test-clock"

// A process of a cluster begins with the wall clock of that.
func init() {
	text, err := os.Readlink(filepath.Join(os.TempDir(), clockFile))
	if err != nil {
		return // it was never stepped
	}
	off, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	clockEpoch += off
}

// stepClock sets the wall clock of a cluster for processes that begin from now on, up to an hour back or forth, and
// starts a controller with it. Executors that live have the clock of before.
func (c *chaos) stepClock() string {
	off := time.Duration(c.rng.IntN(3)-1) * time.Hour
	for off == c.clockOff {
		off = time.Duration(c.rng.IntN(3)-1) * time.Hour
	}
	c.killController(func() {
		link := filepath.Join(c.dir, clockFile)
		_ = os.Remove(link) // there is none before the first step
		if err := os.Symlink(off.String(), link); err != nil {
			c.t.Fatal(err)
		}
	})
	said := fmt.Sprintf("step the clock by %v", off-c.clockOff)
	c.clockOff = off
	return said
}
