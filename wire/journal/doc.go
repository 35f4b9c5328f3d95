// Package journal keeps what a controller stores a second time, in files of its state folder, so that what the bus has
// lost is found and put back.
//
// A [Journal] holds the newest value of each record, orders, device and setting. What a controller writes goes through
// [Journal.Follow]: it gets a number, which only rises, is added to the journal, and then is stored on the bus. So the
// journal is never behind the bus, but for a loss of power, and what both have tells by its number which is newer.
//
//	SHA-256 LAST journal {"entries":N}      everything up to number LAST, N values
//	SHA-256 NUMBER KEY VALUE                one of these, or a later write
//	SHA-256 NUMBER KEY                      the key was deleted
//
// Each line has a digest of the rest of it. Later writes are numbered without gaps, so that it is found when lines are
// missing. When a file has grown to twice what is needed a new one takes its place, which is written beside, synced and
// renamed; the one before stays as FILE.before, and together with the lines that can be read of a damaged file it says
// all that was written until that took its place. What was deleted in lines that are lost stays so if the bus lacks it
// and seems whole otherwise: it has values of that kind, and none that is damaged or older. Where the lines that a file
// has lost are at its end, that shows by newer values of the bus alone.
//
// Writes are not synced, as those of the bus are not: they survive a kill of the process; a loss of power may take the
// last of them, of both, and what either still has counts.
package journal
