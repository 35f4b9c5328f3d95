//go:build !linux

package bench

import "time"

var began = time.Now()

// processorTime is the time of the wall, where nothing better is known.
func processorTime() time.Duration { return time.Since(began) }

// threadTime is the same.
func threadTime() time.Duration { return processorTime() }
