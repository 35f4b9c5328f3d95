// Package plantest has what the tests of programs, of their compiler and of their proof share. A [Subject] is a graph
// with plan, layout and program to try. [Spans] lists what a command uses and [Unroll] what comes before it, the slow
// way and without the code of compiler or proof.
package plantest
