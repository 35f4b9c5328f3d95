package wire

import (
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// Device is one that executors bring: what a controller has to know to plan for it. A controller keeps it, so that it
// finds its devices again after a restart.
type Device struct {
	Name     string `json:"name"`     // among the devices of a controller
	Model    string `json:"model"`    // as --device names it: cpu, cuda:0, sim:a6000
	Identity string `json:"identity"` // devices of equal identity train a job to the same bits
	Host     string `json:"host,omitzero"`
	Threads  int    `json:"threads,omitzero" bound:"count"` // of a cpu, per job

	Align graph.Bytes `json:"align_bytes" bound:"storage"` // of offsets
	// in which it backs arenas; 0: it backs whole ones alone
	Page    graph.Bytes `json:"page_bytes,omitzero" bound:"storage"`
	Context graph.Bytes `json:"context_bytes,omitzero" bound:"storage"` // that a process takes of it by opening it
	// of its memory, for jobs and contexts; 0: no limit
	Budget graph.Bytes `json:"budget_bytes,omitzero" bound:"bytes"`
	// for what jobs have on the host; 0: no limit
	HostMemory graph.Bytes `json:"host_memory_bytes,omitzero" bound:"bytes"`
	Facts      cost.Facts  `json:"facts" bound:"rate"` // the rates to plan with before anything was measured
	Limited    bool        `json:"limited,omitzero"`   // its link is no faster than Facts say

	Drained bool `json:"drained,omitzero"` // an administrator lets it take no jobs
}

// DeviceState is a device of a controller, and what its jobs have of it.
type DeviceState struct {
	Device
	// it is that of the controller's process, of which Facts say no more than the link
	Own       bool        `json:"own,omitzero"`
	Used      graph.Bytes `json:"used_bytes" bound:"sum"` // by the claims of jobs, and contexts
	HostUsed  graph.Bytes `json:"host_used_bytes" bound:"sum"`
	Jobs      int         `json:"jobs" bound:"count"`      // that train on it, or are parked in its host's memory
	Executors int         `json:"executors" bound:"count"` // that are heard of
	Silent    int         `json:"silent,omitzero" bound:"count"`
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
	for what, took := range map[string]time.Duration{"launch of a device": f.Launch,
		"latency of a device's link out": f.Out.Latency, "latency of a device's link in": f.In.Latency,
		"latency of a device's host": f.Host.Latency, "latency of a device's network": f.Network.Latency} {
		if took > MaxLatency {
			c.fail("%s is %v, and cannot be more than %v", what, took, MaxLatency)
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
