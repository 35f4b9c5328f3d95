// Package bus is [wire.Bus] on NATS, and the embedded server.
//
// A [Server] runs in the controller's process and keeps everything under one directory. A [Conn] is a connection of one
// user: the controller, a command line, or one of the executors. It is lost and comes back without its owner doing
// anything; what asks for an answer fails at once in between, with [wire.ErrAway], and is asked again by its owner.
//
//	key "status.e1"      stream KV_status, subject $KV.status.e1: the bucket "status" of NATS tools, key "e1"
//	log "log.e1.job"     stream LOG, subject log.e1.job
//	bucket "graphs"      stream OBJ_graphs, subjects obj.graphs.NAME and obj.graphs.NAME.DIGEST.CHUNK
//	other buckets        stream OBJ_boxes, subjects box.BUCKET.NAME and box.BUCKET.NAME.DIGEST.CHUNK
//	events, requests     plain NATS
//
// Watch and Follow take what is stored by direct gets, and what comes later from the subject now.SUBJECT, under which a
// stream says again what it has stored, with its number. So a watcher costs the server a subscription, no consumer, and
// one that has missed something (the connection was lost, it was too slow) sees it and asks for the rest.
//
// # Who may do what
//
// The password of a user is the HMAC of its name under the secret in the server's directory. Each executor, and the
// command lines together, live in a NATS account of their own, into which only their own subjects are imported. A list
// of permissions would not do: an answer, such as the one for a message stored, goes to any subject that the request
// names as its reply, with the authority of the server. Here it goes to a subject of the asking account, where nobody
// else listens. The streams take no header by which one message could replace others (roll-up).
//
// The server's data survive a kill of the process. After a loss of power the last two minutes may be missing.
package bus
