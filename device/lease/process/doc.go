// Package process shares one lease between processes: a small process per device has a lease.Machine ([Serve]), and
// the processes whose jobs train on that device are its clients ([Client]), over a Unix socket.
//
//	@tensile-lease-NAME         bound by the process that serves: lines of JSON, both ways
//	@tensile-lease-NAME-SLOT    bound by a client until it ends: its lock
//
// These are abstract addresses of Unix sockets, NAME being a digest of the lease's name, and SLOT a number below 1024.
// The kernel binds an address once in a network namespace, whoever asks, so that a lease of a name has one process, and
// never a second one beside it by another HOME, TMPDIR or name of the host; there is no file that somebody could remove
// while it is held. [Place] says where a name means one lease: processes of different places cannot share one, and
// their controller must not let them have one device.
//
// A client that finds nobody at the socket has a process started, and tries again. Jobs go on with what they were
// granted in the meantime. A new process grants nothing before every client whose lock is held has said what its jobs
// hold, or has ended: what the process before it granted is known to the clients alone.
//
// The end of a connection says nothing of a client's memory, since a process may close a socket and live. What a
// client held is free when its lock is: the kernel closes a process's files, and with them frees its addresses, after
// the last of its threads has let go of the address space (exit_mm comes before exit_files in Linux's do_exit), so by
// then its pages have been given back. A client that ends in good order has had its jobs Leave; then its lock says
// the same. Where a child trains a client's jobs and may outlive it, it inherits the lock (Client.File).
//
// Anybody on the machine may bind such an address. What another user has at a slot is no client: who listens is asked
// of the kernel (SO_PEERCRED), and a client listens before it says hello. At the address of the lease itself another
// user's process is refused in a line, and its connections are closed.
//
// A slot that is held may be that of another client than the one that was there: this one says hello then, by a name
// that nobody had before, and so the other one is known to have ended.
//
// Connections lose what is on its way when they end. Requests are numbered (lease.Join), a client says again what was
// not answered, and the process the newest grant that a client has not seen.
package process
