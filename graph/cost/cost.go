package cost

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/graph"
)

// BytesPerSecond is a rate of memory traffic or copying.
type BytesPerSecond float64

// FLOPsPerSecond is a rate of float32 arithmetic.
type FLOPsPerSecond float64

// Link is one direction of the connection between device and host memory. The zero value copies in no time.
type Link struct {
	Rate    BytesPerSecond // 0: unlimited
	Latency time.Duration  // Fixed time of each copy.
}

// Time returns how long a copy takes.
func (l Link) Time(b graph.Bytes) time.Duration {
	if l.Rate <= 0 {
		return l.Latency
	}
	return l.Latency + bounded(float64(b)/float64(l.Rate)*1e9)
}

// longest bounds the time of an op, and of a copy, but for launch and latency: so those of a graph can be added.
const longest = 24 * time.Hour

// bounded converts nanoseconds to a duration; the number may be too large, or not a number.
func bounded(ns float64) time.Duration {
	if ns < float64(longest) {
		return time.Duration(ns)
	}
	return longest
}

// Share returns the link for a user with the given parts of the whole; both numbers are positive.
func (l Link) Share(part, whole int64) Link {
	return Link{l.Rate / (BytesPerSecond(whole) / BytesPerSecond(part)), l.Latency}
}

// Facts describes a device.
type Facts struct {
	Name      string
	Compute   FLOPsPerSecond // peak
	Bandwidth BytesPerSecond // Peak bandwidth of device memory.
	Out, In   Link
	Host      Link        // Copies from host memory to host memory.
	Network   Link        // Copies to the device of another replica, per direction; Latency is per hop.
	Memory    graph.Bytes // 0: unknown

	ComputeShare   float64       // Share of peak FLOPS that ops reach.
	BandwidthShare float64       // Share of peak bandwidth that ops reach.
	Launch         time.Duration // fixed time of an op
	Parallel       int           // number of jobs that compute at once without slowing one another down; 0 means 1
}

// Roofline predicts how long an op takes: the larger of its arithmetic and its traffic at the rates the device
// reaches, and the launch. One that uses the network takes what that takes while no other replica is late.
func (f Facts) Roofline(c graph.Cost) time.Duration {
	if c.Hops > 0 {
		return time.Duration(c.Hops-1)*f.Network.Latency + f.Network.Time(c.Network)
	}
	compute := float64(c.FLOPs) / (f.ComputeShare * float64(f.Compute))
	traffic := float64(c.Bytes) / (f.BandwidthShare * float64(f.Bandwidth))
	return bounded(max(compute, traffic)*1e9) + f.Launch
}

// devices holds float32 peak rates, memory bandwidths and sizes from the makers' data sheets, and for the host link the
// rate per direction that pinned copies reach over the device's PCIe generation (24 GB/s on 4.0 x16, 12 GB/s on 3.0
// x16). Host is what a thread of a server copies within its memory. The shares of the peaks are those under which a
// ResNet-50 step of batch 16 on an A6000 takes about 40 ms.
//
// The devices of the rivals' papers are all on PCIe 3.0 x16. k40: as told at its announcement (geektopia.es,
// 18 November 2013). p100: the card for PCIe as NeuSight lists it (shared/data/neusight). rtx2080ti and gtx1080ti:
// memory, its bandwidth and 4352 and 3584 cores as told at the announcement of the former (3dfxzone.it, news 28580;
// overclock3d.net), with two operations per core and cycle at 1545 and 1582 MHz.
var devices = []Facts{
	{Name: "a6000", Compute: 38.7e12, Bandwidth: 768e9, Memory: 48e9, Out: Link{Rate: 24e9}, In: Link{Rate: 24e9},
		Host:         Link{Rate: 10e9},
		ComputeShare: 0.55, BandwidthShare: 0.85, Launch: 5 * time.Microsecond},
	{Name: "v100", Compute: 15.7e12, Bandwidth: 900e9, Memory: 32e9, Out: Link{Rate: 12e9}, In: Link{Rate: 12e9},
		Host:         Link{Rate: 10e9},
		ComputeShare: 0.55, BandwidthShare: 0.85, Launch: 5 * time.Microsecond},
	{Name: "h200", Compute: 67e12, Bandwidth: 4800e9, Memory: 141e9, Out: Link{Rate: 50e9}, In: Link{Rate: 50e9},
		Host:         Link{Rate: 10e9},
		ComputeShare: 0.55, BandwidthShare: 0.85, Launch: 5 * time.Microsecond},
	{Name: "k40", Compute: 4.29e12, Bandwidth: 288e9, Memory: 12e9, Out: Link{Rate: 12e9}, In: Link{Rate: 12e9},
		Host:         Link{Rate: 10e9},
		ComputeShare: 0.55, BandwidthShare: 0.85, Launch: 5 * time.Microsecond},
	{Name: "p100", Compute: 9.52e12, Bandwidth: 732e9, Memory: 16e9, Out: Link{Rate: 12e9}, In: Link{Rate: 12e9},
		Host:         Link{Rate: 10e9},
		ComputeShare: 0.55, BandwidthShare: 0.85, Launch: 5 * time.Microsecond},
	{Name: "rtx2080ti", Compute: 13.45e12, Bandwidth: 616e9, Memory: 11e9, Out: Link{Rate: 12e9}, In: Link{Rate: 12e9},
		Host:         Link{Rate: 10e9},
		ComputeShare: 0.55, BandwidthShare: 0.85, Launch: 5 * time.Microsecond},
	{Name: "gtx1080ti", Compute: 11.34e12, Bandwidth: 484e9, Memory: 11e9, Out: Link{Rate: 12e9}, In: Link{Rate: 12e9},
		Host:         Link{Rate: 10e9},
		ComputeShare: 0.55, BandwidthShare: 0.85, Launch: 5 * time.Microsecond},
}

// Device returns the facts of a device by name; the error lists the names.
func Device(name string) (Facts, error) {
	i := slices.IndexFunc(devices, func(f Facts) bool { return f.Name == name })
	if i < 0 {
		return Facts{}, fmt.Errorf("unknown device %q: known are %s", name, strings.Join(Names(), ", "))
	}
	f := devices[i]
	f.Network = network
	return f, nil
}

// network is that of every device of the table: Ethernet of 100 Gbit/s, with 20 us from one host to the next.
var network = Link{Rate: 12.5e9, Latency: 20 * time.Microsecond}

// Names lists the devices of the table.
func Names() []string {
	names := make([]string, len(devices))
	for i, f := range devices {
		names[i] = f.Name
	}
	return names
}
