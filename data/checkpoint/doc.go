// Package checkpoint keeps checkpoints of training jobs as files: all that the rest of a job follows from, bit for bit.
//
// A [State] is what a checkpoint holds. A [Folder] writes one, finds the newest one of a job, and removes old ones:
//
//	DIR/JOB-ID/2-300.safetensors     the job with this name and ID, in its incarnation 2, after 300 iterations
//	DIR/JOB-ID/2-400.safetensors
//	DIR/JOB-ID/3.begun               incarnation 3 has begun
//
// Files are safetensors, which other tools read: a tensor for each persistent storage, the losses as the tensor
// [lossesName], and the rest as metadata. A digest in the metadata covers all of it.
//
// Invariants:
//   - A file has its name only when it is whole and on the disk: it is written beside, synced and renamed, and the
//     folder is synced.
//   - What is read is what was written, or an error: a torn file, a flipped bit, or a file under another name than its
//     own is never taken for a checkpoint.
//   - A failed Write leaves all older checkpoints.
//   - An incarnation removes its own files and those of older incarnations, never those of newer ones. So a process
//     that lives on although its job has gone on elsewhere does no harm in a folder that both see.
package checkpoint
