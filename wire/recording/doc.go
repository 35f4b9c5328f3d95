// Package recording writes down what a machine is told and what it answers, and reads that back: a line of JSON for
// each step. A recording that was cut off, as by the end of its process, is good up to its last complete line.
package recording
