// Package leader has one of several controllers with one state lead, and another take its place when it ends.
//
// Which one leads stands under one key, [wire.LeaderKey], which is set only if it has not changed. A [Machine] is told
// what the key holds and what became of its own tries to set it:
//
//	           nobody leads, or the key has not changed for TTL
//	stands by ---------------------------------------------------> leads: sets the key each Beat
//	    ^                                                            |
//	    +------------------------------------------------------------+
//	           another has set the key, or a stream has refused a write
//
// Nobody compares clocks of two hosts: the one that stands by measures how long the key has stayed as it is, and counts
// no time in which it could not read it. So while the store is away for all, nobody's term ends.
//
// [Run] is the runner. It has the bus fenced before anybody leads, so that a leader that was stopped and goes on, and
// does not know of its successor yet, writes nothing. What no stream can refuse, such as a request to remove something,
// a leader leaves alone from TTL-Beat after the last time that it has set the key.
package leader
