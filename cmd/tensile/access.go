package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tensile/data/rooted"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/wire/bus"
)

// usersName is the folder in a state folder with a folder for each user.
const usersName = "users"

// accessFlags say which files the jobs of users may name.
type accessFlags struct {
	allow []string
	quota string // of each user's folder; "": a quarter of its disk
	users string // folder with a folder for each user; "": that in the default state folder
}

func (f *accessFlags) register(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.allow, "allow", nil,
		"additional folder that users' jobs may read and write, besides users/NAME in the state folder (repeatable); "+
			"the administrator's jobs are not restricted")
	c.Flags().StringVar(&f.quota, "user-quota", "",
		"maximum size of each user's folder, users/NAME, such as 20GiB (default: a quarter of its disk)")
}

// limit is the quota of a user's folder; 0: a quarter of its disk.
func (f *accessFlags) limit() (graph.Bytes, error) {
	if f.quota == "" {
		return 0, nil
	}
	most, err := parseBytes("--user-quota", f.quota)
	if err == nil && most <= 0 {
		err = fmt.Errorf("--user-quota %s: give a size above 0, such as 20GiB", f.quota)
	}
	return most, err
}

// check makes the folders of --allow absolute, and returns an error for one that is none, or that shares files with
// these folders, or with a state folder.
func (f *accessFlags) check(own ...string) error {
	if _, err := f.limit(); err != nil {
		return err
	}
	for i, dir := range f.allow {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("--allow %s is a file: name a folder", dir)
		} else if err != nil {
			return fmt.Errorf("--allow %s: %w", dir, reason(err))
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		state, err := bus.StateFolderOf(filepath.Join(real, "file"))
		if err != nil {
			return err
		}
		for _, own := range append(own, state, defaultState()) {
			if own, err = absolute(own); err != nil {
				return err
			}
			if target, err := filepath.EvalSymlinks(own); err == nil {
				own = target
			}
			_, holds := rooted.NameBelow(real, own)
			_, lies := rooted.NameBelow(own, real)
			if own != "" && (holds || lies) {
				return fmt.Errorf("--allow %s: users could change what controllers and executors keep in %s: name "+
					"another folder", dir, own)
			}
		}
		f.allow[i] = dir
	}
	return nil
}

// access is which files the jobs of an executor with a folder of checkpoints may name.
func (f *accessFlags) access(checkpoints string) (agent.Access, error) {
	users := f.users
	if users == "" && defaultState() != "" {
		users = filepath.Join(defaultState(), usersName)
	}
	users, err := absolute(users)
	if err == nil {
		err = f.check(users, checkpoints)
	}
	if err != nil {
		return agent.Access{}, err
	}
	quota, _ := f.limit() // which check has seen
	of := func(user string) *rooted.Files {
		if users == "" {
			return rooted.New("", f.allow, 0)
		}
		return rooted.New(filepath.Join(users, user), f.allow, quota)
	}
	return agent.Access{Of: of, Forbids: forbidsState}, nil
}

// forbidsState is the error for a path in a state folder: what a job saves there would be the controller's.
func forbidsState(path string) error {
	state, err := bus.StateFolderOf(path)
	if err == nil && state != "" {
		err = fmt.Errorf("%s lies in the state folder %s of a controller: name another place", path, state)
	}
	return err
}
