package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"tensile/executor/sidecar"
	"tensile/models/external"
	"tensile/python"
)

// socketVariable names the variable in which a script finds the number of its end of the connection, addressVariable
// the one with the address of its sidecar, for processes that do not have that descriptor any more.
const (
	socketVariable  = "TENSILE_SOCKET"
	addressVariable = "TENSILE_ADDRESS"
)

// scriptCommand is a command that trains.
type scriptCommand struct {
	args   []string
	env    []string   // Variables beside those of this process.
	held   []*os.File // Files that it holds open for as long as it lives, as 3 and so on.
	stdout *os.File   // nil: that of this process.
}

// start starts the command, in which Python finds Tensile. ended has its end, after whatever atEnd does.
func (s scriptCommand) start(atEnd func()) (process *os.Process, ended <-chan error, err error) {
	path, remove, err := layPython()
	if err != nil {
		return nil, nil, err
	}
	command := exec.Command(s.args[0], s.args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, cmp.Or(s.stdout, os.Stdout), os.Stderr
	command.ExtraFiles = s.held
	command.Env = append(os.Environ(), "PYTHONPATH="+path)
	command.Env = append(command.Env, s.env...)
	if err := command.Start(); err != nil {
		remove()
		return nil, nil, err
	}
	end := make(chan error, 1)
	go func() {
		err := command.Wait()
		atEnd()
		remove()
		end <- err
	}()
	return command.Process, end, nil
}

// joining is a command whose processes can join.
type joining struct {
	process *os.Process
	door    *sidecar.Door
	ended   <-chan error // Its end, after the door was closed.
}

// startJoining starts the command so that its processes can join.
func (s scriptCommand) startJoining() (*joining, error) {
	door, err := sidecar.OpenDoor()
	if err != nil {
		return nil, err
	}
	defer door.Theirs().Close()
	s.env = append(slices.Clone(s.env), socketVariable+"=3", addressVariable+"="+door.Address())
	s.held = append([]*os.File{door.Theirs()}, s.held...)
	process, ended, err := s.start(door.Close)
	if err != nil {
		door.Close()
		return nil, err
	}
	return &joining{process, door, ended}, nil
}

// passOn passes on to the command the signal that ends ctx, unless a process of it listens, which is told to end. From
// a terminal the command has an interrupt itself.
func (j *joining) passOn(ctx context.Context, listens func() bool) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if s := signalOf(ctx); s != syscall.SIGINT && !listens() {
			_ = j.process.Signal(s) // it may have ended
		}
	})
}

// numbers are those of the processes of a command that have joined: as its launcher numbers them, if that is started by
// the command, or from 0 on in their order.
type numbers struct {
	mu    sync.Mutex
	taken map[int]bool
}

// rankVariable is where a launcher of several processes on a host gives each its number.
const rankVariable = "LOCAL_RANK"

// next is the number of the process that says hello.
func (n *numbers) next(h external.Hello) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.taken == nil {
		n.taken = make(map[int]bool)
	}
	number := 0
	if h.Rank != nil && !n.taken[*h.Rank] && os.Getenv(rankVariable) == "" {
		number = *h.Rank
	}
	for n.taken[number] {
		number++
	}
	n.taken[number] = true
	return number
}

// processName is the name of a process of a command.
func processName(command string, number int) string {
	if number == 0 {
		return command
	}
	return fmt.Sprintf("%s-%d", command, number)
}

// layPython lays the Python package that this binary carries into the user's cache, and returns PYTHONPATH for a
// script, which finds that package first. Where no cache can be written it is a temporary folder, which remove deletes.
func layPython() (path string, remove func(), err error) {
	remove = func() {}
	cache, err := os.UserCacheDir()
	if err == nil {
		path, err = python.Lay(filepath.Join(cache, "tensile"))
	}
	if err != nil {
		var dir string
		if dir, err = os.MkdirTemp("", "tensile-python-"); err == nil {
			remove = func() { os.RemoveAll(dir) }
			path, err = python.Lay(dir)
		}
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("lay the Python package: %w", err)
	}
	if before := os.Getenv("PYTHONPATH"); before != "" {
		path += string(os.PathListSeparator) + before
	}
	return path, remove, nil
}
