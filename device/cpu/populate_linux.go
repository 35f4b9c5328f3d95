package cpu

import "syscall"

// populate lets a mapping have its pages at once, so that an arena costs its time when it is reserved and not in the
// middle of an iteration.
const populate = syscall.MAP_POPULATE
