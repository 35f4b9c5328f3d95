package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/data/checkpoint"
	"tensile/wire"
)

// checkpointFlags say how jobs outlive their executors.
type checkpointFlags struct {
	every     string
	keep      int
	restarts  int
	anyDevice bool
	from      string
	isSet     func(flag string) bool // whether a flag stands on the command line
	interval  wire.Interval          // as every says
}

// fromHelp explains --from.
const fromHelp = "start from the checkpoint in this FILE, taken by a job with the same MODEL, sizes and seed,"

func (f *checkpointFlags) register(c *cobra.Command) {
	f.isSet = c.Flags().Changed
	c.Flags().StringVar(&f.every, "checkpoint", "5m",
		"checkpoint interval, such as 5m or 100it; jobs resume from the newest checkpoint if their executor is lost; "+
			"none or 0 disables checkpoints, and such jobs fail unless --restarts is set")
	complete(c, "checkpoint", "5m", "100it", "none")
	c.Flags().IntVar(&f.keep, "keep-checkpoints", 2, "number of newest checkpoints to keep per job")
	c.Flags().IntVar(&f.restarts, "restarts", 5,
		"maximum number of restarts after losing an executor without a new checkpoint in between")
	c.Flags().BoolVar(&f.anyDevice, "any-device", false,
		"allow resuming on devices whose results are not bit-identical")
}

// check parses and checks the flags for the given MODELs.
func (f *checkpointFlags) check(models []string) (err error) {
	if f.interval, err = parseInterval(f.every); err != nil {
		return err
	}
	if f.keep < 1 {
		return fmt.Errorf("--keep-checkpoints %d: give 1 or more", f.keep)
	}
	if f.restarts < 0 {
		return fmt.Errorf("--restarts %d: give 0 or more", f.restarts)
	}
	if f.interval == (wire.Interval{}) && !f.isSet("restarts") {
		f.restarts = 0
	}
	if f.from == "" {
		return nil
	}
	if _, copies, ok := strings.Cut(models[0], ":"); len(models) > 1 || ok && isNumber(copies) && copies != "1" {
		return fmt.Errorf("--from %s: a checkpoint is of one job: give one MODEL", f.from)
	}
	return nil
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// parseInterval reads the value of --checkpoint.
func parseInterval(text string) (wire.Interval, error) {
	if text == "none" || text == "0" {
		return wire.Interval{}, nil
	}
	if number, ok := strings.CutSuffix(text, "it"); ok {
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			return wire.Interval{Iterations: n}, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return wire.Interval{Every: d}, nil
	}
	return wire.Interval{}, fmt.Errorf("--checkpoint %q: give a time such as 5m, iterations such as 100it, or none "+
		"(0 is the same)", text)
}

// setSpec sets what the flags say of a job.
func (f *checkpointFlags) setSpec(s *wire.Spec) {
	s.Checkpoint, s.Keep, s.Restarts, s.AnyDevice = f.interval, f.keep, f.restarts, f.anyDevice
}

// checkpointsName is the folder of checkpoints in a state folder.
const checkpointsName = "checkpoints"

// folderFlags say where an executor keeps checkpoints.
type folderFlags struct{ dir, quota string }

func (f *folderFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "checkpoints", "",
		"checkpoint folder; executors that share one can resume each other's jobs (default: below "+
			"$XDG_STATE_HOME/tensile or ~/.local/state/tensile)")
	f.registerQuota(c)
}

func (f *folderFlags) registerQuota(c *cobra.Command) {
	c.Flags().StringVar(&f.quota, "checkpoint-quota", "",
		"maximum disk space for all checkpoints, such as 20GiB (default: no limit)")
}

// folder returns the folder that the flags mean.
func (f *folderFlags) folder() (checkpoint.Folder, error) {
	folder := checkpoint.Folder{Dir: f.dir}
	if f.dir == "" && defaultState() != "" {
		folder.Dir = filepath.Join(defaultState(), checkpointsName)
	}
	if f.quota != "" {
		var err error
		if folder.Quota, err = parseBytes("--checkpoint-quota", f.quota); err != nil {
			return folder, err
		}
	}
	if f.dir == "" {
		return folder, nil // jobs that want one say what is wrong with it
	}
	info, err := os.Stat(f.dir)
	switch {
	case err == nil && !info.IsDir():
		return folder, fmt.Errorf("--checkpoints %s is a file: name a folder", f.dir)
	case err == nil:
		err = checkWritable("--checkpoints", f.dir)
	case errors.Is(err, os.ErrNotExist):
		err = nil // it is made with the first checkpoint
	default:
		err = fmt.Errorf("--checkpoints %s: %w", f.dir, reason(err))
	}
	if err == nil {
		folder.Dir, err = filepath.Abs(f.dir)
	}
	return folder, err
}
