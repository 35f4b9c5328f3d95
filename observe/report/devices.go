package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"tensile/device/cuda"
	"tensile/device/nvml"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/graph/text"
)

// Devices are those of this machine.
type Devices struct {
	GPUs      []GPU    `json:"gpus"`
	CPU       CPU      `json:"cpu"`
	Simulated []Device `json:"simulated"`
	Missing   []string `json:"missing"` // what keeps GPUs from being used or seen in full, and how to get it
}

// Device is one, as --device names it.
type Device struct {
	Device string      `json:"device"`
	Memory graph.Bytes `json:"memory_bytes"`
}

// CPU is the processor, and the memory that is left.
type CPU struct {
	Device    string      `json:"device"`
	Cores     int         `json:"cores"`
	Available graph.Bytes `json:"available_bytes,omitempty"` // 0: the system does not say
}

// GPU is one of NVIDIA's, as NVML and CUDA know it. Either may not know it, and leaves its part out.
type GPU struct {
	Device          // cuda:N with CUDA's number; "" if CUDA does not have it
	Name   string   `json:"name"`
	UUID   string   `json:"uuid"`
	Bus    string   `json:"pci_bus_id"`
	NVML   *Usage   `json:"nvml,omitempty"`
	CUDA   *Compute `json:"cuda,omitempty"`
}

// Usage is what a GPU does now.
type Usage struct {
	Used      graph.Bytes    `json:"used_bytes"`
	Load      *float64       `json:"load,omitempty"` // share of the recent past in which a kernel ran
	Link      nvml.Link      `json:"pcie,omitzero"`
	MaxLink   nvml.Link      `json:"pcie_max,omitzero"`
	Processes []nvml.Process `json:"processes,omitempty"`
}

// Compute is what programs of a GPU can count on.
type Compute struct {
	Capability string      `json:"capability"`
	Processors int         `json:"multiprocessors"`
	Context    graph.Bytes `json:"context_bytes,omitempty"` // that a process takes by opening it; 0: not measured
}

// CUDADevice is a device of CUDA's, and what a process takes of its memory by opening it.
type CUDADevice struct {
	cuda.Properties
	Context graph.Bytes
}

// NewDevices puts together what is known of this machine: the GPUs of NVML and CUDA, which have the same PCI bus id,
// and what kept either from being asked.
func NewDevices(cpu CPU, seen []nvml.GPU, usable []CUDADevice, missing ...error) Devices {
	d := Devices{GPUs: []GPU{}, CPU: cpu, Missing: []string{}}
	for _, err := range missing {
		if err != nil { // a line for each of those that are joined
			d.Missing = append(d.Missing, strings.Split(err.Error(), "\n")...)
		}
	}
	say := func(format string, args ...any) { d.Missing = append(d.Missing, fmt.Sprintf(format, args...)) }
	at := make(map[string]int)
	for i, u := range usable {
		at[u.Bus] = len(d.GPUs)
		d.GPUs = append(d.GPUs, GPU{Device: Device{fmt.Sprintf("cuda:%d", i), u.Memory}, Name: u.Name, UUID: u.UUID,
			Bus: u.Bus, CUDA: &Compute{fmt.Sprintf("%d.%d", u.Major, u.Minor), u.Processors, u.Context}})
		if u.Major < cuda.LeastCapability {
			say("cuda:%d (%s) has compute capability %d.%d: the kernels need %d.0", i, u.Name, u.Major, u.Minor,
				cuda.LeastCapability)
		}
		if u.Exclusive {
			say("cuda:%d lets in one process at a time, and run has one for each job and itself: an administrator can "+
				"run nvidia-smi --id=%s --compute-mode=DEFAULT, or start MPS", i, u.Bus)
		}
		if u.MIG() {
			say("cuda:%d is an instance of MIG: USED, BUSY, PCIE, CONTEXT and processes are those of the whole GPU", i)
		}
	}
	for _, s := range seen {
		i, ok := at[s.Bus]
		if !ok {
			i = len(d.GPUs)
			d.GPUs = append(d.GPUs, GPU{Device: Device{"", s.Memory}, Name: s.Name, UUID: s.UUID, Bus: s.Bus})
			if len(usable) > 0 {
				say("CUDA does not have the GPU at %s (%s): see CUDA_VISIBLE_DEVICES", s.Bus, s.Name)
			}
		}
		d.GPUs[i].UUID = cmp.Or(d.GPUs[i].UUID, s.UUID)
		d.GPUs[i].NVML = &Usage{s.Used, s.Load, s.Link, s.MaxLink, s.Processes}
	}
	for _, name := range cost.Names() {
		facts, err := cost.Device(name)
		if err != nil {
			panic(fmt.Sprintf("report: %v", err)) // it is listed
		}
		d.Simulated = append(d.Simulated, Device{"sim:" + name, facts.Memory})
	}
	return d
}

// WriteTable prints the devices, below them the processes of GPUs, and what is missing.
func (d Devices) WriteTable(w io.Writer) error {
	rows := [][]string{{"DEVICE", "NAME", "MEMORY", "USED", "CONTEXT", "BUSY", "PCIE", "CAPABILITY", "PCI BUS ID"}}
	for _, g := range d.GPUs {
		row := []string{cmp.Or(g.Device.Device, "-"), g.Name, text.Bytes(g.Memory), "-", "-", "-", "-", "-", g.Bus}
		if u := g.NVML; u != nil {
			row[3], row[6] = text.Bytes(u.Used), pcieText(u.Link, u.MaxLink)
			if u.Load != nil {
				row[5] = text.Percent(*u.Load)
			}
		}
		if c := g.CUDA; c != nil {
			row[7] = c.Capability
			if c.Context > 0 {
				row[4] = text.Bytes(c.Context)
			}
		}
		rows = append(rows, row)
	}
	if len(d.GPUs) > 0 {
		if err := text.Table(w, rows); err != nil {
			return err
		}
	}
	var lines []string
	for _, g := range d.GPUs {
		if g.NVML == nil {
			continue
		}
		for _, p := range g.NVML.Processes {
			line := fmt.Sprintf("process %d on %s", p.ID, cmp.Or(g.Device.Device, g.Bus))
			if p.Memory > 0 {
				line += fmt.Sprintf(" uses %s", text.Bytes(p.Memory))
			}
			if p.Name != "" {
				line += ": " + text.Line(p.Name, maxName)
			}
			lines = append(lines, line)
		}
	}
	line := fmt.Sprintf("%s: %d cores", d.CPU.Device, d.CPU.Cores)
	if d.CPU.Available > 0 {
		line += fmt.Sprintf(", %s of memory are available", text.Bytes(d.CPU.Available))
	}
	lines = append(lines, line)
	var simulated []string
	for _, s := range d.Simulated {
		simulated = append(simulated, fmt.Sprintf("%s (%s)", s.Device, text.Bytes(s.Memory)))
	}
	lines = append(lines, "in virtual time: "+strings.Join(simulated, ", "))
	for _, m := range d.Missing {
		lines = append(lines, "missing: "+m)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// maxName is the limit of a process's name, in bytes.
const maxName = 80

// pcieText shows a link beside what it could be: an idle GPU lowers its generation.
func pcieText(now, most nvml.Link) string {
	if now == (nvml.Link{}) {
		return "-"
	}
	show := fmt.Sprintf("%d x%d", now.Generation, now.Width)
	if now != most && most != (nvml.Link{}) {
		show += fmt.Sprintf(" of %d x%d", most.Generation, most.Width)
	}
	return show
}
