package predictor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// Device describes what ops run on, in the terms in which features are ratios.
type Device struct {
	Name      string        `json:"name"`
	FLOPs     float64       `json:"flops"`                // float32 operations a second, peak
	Vector    float64       `json:"vector,omitempty"`     // the same outside of matrix products; 0: FLOPs
	Bandwidth float64       `json:"bandwidth"`            // bytes a second of device memory, peak
	Units     int           `json:"units"`                // multiprocessors, or threads
	Clock     float64       `json:"clock"`                // Hz
	Cache     graph.Bytes   `json:"cache"`                // last level
	CacheRate float64       `json:"cache_rate,omitempty"` // bytes a second of it; 0: Bandwidth
	Launch    time.Duration `json:"launch"`               // Time of an empty op on its host; 0: not measured.
}

// Validate says which field is out of range.
func (d *Device) Validate() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"flops", d.FLOPs}, {"bandwidth", d.Bandwidth}, {"units", float64(d.Units)}, {"clock", d.Clock},
		{"cache", float64(d.Cache)}} {
		if !(f.value > 0) || math.IsInf(f.value, 0) {
			return fmt.Errorf("device %q: %s is %v, want a positive number", d.Name, f.name, f.value)
		}
	}
	if !(d.Vector >= 0) || math.IsInf(d.Vector, 0) {
		return fmt.Errorf("device %q: vector is %v, want a positive number or none", d.Name, d.Vector)
	}
	if d.Launch < 0 {
		return fmt.Errorf("device %q: launch is %v, want a positive time or none", d.Name, d.Launch)
	}
	if !(d.CacheRate >= 0) || math.IsInf(d.CacheRate, 0) {
		return fmt.Errorf("device %q: cache_rate is %v, want a positive number or none", d.Name, d.CacheRate)
	}
	return nil
}

// Family is the chip's name, without maker, board and memory: both A100 boards are "A100".
func (d *Device) Family() string {
	words := strings.FieldsFunc(d.Name, func(r rune) bool { return r == ' ' || r == '-' })
	for _, w := range words {
		if !slices.Contains([]string{"NVIDIA", "Tesla", "AMD", "Instinct"}, w) {
			return w
		}
	}
	return d.Name
}

// bounds are the times of a call's arithmetic and of its traffic at the device's peak rates, in seconds.
func (d *Device) bounds(c *Call) (arithmetic, traffic float64) {
	rate := d.FLOPs
	if c.Form == Stream && d.Vector > 0 {
		rate = d.Vector
	}
	bytes := c.bytes()
	cached := min(max(2-bytes/float64(d.Cache), 0), 1) // what does not quite fit is there in part
	return c.flops() / rate, bytes * (cached/max(d.CacheRate, d.Bandwidth) + (1-cached)/d.Bandwidth)
}

// Roofline is the time of a call at the device's peak rates, without a launch, in seconds.
func (d *Device) Roofline(c *Call) float64 { return max(d.bounds(c)) }

// baseSeconds is what the learned efficiency is relative to: the roofline, and a part that keeps tiny ops from 0. In
// seconds.
func (d *Device) baseSeconds(c *Call) float64 { return d.Roofline(c) + d.Launch.Seconds() }

// DeviceOf describes a device of which only the facts of the roofline are known. What is missing is taken as it is on
// similar devices: predictions for it are those for a device that was never seen.
func DeviceOf(f cost.Facts, units int, clock float64, cache graph.Bytes) Device {
	return Device{Name: f.Name, FLOPs: float64(f.Compute), Bandwidth: float64(f.Bandwidth), Units: units, Clock: clock,
		Cache:  cache,
		Launch: 2 * f.Launch}
}
