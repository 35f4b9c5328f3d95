// Command testrun runs `go test` with the arguments it is given and prints what `go test` prints: a line per package,
// build errors, the output of tests that failed. At the end it adds one line that counts the tests skipped because the
// machine lacks data or programs, by reason, for results from the cache too:
//
//	skipped: 3 need PyTorch, 2 need a browser
//
// A skip counts if its message reads "needs THING: REMEDY", as those of package needs do. Tests that package long
// leaves out are counted in a line of their own. The exit code is that of `go test`, or 1 if a test has left a process
// that does not end within a minute: testrun names those and kills them.
//
// The go command caches a test's result by the files inside the module and the environment it read. What package needs
// looks for lies outside the module, so testrun describes it in the variable [needs.Found], which those tests read: a
// result is not taken from the cache after a library came or went.
package main
