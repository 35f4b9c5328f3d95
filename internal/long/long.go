// Package long tells tests how long they may take. Tests are short by default: `make test` and plain `go test ./...`
// run them so. The flag -long turns on their full length, which `make test-all` and CI run; -long=N has whatever draws
// random cases draw N of them, for soaks.
//
// Every package with tests imports it, so that `go test ./... -long` works (internal/imports holds that in a test).
package long

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
)

// setting is the value of the flag: 0 is short, full is full length, and a positive value is a number of rounds.
type setting int

const full setting = -1

var length setting

func init() {
	flag.Var(&length, "long", "run tests at full length; with -long=N, N rounds of tests that draw random cases")
}

func (s *setting) IsBoolFlag() bool { return true }

func (s *setting) String() string { return strconv.Itoa(int(*s)) }

func (s *setting) Set(text string) error {
	switch text {
	case "true":
		*s = full
		return nil
	case "false":
		*s = 0
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("want a number of rounds, as in -long=5000")
	}
	*s = setting(n)
	return nil
}

// On reports whether tests run at full length.
func On() bool { return length != 0 }

// Soak reports whether tests run for as many rounds as -long=N says.
func Soak() bool { return length > 0 }

// Rounds returns how many random cases a test draws: short by default, complete with -long, and N with -long=N.
func Rounds(short, complete uint64) uint64 {
	if Soak() {
		return uint64(length)
	}
	return Or(short, complete)
}

// Or returns the first of two values of a test that is short, and the second of one at full length.
func Or[T any](short, complete T) T {
	if On() {
		return complete
	}
	return short
}

// Only skips a test unless tests run at full length.
func Only(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("long: make test-all runs it")
	}
}
