//go:build !race

package local

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = false
