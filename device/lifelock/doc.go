// Package lifelock shows whether a process lives. A process locks a file that is named after it and holds the lock
// until it ends. However it ends, the kernel releases the lock then, and never before: a process that is stopped, or
// that nobody can reach, still holds it.
//
// The file keeps the lives that have held the lock. Who takes it next knows that all of them have ended.
//
//	HOST, process 4711 since 7 March 08:15
//	K5ZQ...    the newest life
//	B7WX...    the one before
//	           an empty line ends the list
//
// A parent may take the lock of a child before it starts that, and hand the open file down: then there is no moment at
// which the child runs without the lock.
//
// The lock is flock(2). It does not cross hosts, so a folder of locks belongs to one host.
package lifelock
