//go:build race

package torchtest

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = true
