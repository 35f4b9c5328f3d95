// Package backup writes all that a controller needs to go on into one file, while it runs, and makes a state folder of
// it again.
//
// The file is a tar archive, which any tar lists:
//
//	tensile-backup              {"format":N}: the form of the state folder
//	state/...                   files of the state folder: secret, credentials.json, ca.pem, address, http.json,
//	                            the journal (records, orders, devices, settings), locks of executors,
//	                            checkpoints of jobs that are not over
//	object/BUCKET/NAME          graphs, layouts, results, what was learnt
//	end                         SHA-256 of all names, sizes and contents before it
//
// Logs are left out, and what executors say every second. The journal is read first, at one moment between two writes
// of the controller, so that a restored controller goes on as one that was killed at that moment; objects and
// checkpoints may be newer, never older.
package backup
