// Command mutants tests the tests of what proves plans: it changes one thing at a time in the checkers, runs their
// tests, and lists the changes that no test notices.
//
//	go run ./internal/mutants            # all of them: an hour on two cores
//	go run ./internal/mutants fold.go    # those of files whose name contains this
//
// A change is a comparison made strict or lax or turned round, && for ||, + for -, a negation or a statement left out,
// a case that never applies, a flipped true or false, a number one higher. Texts of messages are left alone. Nothing in
// the tree is touched: go test sees a changed file through -overlay. Tests that hang count as having noticed.
//
// survivors.txt lists the changes that are known to go unnoticed, each with the reason why it does no harm. One that is
// not listed is a failure, and so is a listed one that there is no more, or that is noticed by now.
package main
