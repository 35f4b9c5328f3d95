//go:build race

package policies_test

// raceEnabled reports whether the race detector slows the tests down.
const raceEnabled = true
