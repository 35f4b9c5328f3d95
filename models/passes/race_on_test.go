//go:build race

package passes_test

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = true
