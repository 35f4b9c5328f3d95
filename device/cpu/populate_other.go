//go:build unix && !linux

package cpu

// populate does nothing here: pages appear when they are first used.
func populate(memory) {}
