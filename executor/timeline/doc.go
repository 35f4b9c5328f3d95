// Package timeline tells what jobs have done on their devices, command by command, as a trace that Perfetto
// (https://ui.perfetto.dev) and chrome://tracing show.
//
// A [Recorder] turns each section of a job that an executor has completed into a [Section], which says all by itself
// and travels as JSON. [Write] puts sections of any number of jobs and devices on one time axis, in the Trace Event
// Format.
package timeline
