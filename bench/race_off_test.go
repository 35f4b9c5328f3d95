//go:build !race

package bench

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = false
