package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"

	"tensile/device/cpu/gemm"
	"tensile/internal/needs"
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
	code, err := run(os.Stdout, os.Stderr, "", []string{needs.Found + "=" + found}, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// found describes what tests may want of the machine.
func found() (string, error) {
	engine, err := gemm.Open(1, gemm.Options{})
	if err != nil {
		return "", err
	}
	rest, err := needs.Describe()
	return engine.Name() + " " + rest, err
}

// run carries out go test in a folder ("": the current one) with variables added to the environment, and returns its
// exit code.
func run(stdout, stderr io.Writer, dir string, env, args []string) (int, error) {
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
	r.end()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
