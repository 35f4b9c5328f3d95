package wire

import (
	"time"

	"tensile/graph"
)

// Spec is a job as its owner wants it.
type Spec struct {
	// Name is the name of the job. Jobs of one controller that are not over have different names.
	Name string `json:"name"`
	// ID tells jobs of one name apart. The controller gives it, another to each job; 0 before that.
	ID int64 `json:"id,omitzero" bound:"count"`
	// Model is the name of the network or the file of the graph, as people see it.
	Model string `json:"model"`
	// Graph is the digest of the graph. The object of that name holds its JSON form.
	Graph graph.Digest `json:"graph"`
	// Seed decides the first weights, the dropout masks and the order of examples.
	Seed uint64 `json:"seed" bound:"any"`
	// Iterations is how many iterations complete the job; 0 for a script, which ends by itself.
	Iterations int `json:"iterations" bound:"count"`
	// Priority weighs the job's time against that of other jobs; 0 is 1.
	Priority int `json:"priority,omitzero" bound:"weight"`
	// SwapRate limits the share of the storages that may be swapped, from 0 to 1; 0 is no limit.
	SwapRate float64 `json:"max_swap_rate,omitzero" bound:"part"`
	// Weights is a file of first weights where the executor runs; "": the seed makes all of them.
	Weights string `json:"weights,omitzero"`
	// Source is the ONNX file of the graph where the executor runs, if Weights names another file; else "".
	Source string `json:"source,omitzero"`
	// Data is a folder with examples where the executor runs; "": a synthetic set.
	Data string `json:"data,omitzero"`
	// Save is the file for parameters and optimizer state where the executor runs; "": they are not saved.
	Save string `json:"save,omitzero"`

	// From is the checkpoint with which the job begins, where the executor runs; "": it begins anew.
	From string `json:"from,omitzero"`
	// Checkpoint is the interval between two checkpoints; zero: none are taken.
	Checkpoint Interval `json:"checkpoint,omitzero"`
	// Keep is how many of the newest checkpoints stay on disk; 0 is 2.
	Keep int `json:"keep_checkpoints,omitzero" bound:"count"`
	// Restarts is how many executors the job may lose without progress in between before it fails.
	Restarts int `json:"restarts,omitzero" bound:"count"`
	// AnyDevice lets the job go on at a device that computes other bits than the one where it began.
	AnyDevice bool `json:"any_device,omitzero"`
	// Owner is the user who submitted the job; "": the administrator.
	Owner string `json:"owner,omitzero"`
	// Device is the name of the device on which the job is to train; "": any.
	Device string `json:"device,omitzero"`

	// Replica is the job's place among those that train one network together. It is zero for a job that trains alone.
	Replica Replica `json:"replica,omitzero"`

	// Script says that the job is a program of another framework, which trains in the process that submits it. Such a
	// job ends when that process does, and its Iterations are 0. Its Graph is the one that was recorded last, or a
	// claim.
	Script bool `json:"script,omitzero"`
	// Held is what a script has on the device all the time beside what its graph says, in bytes; 0 for other jobs.
	Held graph.Bytes `json:"held_bytes,omitzero" bound:"storage"`
	// Least is the size in bytes below which no storage of a script moves; 0 for other jobs.
	Least graph.Bytes `json:"least_bytes,omitzero" bound:"storage"`
}

// Paths returns pointers to all fields that name files or folders.
func (s *Spec) Paths() []*string {
	return []*string{&s.Weights, &s.Source, &s.Data, &s.Save, &s.From}
}

// Replica is the place of a job among those that train one network together.
type Replica struct {
	// Number is the replica's own number, from 0.
	Number int `json:"number,omitzero" bound:"count"`
	// Of is how many replicas train together, as the graph says; 0: the job is no replica, and all fields are zero.
	Of int `json:"of,omitzero" bound:"count"`
	// Group is the ID of replica 0. The controller gives it; 0 before that.
	Group int64 `json:"group,omitzero" bound:"count"`
}

// Meeting is where a replica listens for a connection from the next one.
type Meeting struct {
	// Address is an IP address with a TCP port, or a local address that begins with LocalMeeting.
	Address string `json:"address"`
	// Key is a secret made for this meeting. Whoever knows it may be the next replica.
	Key string `json:"key"`
	// Certificate is the SHA-256 digest, in hexadecimal, of the certificate that the listener shows.
	Certificate string `json:"certificate"`
}

// LocalMeeting is the prefix of the address of a meeting on one host: an abstract Unix socket with a random name.
const LocalMeeting = "@tensile-replica-"

// Interval is the time or the number of iterations between two checkpoints. One field is set.
type Interval struct {
	Every      time.Duration `json:"every_ns,omitzero" bound:"span"`
	Iterations int           `json:"iterations,omitzero" bound:"count"`
}

// Checkpoint describes a checkpoint file, from which a job goes on to the same bits.
type Checkpoint struct {
	// Iteration is how many iterations were complete.
	Iteration int `json:"iteration" bound:"count"`
	// File is the name of the file in the executor's folder of checkpoints.
	File string `json:"file"`
	// Host is the name of the machine that the folder is on.
	Host string `json:"host"`
	// Folder is the identity of the folder; "": unknown.
	Folder string `json:"folder,omitzero"`
	// Bytes is the size of the file.
	Bytes graph.Bytes `json:"bytes" bound:"bytes"`
	// Took is how long the file took to write; 0: unknown.
	Took time.Duration `json:"took_ns,omitzero" bound:"took"`
}

// MaxTook bounds Checkpoint.Took. A longer time is reported as MaxTook.
const MaxTook = 24 * time.Hour
