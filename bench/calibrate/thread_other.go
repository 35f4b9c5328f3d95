//go:build !linux

package calibrate

import "time"

// start is when the program started.
var start = time.Now()

// threadTime stands for the processor time of the calling thread where it is not told: the time that passes.
func threadTime() time.Duration { return time.Since(start) }
