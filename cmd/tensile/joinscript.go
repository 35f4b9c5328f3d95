package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"tensile/executor/sidecar"
	"tensile/python"
)

// socketVariable names the variable in which a script finds the address of its sidecar.
const socketVariable = "TENSILE_SOCKET"

// startScript starts a command whose processes can join, and with files that it holds open for as long as it lives.
func startScript(args []string, held ...*os.File) (sidecar.Script, error) {
	path, remove, err := layPython()
	if err != nil {
		return sidecar.Script{}, err
	}
	door, err := sidecar.OpenDoor()
	if err != nil {
		remove()
		return sidecar.Script{}, err
	}
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.ExtraFiles = held // which the command has as 3 and so on
	command.Env = append(os.Environ(), socketVariable+"="+door.Address(), "PYTHONPATH="+path)
	if err := command.Start(); err != nil {
		door.Close()
		remove()
		return sidecar.Script{}, err
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		door.Close()
		remove()
		ended <- err
	}()
	return sidecar.Script{Joined: door.Joined(), Ended: ended}, nil
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
