//go:build !race

package bus

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = false
