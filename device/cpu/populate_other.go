//go:build unix && !linux

package cpu

// populate is not to be had here: pages appear when they are first used.
const populate = 0
