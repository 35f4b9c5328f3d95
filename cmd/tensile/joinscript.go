package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"tensile/executor/sidecar"
	"tensile/python"
)

// socketVariable names the variable in which a script finds the number of its end of the connection.
const socketVariable = "TENSILE_SOCKET"

// startScript starts a command with one end of a socket pair, and with files that it holds open for as long as it
// lives.
func startScript(args []string, held ...*os.File) (sidecar.Script, error) {
	path, remove, err := layPython()
	if err != nil {
		return sidecar.Script{}, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return sidecar.Script{}, fmt.Errorf("make a connection to the script: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "sidecar"), os.NewFile(uintptr(fds[1]), "script")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return sidecar.Script{}, fmt.Errorf("make a connection to the script: %w", err)
	}
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.ExtraFiles = append([]*os.File{theirs}, held...) // which the command has as 3 and so on
	command.Env = append(os.Environ(), socketVariable+"=3", "PYTHONPATH="+path)
	if err = command.Start(); err != nil {
		conn.Close()
		return sidecar.Script{}, err
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		remove()
		ended <- err
	}()
	return sidecar.Script{Conn: conn.(*net.UnixConn), Ended: ended}, nil
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
