package nvml

import "tensile/graph"

// GPU is what NVML says of one. What a GPU does not tell is zero, or nil.
type GPU struct {
	Name          string
	UUID          string // GPU-..., as CUDA gives it
	Bus           string // PCI bus id: 00000000:65:00.0
	Memory        graph.Bytes
	Used          graph.Bytes // by processes and the driver
	Load          *float64    // share of the recent past in which a kernel ran, from 0 to 1
	Link, MaxLink Link        // to the host; an idle GPU lowers its generation
	Processes     []Process   // that compute or draw
}

// Link is a PCIe link.
type Link struct {
	Generation int `json:"generation"`
	Width      int `json:"width"` // lanes
}

// Process is a process that uses a GPU.
type Process struct {
	ID     int         `json:"pid"`
	Name   string      `json:"name,omitempty"`
	Memory graph.Bytes `json:"memory_bytes,omitempty"` // 0: not told
}
