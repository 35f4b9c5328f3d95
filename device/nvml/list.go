//go:build linux && cgo

package nvml

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"tensile/graph"
)

// List returns the GPUs of this machine, in NVML's order.
func List() ([]GPU, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	return list(nvml.New())
}

func list(l library) ([]GPU, error) {
	if err := start(l); err != nil {
		return nil, err
	}
	defer l.Shutdown()
	n, r := l.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML does not count the GPUs: %w", r)
	}
	gpus := make([]GPU, n)
	for i := range gpus {
		d, r := l.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			return nil, fmt.Errorf("NVML: GPU %d: %w", i, r)
		}
		var err error
		if gpus[i], err = describe(l, d); err != nil {
			return nil, fmt.Errorf("NVML: GPU %d: %w", i, err)
		}
	}
	return gpus, nil
}

// name is that of the library.
const name = "libnvidia-ml.so.1"

// check returns an error if a library is there and is not NVML: a call of go-nvml would end the process. One that is
// not there is left to start.
func check(name string) error {
	l := dl.New(name, dl.RTLD_LAZY)
	if l.Open() != nil {
		return nil
	}
	defer l.Close()
	if l.Lookup("nvmlInit_v2") != nil {
		return fmt.Errorf("%s is another library (it has no nvmlInit_v2): install NVIDIA's driver to use a GPU", name)
	}
	return nil
}

func start(l library) error {
	if r := l.Init(); r != nvml.SUCCESS {
		return fmt.Errorf("NVML does not start (%w): install NVIDIA's driver to use a GPU", r)
	}
	return nil
}

// describe asks for all of a GPU. Its name, ids and memory must be told.
func describe(l library, d nvml.Device) (GPU, error) {
	var g GPU
	name, r := d.GetName()
	if r != nvml.SUCCESS {
		return g, fmt.Errorf("name: %w", r)
	}
	uuid, r := d.GetUUID()
	if r != nvml.SUCCESS {
		return g, fmt.Errorf("UUID: %w", r)
	}
	pci, r := d.GetPciInfo()
	if r != nvml.SUCCESS {
		return g, fmt.Errorf("PCI: %w", r)
	}
	memory, r := d.GetMemoryInfo()
	if r != nvml.SUCCESS {
		return g, fmt.Errorf("memory: %w", r)
	}
	g.Name, g.UUID = name, uuid
	g.Bus = fmt.Sprintf("%08X:%02X:%02X.0", pci.Domain, pci.Bus, pci.Device)
	g.Memory, g.Used = graph.Bytes(memory.Total), graph.Bytes(memory.Used)
	if u, r := d.GetUtilizationRates(); r == nvml.SUCCESS {
		load := share(u)
		g.Load = &load
	}
	for _, of := range []struct {
		to  *int
		ask func() (int, nvml.Return)
	}{
		{&g.Link.Generation, d.GetCurrPcieLinkGeneration},
		{&g.Link.Width, d.GetCurrPcieLinkWidth},
		{&g.MaxLink.Generation, d.GetMaxPcieLinkGeneration},
		{&g.MaxLink.Width, d.GetMaxPcieLinkWidth},
	} {
		if v, r := of.ask(); r == nvml.SUCCESS {
			*of.to = v
		}
	}
	g.Processes = processes(l, d)
	return g, nil
}

// processes lists those that compute or draw, each once.
func processes(l library, d nvml.Device) []Process {
	var all []Process
	for _, ask := range []func() ([]nvml.ProcessInfo, nvml.Return){
		d.GetComputeRunningProcesses, d.GetGraphicsRunningProcesses,
	} {
		found, r := ask()
		if r != nvml.SUCCESS {
			continue
		}
		for _, p := range found {
			id := int(p.Pid)
			if slices.ContainsFunc(all, func(other Process) bool { return other.ID == id }) {
				continue
			}
			own := Process{ID: id}
			if name, r := l.SystemGetProcessName(id); r == nvml.SUCCESS {
				own.Name = name
			}
			if p.UsedGpuMemory <= math.MaxInt64 { // all bits are set where the driver does not know
				own.Memory = graph.Bytes(p.UsedGpuMemory)
			}
			all = append(all, own)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// share returns the share of time that a utilisation says.
func share(u nvml.Utilization) float64 { return min(float64(u.Gpu)/100, 1) }
