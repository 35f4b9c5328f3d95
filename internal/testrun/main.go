package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"tensile/internal/needs"
	"tensile/internal/reap"
)

func main() {
	interrupts := make(chan os.Signal, 1)
	// go test gets the same signal and ends; what it has said until then is printed
	signal.Notify(interrupts, os.Interrupt)
	found, err := found()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
	begin := time.Now()
	env := []string{needs.Found + "=" + found}
	if os.Getenv(collector) == "" {
		env = append(env, collector+"="+seldom)
	}
	code, err := run(os.Stdout, os.Stderr, "", env, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
	fmt.Printf("the tests took %v\n", time.Since(begin).Round(time.Second))
	os.Exit(code)
}

// Tests make many plans on small heaps, and start many processes that live for a moment: with the usual heap, twice
// what is in use, a third of their time goes into collecting garbage.
const collector, seldom = "GOGC", "400"

// found describes what tests may want of the machine.
func found() (string, error) {
	return needs.Describe()
}

// grace is how long processes that tests have started may take to end.
var grace = time.Minute

// run carries out go test in a folder ("": the current one) with variables added to the environment, and returns its
// exit code.
func run(stdout, stderr io.Writer, dir string, env, args []string) (int, error) {
	if err := reap.Adopt(); err != nil {
		return 0, err
	}
	command := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	command.Dir, command.Stderr = dir, stderr
	command.Env = append(os.Environ(), env...)
	pipe, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	r := newReport(stdout)
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadBytes('\n')
		r.line(line)
		if err != nil {
			break // the process closed its end; Wait says why
		}
	}
	err = command.Wait()
	left := reap.KillLeftovers(grace)
	for _, line := range left {
		fmt.Fprintln(stdout, "FAIL: a test has left a process:", line)
	}
	r.end()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return min(len(left), 1), err
}
