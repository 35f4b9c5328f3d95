package main

import (
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"tensile/device/nvml"
	"tensile/graph"
	"tensile/report"
)

func devicesCommand() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "devices",
		Short: "Show this machine's devices: GPUs with their memory, load, link and processes, the CPU, simulated ones",
		Long: `Show what --device can name on this machine. GPUs are asked for by NVML (memory, share of time with a
kernel, PCIe generation and lanes, processes) and by CUDA (number, compute capability, and CONTEXT:
the memory that each process takes by opening the device); the two are matched by PCI bus id. An idle
GPU lowers the generation of its link. What is missing, and how to get it, is said in a line each.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			seen, errNVML := nvml.List()
			usable, errCUDA := cudaDevices()
			all := report.NewDevices(cpuDevice(), seen, usable, errNVML, errCUDA)
			if json {
				return printJSON(c.OutOrStdout(), all)
			}
			return all.WriteTable(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

func cpuDevice() report.CPU {
	available, err := availableMemory("/")
	if err != nil {
		available = 0 // a system that does not say
	}
	return report.CPU{Device: "cpu", Cores: runtime.NumCPU(), Available: available}
}

// cudaDevices lists CUDA's devices and opens each, to see what that takes of its memory.
func cudaDevices() ([]report.CUDADevice, error) {
	d, err := cudaDriver()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread() // the thread that a device is opened on has its context
	defer runtime.UnlockOSThread()
	all, err := d.Devices()
	if err != nil {
		return nil, err
	}
	var found []report.CUDADevice
	for i, p := range all {
		context, err := contextOf(i, p.Bus)
		if err != nil {
			return found, err
		}
		found = append(found, report.CUDADevice{Properties: p, Context: context})
	}
	return found, nil
}

// contextOf returns what the used memory of a device rises by while it is open, 0 where NVML does not say.
func contextOf(i int, bus string) (graph.Bytes, error) {
	before, known := usedOf(bus)
	d, err := cudaDriver()
	if err != nil {
		return 0, err
	}
	if err := d.Open(i); err != nil {
		return 0, err
	}
	after, still := usedOf(bus)
	if err := d.Close(); err != nil {
		return 0, err
	}
	if !known || !still {
		return 0, nil
	}
	return max(0, after-before), nil
}

func usedOf(bus string) (graph.Bytes, bool) {
	all, err := nvml.List()
	i := slices.IndexFunc(all, func(g nvml.GPU) bool { return g.Bus == bus })
	if err != nil || i < 0 {
		return 0, false
	}
	return all[i].Used, true
}
