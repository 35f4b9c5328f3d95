// Package bustest is a [wire.Bus] within a process, for tests of what talks over a bus. It keeps everything in memory,
// loses nothing and needs no time, so that runners can be tested on virtual time (testing/synctest).
package bustest
