// Package bus is [wire.Bus] on NATS, and the embedded server.
//
// A [Server] runs in the controller's process and keeps everything under one directory. A [Conn] is a connection of one
// user: the controller, a command line, or one of the executors. A lost connection is made again in the background;
// until then, what asks for an answer fails at once with [wire.ErrAway], and its caller asks again.
//
// # The protocol, for programs in other languages
//
// Any NATS client can speak it. Users and passwords are in the credentials files that the controller writes
// ({"url", "user", "password", "ca"}); the user controller may do everything.
//
// Names: an executor or a job is one token of a subject. Letters, digits and "-" of ASCII stand for themselves, any
// other byte is "_" and two hexadecimal digits, so executor "lab.2" is "lab_2e2".
//
// Messages are JSON: {"version": 1, "kind": KIND, "body": {...}}. wire/testdata has one of each kind, go doc
// tensile/wire has the fields.
//
//	subject or key            kind      what it is in NATS
//	orders.EXECUTOR           orders    key-value store "orders", key EXECUTOR: subject $KV.orders.EXECUTOR
//	status.EXECUTOR           status    key-value store "status", key EXECUTOR
//	result.EXECUTOR.ID        result    key-value store "result", key EXECUTOR.ID: until the controller has taken it
//	record.JOB                record    key-value store "record", key JOB
//	device.NAME               device    key-value store "device", key NAME: one that executors have brought
//	report.EXECUTOR.JOB       report    a plain message, at most once
//	trace.EXECUTOR.JOB        section   a plain message, at most once, where somebody has asked for it
//	traced.EXECUTOR.JOB       section   the same, as the controller hands it on to users
//	control                   request   a plain request, whose reply is an answer; see below
//	log.EXECUTOR.JOB          text      stream LOG, a message per line, the newest 10,000 of each subject
//	graph-DIGEST              a graph   object store "graphs": a graph in its JSON form
//	graph-DIGEST              a graph   object store "x-EXECUTOR": the same, for the executor that trains it
//	layout-JOB-EPOCH          layout    object store "x-EXECUTOR"
//	result-JOB-ID             result    object store "results": what a job that is over came to
//	learnt-DEVICE             learnt    object store "learnt": what ops have taken on a device
//	settings-DEVICE           settings  object store "settings": what an administrator has set for a device
//
// Key-value stores and object stores have the layout of NATS's own, so `nats object get x-e1 layout-a-1`, ObjectStore
// of nats.go and of nats.py read and write them. An object's info is the newest message of $O.BUCKET.M.NAME, NAME in
// base64 (URL alphabet); its data are the messages of $O.BUCKET.C.NUID, in order, with the id that the info names; its
// digest is "SHA-256=" and base64. The name of a bucket longer than 200 bytes is cut to 167, followed by "-" and 32
// hexadecimal digits of its SHA-256. The bucket of an executor is made with its first object and removed when the
// executor leaves for good.
//
// An executor may not create consumers, which is how most clients read streams (see below): it reads by direct gets,
// $JS.API.DIRECT.GET.KV_orders.$KV.orders.EXECUTOR for its orders,
// $JS.API.DIRECT.GET.OBJ_x-EXECUTOR.$O.x-EXECUTOR.M.NAME for an info, and $JS.API.DIRECT.GET.OBJ_x-EXECUTOR with
// {"seq": N, "next_by_subj": "$O.x-EXECUTOR.C.NUID"} for the first chunk with a sequence number of N or more. It is
// told of new orders by a plain message to now.$KV.orders.EXECUTOR.
//
// # Watching
//
// Watch and Follow read what is stored by direct gets. What comes later they hear from the subject now.SUBJECT, under
// which a stream publishes again what it has stored, with its sequence number. So a watcher costs the server a
// subscription and no consumer. A watcher that has missed something, because the connection was lost or because it was
// too slow, notices that and reads again.
//
// # Who may do what
//
// The password of a user is the HMAC of its name under the secret in the server's directory; if its credentials were
// revoked, the name is followed by a line break and how often. Users are "controller", "client" (the administrator's
// command lines), u-USER (those of a person) and x-EXECUTOR. Each has a NATS account of its own, into which only its
// own subjects are imported. Accounts of command lines have a subject control, which the server imports as
// control.USER: so a controller that serves control.* knows who asks.
//
// A list of permissions in one account would not do: the server sends an answer, such as the acknowledgement of a
// stored message, to any subject that the request names as its reply, with the server's authority. Here that is a
// subject of the asking account, where nobody else listens. A consumer has a delivery subject for the same use, so no
// account but the controller's may create one.
//
// What an executor publishes the server imports as in.SUBJECT, where it counts bytes and messages of each executor,
// hands on what that may send, and keeps its newest 64 MiB of log lines.
//
// The streams of keys and logs refuse the header by which one message replaces others (Nats-Rollup). Object stores need
// it, and only the controller may write to them: graphs come with requests.
//
// # Servers of others
//
// With Credentials.External the servers are a cluster that somebody else runs (nats-server 2.12 or newer, JetStream,
// max_payload of 8 MiB). A connection makes the streams that it needs, each on three servers if there are as many. What
// a user may is for those servers to say: [ExternalAccess] lists what each has to be let do.
//
// A command line asks control.USER itself, instead of control. What is stored is read from the leader of its stream, by
// $JS.API.STREAM.MSG.GET.STREAM, since the other servers may not have it yet; but an executor reads its orders, which
// are told again, by a direct get. A stream whose leader ends may have stored what it did not publish again, so readers
// look every two seconds whether they have missed something.
//
// Where all users are in one account, who may store or read something may have the answer, which may be what it has
// stored, sent to any subject of that account, also to control.client: so it can do what an administrator can. Give
// users and executors that are not trusted that far accounts of their own, which import their subjects.
//
// There no executor has a quota: each publishes to the streams itself.
//
// Several controllers may use one cluster, of which one leads. The key leader.controller says which; [Conn.Fence] has
// the streams refuse what one writes in whose place another leads.
//
// # What survives
//
// The server's data survive a kill of the process. After a loss of power the last two minutes may be missing. A store
// of objects takes 4 GiB, a store of keys and the logs 1 GiB each.
package bus
