//go:build unix && !linux

package cpu

// adviseLarge does nothing here.
func adviseLarge([]byte) {}
