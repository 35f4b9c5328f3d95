// Package agent is an executor process's side of the bus: it has a device train what a controller orders, and says what
// is being done.
//
// A [Machine] decides. It is told of orders, of what was fetched, of what the executor's host observed, and when it is
// time for a heartbeat, and answers with what is to be fetched, done and said. It starts nothing and reads no clock.
// [Run] is the runner: a device, a host, a bus and the machine between them.
//
//	         graph, data, checkpoint      first layout
//	ordered ---------------------> waiting ----------> running ----> finished
//	   |                             |                  ^ |  ^ |---> stopped
//	   |                             |      park, resume| |  +-+ newer layouts, checkpoints
//	   |                             |                  | v
//	   |                             |                resting ---> suspended: parked on disk, or its process is to end
//	   +---- failed <----------------+------------------+
//
// Invariants:
//   - orders and statuses are whole: what is lost, doubled or late does no harm. Orders that are not newer than the
//     newest are left, and so are those to another executor;
//   - a job never trains with a layout that was not proven here ([Prove]), nor goes back to an older one. One that is
//     refused is reported, and the job goes on with what it has;
//   - orders that do not name a job end it at once, through Home, and it is forgotten. A job of that name that is
//     ordered later begins when the old one is gone. What a status says of a job that its orders name is never about
//     the old one;
//   - a job begins at the newest whole checkpoint of its own, at that of its spec, or with no iteration. One checkpoint
//     of it is written at a time; that it cannot be written is trouble which the job survives;
//   - a job that is over stays in the status, with what it came to, until the orders do not name it any more;
//   - while the controller is away, jobs go on as they were ordered.
package agent
