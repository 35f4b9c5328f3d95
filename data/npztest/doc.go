// Package npztest writes .npz files of arrays for tests.
package npztest
