package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/graph/text"
)

// localExecutor is an executor that lives on this machine.
type localExecutor struct {
	PID         int       `json:"pid"`
	Name        string    `json:"name"` // Name of the credentials file.
	Since       time.Time `json:"since,omitzero"`
	Credentials string    `json:"credentials"`
	Gone        bool      `json:"gone"` // the file is no longer there: with it goes the way to its controller
}

func executorsCommand() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "executors",
		Short: "List all executors running on this machine",
		Long: `List all executors running on this machine, including those whose controller is gone. To end one, send
it a signal, as kill PID does: its jobs checkpoint first if they take checkpoints.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := localExecutors("/proc")
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), found)
			}
			rows := [][]string{{"PID", "NAME", "SINCE", "CREDENTIALS"}}
			for _, x := range found {
				where := x.Credentials
				if x.Gone {
					where += " (gone)"
				}
				rows = append(rows, []string{strconv.Itoa(x.PID), x.Name, x.Since.Format("2 January 15:04"),
					text.Shown(where)})
			}
			return text.Table(c.OutOrStdout(), rows)
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}

// localExecutors finds executors by what the kernel says of all processes in a folder.
func localExecutors(proc string) ([]localExecutor, error) {
	paths, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return nil, err
	}
	found := []localExecutor{}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(path, "cmdline"))
		args := strings.Split(string(line), "\x00")
		if err != nil || len(args) < 2 || args[1] != "executor" {
			continue // another program, or it has ended
		}
		file := flagValue(args, "credentials")
		if !filepath.IsAbs(file) {
			if folder, err := os.Readlink(filepath.Join(path, "cwd")); err == nil {
				file = filepath.Join(folder, file)
			}
		}
		_, err = os.Stat(file)
		x := localExecutor{PID: pid, Name: strings.TrimSuffix(filepath.Base(file), ".json"), Credentials: file,
			Gone: os.IsNotExist(err)}
		if x.Since, err = startOf(proc, path); err == nil {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(x, y localExecutor) int { return x.PID - y.PID })
	return found, nil
}

// flagValue is the value of a flag in the arguments of a command.
func flagValue(args []string, name string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		} else if arg == "--"+name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// ticksPerSecond is the unit of times that Linux shows in /proc (USER_HZ).
const ticksPerSecond = 100

// startOf is when a process started, by its file stat and that of the machine (proc_pid_stat(5), field 22).
func startOf(proc, path string) (time.Time, error) {
	stat, err := os.ReadFile(filepath.Join(path, "stat"))
	if err != nil {
		return time.Time{}, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // after a name, in which there may be anything
	const start = 22 - 3
	machine, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return time.Time{}, err
	}
	_, boot, ok := bytes.Cut(machine, []byte("\nbtime "))
	if !ok || len(fields) <= start {
		return time.Time{}, fs.ErrInvalid
	}
	boot, _, _ = bytes.Cut(boot, []byte("\n"))
	seconds, err := strconv.ParseInt(string(boot), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time of boot: %w", err)
	}
	ticks, err := strconv.ParseInt(string(fields[start]), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the start of a process: %w", err)
	}
	return time.Unix(seconds, 0).Add(time.Duration(ticks) * time.Second / ticksPerSecond), nil
}
