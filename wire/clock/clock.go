package clock

import "time"

var (
	began = time.Now()
	// epoch is the time from the Unix epoch until then, by the wall clock.
	epoch = time.Duration(began.UnixNano())
)

// Now is the time since the Unix epoch.
func Now() time.Duration { return epoch + time.Since(began) }
