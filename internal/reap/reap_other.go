//go:build !linux

package reap

import "time"

// Adopt does nothing on systems without subreapers.
func Adopt() error { return nil }

// Main runs the tests.
func Main(run func() int) int { return run() }

// KillLeftovers knows of no process.
func KillLeftovers(time.Duration) []string { return nil }
