// Package imports holds the project's import table; it has tests only.
//
// The table in table_test.go says which package may import which, and where each foreign library enters. The test reads
// every Go file of the module, whatever its build tags, and fails on an import that the table does not allow, on a
// package that the table does not know, and on clocks, goroutines and other edges in packages that only compute.
package imports
