//go:build race

package executor

// RaceEnabled reports whether the race detector slows the tests down.
const RaceEnabled = true
