package wire

import (
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// Device is one that executors bring: what a controller has to know to plan for it. A controller keeps it, so that it
// finds its devices again after a restart.
type Device struct {
	// Name is the device's name among those of the controller.
	Name string `json:"name"`
	// Model is the device as --device names it, such as cpu, cuda:0 or sim:a6000.
	Model string `json:"model"`
	// Identity is equal for devices that train a job to the same bits.
	Identity string `json:"identity"`
	// Host is the name of the machine that has the device; "": unknown.
	Host string `json:"host,omitzero"`

	// Align is what offsets in an arena are multiples of, in bytes: a power of two.
	Align graph.Bytes `json:"align_bytes" bound:"storage"`
	// Page is the size in bytes of the pages in which the device backs arenas; 0: it backs whole arenas only.
	Page graph.Bytes `json:"page_bytes,omitzero" bound:"storage"`
	// Context is what a process takes of the device's memory by opening it, in bytes.
	Context graph.Bytes `json:"context_bytes,omitzero" bound:"storage"`
	// Budget is the device memory for jobs and contexts, in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes,omitzero" bound:"bytes"`
	// HostMemory is the memory for what jobs have on the host, in bytes; 0: no limit.
	HostMemory graph.Bytes `json:"host_memory_bytes,omitzero" bound:"bytes"`
	// Facts are the rates to plan with before anything was measured.
	Facts cost.Facts `json:"facts" bound:"rate"`
	// Limited says that the link is no faster than Facts say, so that executors are told their shares of it.
	Limited bool `json:"limited,omitzero"`

	// Drained says that an administrator lets the device take no jobs.
	Drained bool `json:"drained,omitzero"`
}

// DeviceState is a device of a controller, and what its jobs have of it.
type DeviceState struct {
	Device
	// Own says that the device is that of the controller's process. Its Facts say no more than the link.
	Own bool `json:"own,omitzero"`
	// Used is what claims of jobs and contexts take of the device's memory, in bytes.
	Used graph.Bytes `json:"used_bytes" bound:"sum"`
	// HostUsed is what jobs take of the host's memory, in bytes.
	HostUsed graph.Bytes `json:"host_used_bytes" bound:"sum"`
	// Jobs is how many jobs train on the device or are parked in its host's memory.
	Jobs int `json:"jobs" bound:"count"`
	// Executors is how many of its executors are heard of.
	Executors int `json:"executors" bound:"count"`
	// Silent is how many of its executors are out of reach.
	Silent int `json:"silent,omitzero" bound:"count"`
}

func (Device) kind() string { return "device" }

func (d Device) check() error {
	c := new(checker)
	c.device(&d)
	return c.err
}

func (c *checker) device(d *Device) {
	if err := CheckDevice(d.Name); err != nil {
		c.fail("device: %w", err)
	}
	c.checkShort("model of a device", d.Model)
	c.checkShort("identity of a device", d.Identity)
	c.checkShort("host of a device", d.Host)
	if d.Align < 1 || d.Align&(d.Align-1) != 0 {
		c.fail("align_bytes of a device is %d, and must be a power of two up to %d", d.Align, graph.MaxBytes)
	}
	c.facts(&d.Facts)
}

// facts checks rates by which latencies are predicted: none may be zero, by which they would have no end, nor one that
// leads to times which cannot be added.
func (c *checker) facts(f *cost.Facts) {
	for _, rate := range []struct {
		what string
		of   float64
	}{
		{"compute", float64(f.Compute)}, {"bandwidth", float64(f.Bandwidth)},
		{"share of the compute", f.ComputeShare}, {"share of the bandwidth", f.BandwidthShare},
		{"link out", float64(f.Out.Rate)}, {"link in", float64(f.In.Rate)},
	} {
		if rate.of == 0 {
			c.fail("%s of a device is 0, and must be more", rate.what)
		}
	}
	for _, t := range []struct {
		what string
		took time.Duration
	}{
		{"launch of a device", f.Launch}, {"latency of a device's link out", f.Out.Latency},
		{"latency of a device's link in", f.In.Latency}, {"latency of a device's host", f.Host.Latency},
		{"latency of a device's network", f.Network.Latency},
	} {
		if t.took > MaxLatency {
			c.fail("%s is %v, and cannot be more than %v", t.what, t.took, MaxLatency)
		}
	}
}

func (s *DeviceState) check(c *checker) {
	if s.Own { // whose facts are nobody's to plan with
		c.checkShort("device", s.Name)
		c.checkShort("identity of a device", s.Identity)
	} else {
		c.device(&s.Device)
	}
}
