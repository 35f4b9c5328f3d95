//go:build !race

package randplan

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = false
