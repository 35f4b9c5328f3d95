package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"tensile/device/cuda"
	"tensile/device/nvml"
	"tensile/graph"
	"tensile/observe/report"
	"tensile/wire/bus"
)

func devicesCommand() *cobra.Command {
	var json, watch bool
	var client clientFlags
	c := &cobra.Command{
		Use:   "devices",
		Short: "List the devices of this machine or of a controller",
		Long: `With --state or --credentials, list the devices of a controller: memory claimed by jobs, budget, number
of jobs and executors, and link.

Without, list what --device can name on this machine. GPUs are queried through NVML (memory,
utilization, PCIe generation and lanes, processes) and CUDA (number, compute capability, and CONTEXT:
the memory that each process takes by opening the device), and matched by PCI bus id. An idle GPU lowers
the generation of its link. If something is missing, a line says how to get it.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("state") || client.credentials != "" {
				return client.withController(func(ctx context.Context, conn *bus.Conn, _ []string,
					out io.Writer) error {
					return listDevices(ctx, conn, json, watch, out)
				})(c, nil)
			} else if watch {
				return errors.New("--watch: name a controller with --state or --credentials")
			}
			seen, errNVML := nvml.List()
			usable, errCUDA := cudaDevices(cudaDriver, usedOf)
			all := report.NewDevices(cpuDevice(), seen, usable, errNVML, errCUDA)
			if json {
				return printJSON(c.OutOrStdout(), all)
			}
			return all.WriteTable(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document; with --watch, one per second")
	c.Flags().BoolVar(&watch, "watch", false, "with a controller: refresh every second until interrupted")
	client.register(c)
	return c
}

func cpuDevice() report.CPU {
	available, err := availableMemory("/")
	if err != nil {
		available = 0 // a system that does not say
	}
	return report.CPU{Device: "cpu", Cores: runtime.NumCPU(), Available: available}
}

// cudaDevices lists CUDA's devices and opens each, to see by how much that raises what is used of its memory. One that
// cannot be opened is listed too.
func cudaDevices(driver func() (cuda.Driver, error), used func(bus string) (graph.Bytes, bool)) ([]report.CUDADevice,
	error) {
	d, err := driver()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread() // the thread that a device is opened on has its context
	defer runtime.UnlockOSThread()
	all, err := d.Devices()
	if err != nil {
		return nil, cuda.Remedied(err)
	}
	var found []report.CUDADevice
	var problems []error
	for i, p := range all {
		own := report.CUDADevice{Properties: p}
		if own.Context, err = contextBy(driver, i, func() (graph.Bytes, bool) { return used(p.Bus) }); err != nil {
			problems = append(problems, fmt.Errorf("cuda:%d is not opened: %w", i, cuda.Remedied(err)))
		}
		found = append(found, own)
	}
	return found, errors.Join(problems...)
}

// contextBy opens a device, and returns by how much that raises what is used; 0 where nobody says.
func contextBy(driver func() (cuda.Driver, error), device int, used func() (graph.Bytes, bool)) (graph.Bytes, error) {
	before, known := used()
	d, err := driver()
	if err != nil {
		return 0, err
	}
	if err := d.Open(device); err != nil {
		return 0, err
	}
	after, still := used()
	if err := d.Close(); err != nil || !known || !still {
		return 0, err
	}
	return max(0, after-before), nil
}

// usedOf returns how much of a GPU's memory is used, as NVML says.
func usedOf(bus string) (graph.Bytes, bool) {
	all, err := nvml.List()
	i := slices.IndexFunc(all, func(g nvml.GPU) bool { return g.Bus == bus })
	if err != nil || i < 0 {
		return 0, false
	}
	return all[i].Used, true
}
