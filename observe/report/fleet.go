package report

import (
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/wire"
)

// ControllerDevice is a device of a controller, with its facts in the names and units of other reports.
type ControllerDevice struct {
	wire.DeviceState
	Facts Facts `json:"facts"`
}

// Facts are the rates of a device that plans begin with, per second. Of the controller's own device they are its link
// alone.
type Facts struct {
	Compute        cost.FLOPsPerSecond `json:"compute_flops,omitzero"`   // peak
	Bandwidth      cost.BytesPerSecond `json:"bandwidth_bytes,omitzero"` // the peak rate of its memory
	ComputeShare   float64             `json:"compute_share,omitzero"`   // the share of the peak that ops reach
	BandwidthShare float64             `json:"bandwidth_share,omitzero"`
	Launch         time.Duration       `json:"launch_ns,omitzero"` // fixed time of an op
	Parallel       int                 `json:"parallel,omitzero"`  // jobs that compute at once at full speed; 0: 1
	Memory         graph.Bytes         `json:"memory_bytes,omitzero"`
	Out            Link                `json:"out"`
	In             Link                `json:"in"`
	Host           Link                `json:"host,omitzero"` // from host memory to host memory
	Network        Link                `json:"network,omitzero"`
}

// Link is how fast copies are.
type Link struct {
	Rate    cost.BytesPerSecond `json:"bytes"`      // a second; 0: no limit
	Latency time.Duration       `json:"latency_ns"` // of each copy
}

// ControllerDevices are the devices of a controller as --json prints them.
func ControllerDevices(devices []wire.DeviceState) []ControllerDevice {
	list := make([]ControllerDevice, len(devices))
	for i, d := range devices {
		f := d.Facts
		list[i] = ControllerDevice{d, Facts{f.Compute, f.Bandwidth, f.ComputeShare, f.BandwidthShare, f.Launch,
			f.Parallel, f.Memory, Link(f.Out), Link(f.In), Link(f.Host), Link(f.Network)}}
	}
	return list
}
