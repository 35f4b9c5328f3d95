//go:build !linux

package reduce

import "syscall"

// acknowledged leaves it to the system when a connection fails on which nothing is acknowledged.
func acknowledged(string, string, syscall.RawConn) error { return nil }
