// Package swapexec is the copy-lane half of a job's runner (the Swap Executor of TENSILE, III-D).
//
// A [Machine] follows the two copy lanes of one job. Copies that were issued stand in the Execution Queue of their
// lane; the head of a queue, once its trigger and waits are reached, is in the Execution Buffer until it has ended.
// The lanes never reorder. The device carries copies out and may hold the head for the rest of its delay; a copy that
// another lane waits for goes at once, with everything before it.
//
//	issued ---> Execution Queue ---> Execution Buffer ---> ended
//	            (in list order)      (ready, held, copying)
//
// When a section is complete, [Account] tells for every copy when it was ready, started and ended, and how long the
// compute lane stood still for it: a copy with a stall was passive in the paper's words.
package swapexec
