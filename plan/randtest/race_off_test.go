//go:build !race

package randtest

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = false
