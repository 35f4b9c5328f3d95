// Package clock is the time that runners tell their machines. It begins with the wall clock and goes on with the
// monotonic one: if somebody sets the wall clock, nobody is taken for silent and no wait gets longer.
package clock
