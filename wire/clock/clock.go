package clock

import "time"

var began = time.Now()

// Now is the time since the Unix epoch.
func Now() time.Duration { return time.Duration(began.UnixNano()) + time.Since(began) }
