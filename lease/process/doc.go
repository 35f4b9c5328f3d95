// Package process shares one lease between processes: a small process per device has a lease.Machine ([Serve]), and
// the processes whose jobs train on that device are its clients ([Client]), over a Unix socket in a folder of their
// own.
//
//	FOLDER/lease.lock       held by the process that serves (internal/lifelock), so that only one does
//	FOLDER/socket           lines of JSON, both ways
//	FOLDER/clients/ID.lock  held by a client from its first Join until it ends
//
// A client that finds nobody at the socket has a process started, and tries again. Jobs go on with what they were
// granted in the meantime. A new process grants nothing before every client whose lock is held has said what its jobs
// hold, or has ended: what the process before it granted is known to the clients alone.
//
// The end of a connection says nothing of a client's memory, since a process may close a socket and live. What a
// client held is free when its lock is: the kernel closes a process's files, and with them releases its locks, after
// the last of its threads has let go of the address space (exit_mm comes before exit_files in Linux's do_exit), so by
// then its pages have been given back. A client that ends in good order has had its jobs Leave; then its lock says
// the same. Where a child trains a client's jobs and may outlive it, it inherits the lock (Client.File).
//
// Connections lose what is on its way when they end. Requests are numbered (lease.Join), a client says again what was
// not answered, and the process the newest grant that a client has not seen.
package process
