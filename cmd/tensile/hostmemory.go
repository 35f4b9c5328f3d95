package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tensile/graph"
)

// hostMemoryFlag is --host-memory.
type hostMemoryFlag struct{ text string }

// hostShare is the part of the available memory that is the default.
const hostShare = "80%"

func (f *hostMemoryFlag) register(c *cobra.Command) {
	c.Flags().StringVar(&f.text, "host-memory", "",
		"host memory for all jobs: a size such as 8GiB, a percentage of the available memory, or none for no limit "+
			"(default: "+hostShare+"; none with --device sim)")
}

// limit is the budget of host memory; 0: there is none.
func (f *hostMemoryFlag) limit(simulated bool) (graph.Bytes, error) {
	switch {
	case f.text == "none" || f.text == "" && simulated:
		return 0, nil
	case f.text == "":
		available, err := availableMemory("/")
		if err != nil {
			return 0, nil // a system that does not say
		}
		return percentOf(available, hostShare)
	case strings.HasSuffix(f.text, "%"):
		available, err := availableMemory("/")
		if err != nil {
			return 0, fmt.Errorf("--host-memory %s: %w: give a size", f.text, err)
		}
		return percentOf(available, f.text)
	}
	b, err := parseBytes("--host-memory", f.text)
	if err != nil {
		return 0, err
	}
	if b < graph.KiB {
		return 0, fmt.Errorf("--host-memory %s: %d bytes are enough for no job: give a unit, such as 8GiB, or none",
			f.text, int64(b))
	}
	return b, nil
}

// percentOf is a part of an amount, given as 60%.
func percentOf(b graph.Bytes, text string) (graph.Bytes, error) {
	number := strings.TrimSuffix(text, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || !(percent > 0) || percent > 100 {
		return 0, fmt.Errorf("--host-memory %q: give a percentage such as %s, up to 100%%", text, hostShare)
	}
	return max(1, graph.Bytes(float64(b)*percent/100)), nil
}

// availableMemory is the memory that this machine has available, or that the control groups of this process may have if
// that is less. The files of the system lie below root.
func availableMemory(root string) (graph.Bytes, error) {
	available, err := memAvailable(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, err
	}
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return available, nil // there are none
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, file := "", ""
		switch {
		case parts[1] == "": // version 2
			dir, file = filepath.Join(root, "sys/fs/cgroup"), "memory.max"
		case strings.Contains(","+parts[1]+",", ",memory,"):
			dir, file = filepath.Join(root, "sys/fs/cgroup/memory"), "memory.limit_in_bytes"
		default:
			continue
		}
		for group := filepath.Clean("/" + parts[2]); ; group = filepath.Dir(group) {
			if limit, ok := groupLimit(filepath.Join(dir, group, file)); ok {
				available = min(available, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return available, nil
}

// memAvailable is what the kernel takes to be available to new programs without swapping.
func memAvailable(file string) (graph.Bytes, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, errors.New("this system does not say how much memory is available")
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemAvailable:" && fields[2] == "kB" {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil && n > 0 {
				return graph.Bytes(n) * graph.KiB, nil
			}
		}
	}
	return 0, errors.New("this system does not say how much memory is available")
}

// groupLimit is the limit of a control group; a group may have none.
func groupLimit(file string) (graph.Bytes, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return graph.Bytes(n), err == nil && n > 0
}
